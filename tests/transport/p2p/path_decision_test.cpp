#include "node-runtime/transport/p2p/path_decision.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <string>
#include <utility>

namespace heddle::p2p {
namespace {

constexpr SideFacts device_run{.on_device = true};
constexpr SideFacts device_parts{.on_device = true, .is_contiguous = false};
constexpr SideFacts host_run{};
constexpr SideFacts locked_run{.is_locked = true};
constexpr SideFacts locked_parts{.is_contiguous = false, .is_locked = true};
constexpr SideFacts host_parts{.is_contiguous = false};

Path chosen(const PathQuery& query) {
  return PathDecision({}, {}).choose(query).path();
}

std::string_view lack(const PathChoice& choice, Path path) {
  return std::ranges::find(choice.estimates, path, &PathEstimate::path)->lacks;
}

}  // namespace

TEST(Path, reads_contiguous_memory_writes_into_it_and_passes_slots_otherwise) {
  PathQuery s{.bytes = 64'000'000, .sender = device_run, .receiver = device_parts};
  EXPECT_EQ(chosen(s), Path::get);
  s.sender = device_parts;
  s.receiver = device_run;
  EXPECT_EQ(chosen(s), Path::put);
  s.receiver = device_parts;
  EXPECT_EQ(chosen(s), Path::ring);
  s.no_ring = "refused";
  EXPECT_EQ(chosen(s), Path::shared);
  s.no_shared = "apart";
  EXPECT_EQ(chosen(s), Path::message);
}

TEST(Path, reads_another_process_s_host_memory_if_it_is_in_one_piece_and_the_system_lets_it) {
  PathQuery s{.bytes = 1 << 20, .sender = host_run, .receiver = host_run};
  EXPECT_EQ(chosen(s), Path::get);
  s.no_read = "not allowed";
  EXPECT_EQ(chosen(s), Path::shared);
  s.no_read = {};
  s.receiver = device_run;
  EXPECT_EQ(lack(PathDecision({}, {}).choose(s), Path::get),
            "a device does not read another node's host memory");
  s.receiver = host_run;
  s.sender.is_contiguous = false;
  EXPECT_EQ(lack(PathDecision({}, {}).choose(s), Path::get),
            "the sender's memory is not contiguous");
}

TEST(Path, reads_parts_of_a_matrix_as_they_lie_where_one_kernel_can) {
  PathQuery s{.bytes = 64'000'000, .sender = device_parts, .receiver = device_parts};
  EXPECT_EQ(chosen(s), Path::ring);
  s.no_between = {};
  EXPECT_EQ(chosen(s), Path::get);
  s.no_between = "unlike";
  EXPECT_EQ(lack(PathDecision({}, {}).choose(s), Path::get), "unlike");
}

TEST(Path, lets_devices_bring_what_lies_in_locked_memory_of_hosts) {
  for (const SideFacts& locked : {locked_run, locked_parts}) {
    PathQuery s{.bytes = 64'000'000, .sender = locked, .receiver = device_run};
    EXPECT_EQ(chosen(s), Path::put);
    s.receiver = device_parts;
    EXPECT_EQ(chosen(s), Path::ring) << "elements are not alike";
    s.no_between = {};
    EXPECT_EQ(chosen(s), Path::put);
    s = {.bytes = 64'000'000, .sender = device_run, .receiver = locked};
    EXPECT_EQ(chosen(s), Path::get);
    s.sender = device_parts;
    EXPECT_EQ(chosen(s), Path::ring);
    s.no_between = {};
    EXPECT_EQ(chosen(s), Path::get);
  }
}

TEST(Path, lets_cores_bring_what_no_device_reaches) {
  for (const SideFacts& host : {host_run, host_parts}) {
    PathQuery s{.bytes = 64'000'000, .sender = host, .receiver = device_run, .no_between = {}};
    EXPECT_EQ(chosen(s), Path::shared);
    for (const Path path : {Path::put, Path::ring}) {
      EXPECT_EQ(lack(PathDecision({}, {}).choose(s), path),
                "devices do not reach the sender's memory");
    }
    std::swap(s.sender, s.receiver);
    EXPECT_EQ(chosen(s), Path::shared);
    for (const Path path : {Path::get, Path::ring}) {
      EXPECT_EQ(lack(PathDecision({}, {}).choose(s), path),
                "devices do not reach the receiver's memory");
    }
  }
}

/// Both nodes' processes work on the ring, and each piece waits for two changes of the process.
TEST(Path, by_rings_on_a_gpu_that_serves_processes_in_turns_costs_a_turn_at_each_side) {
  PathQuery s{.bytes = 1 << 20, .sender = locked_parts, .receiver = device_parts};
  const auto ring_us = [&] { return PathDecision({}, {}, Path::ring).choose(s).predicted_us(); };
  const double alone_us = ring_us();
  s.same_device = s.takes_turns = true;
  EXPECT_DOUBLE_EQ(ring_us(), alone_us + 2 * PathRates{}.turn_us);
  s.no_between = {};
  s.works_here = true;
  const double put_us = PathDecision({}, {}, Path::put).choose(s).predicted_us();
  s.works_here = s.takes_turns = false;
  EXPECT_DOUBLE_EQ(PathDecision({}, {}, Path::put).choose(s).predicted_us(), put_us)
      << "the sender alone works";
}

TEST(Path, takes_no_mapping_that_is_not_there_yet) {
  PathQuery s{.bytes = 1 << 20, .sender = device_run, .receiver = device_run};
  s.maps_get = s.maps_put = false;
  const PathChoice choice = PathDecision({}, {}, Path::get).choose(s);
  EXPECT_EQ(choice.path(), Path::ring);
  EXPECT_EQ(lack(choice, Path::get), not_mapped_yet);
  EXPECT_NE(choice.note.find("get was asked for, but"), std::string::npos);
}

TEST(Path, lets_one_process_work_where_a_gpu_serves_them_in_turns) {
  PathQuery s{.bytes = 8, .sender = device_run, .receiver = device_run, .same_device = true};
  s.takes_turns = true;
  s.works_here = true;
  EXPECT_EQ(chosen(s), Path::get);
  s.works_here = false;
  EXPECT_EQ(chosen(s), Path::put);
}

TEST(Path, can_be_forced_and_says_what_else_there_was) {
  const PathQuery s{.bytes = 1 << 20, .sender = host_run, .receiver = host_run};
  const PathChoice choice = PathDecision({}, {}, Path::message).choose(s);
  EXPECT_EQ(choice.path(), Path::message);
  EXPECT_EQ(choice.estimates.size(), 5U);
  EXPECT_EQ(lack(choice, Path::put), "the receiver's memory is not on a device");
  for (const PathEstimate& estimate : choice.estimates) EXPECT_GT(estimate.predicted_us, 0);
}

TEST(Path, names_are_read_back) {
  for (int i = 0; i < path_count; ++i) {
    const auto path = static_cast<Path>(i);
    EXPECT_EQ(path_named(name_of(path)), path);
  }
  EXPECT_EQ(path_named("teleport"), std::nullopt);
}

}  // namespace heddle::p2p
