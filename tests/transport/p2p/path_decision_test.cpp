#include "node-runtime/transport/p2p/path_decision.hpp"

#include <algorithm>
#include <array>
#include <gtest/gtest.h>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "node-runtime/transport/p2p/wire.hpp"

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

TEST(PathDecision, reads_contiguous_memory_writes_into_it_and_passes_slots_otherwise) {
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

TEST(PathDecision,
     reads_another_process_s_host_memory_if_it_is_in_one_piece_and_the_system_lets_it) {
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

TEST(PathDecision, reads_parts_of_a_matrix_as_they_lie_where_one_kernel_can) {
  PathQuery s{.bytes = 64'000'000, .sender = device_parts, .receiver = device_parts};
  EXPECT_EQ(chosen(s), Path::ring);
  s.no_between = {};
  EXPECT_EQ(chosen(s), Path::get);
  s.no_between = "unlike";
  EXPECT_EQ(lack(PathDecision({}, {}).choose(s), Path::get), "unlike");
}

TEST(PathDecision, lets_devices_bring_what_lies_in_locked_memory_of_hosts) {
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

TEST(PathDecision, lets_cores_bring_what_no_device_reaches) {
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
TEST(PathDecision, by_rings_on_a_gpu_that_serves_processes_in_turns_costs_a_turn_at_each_side) {
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

TEST(PathDecision, takes_no_mapping_that_is_not_there_yet) {
  PathQuery s{.bytes = 1 << 20, .sender = device_run, .receiver = device_run};
  s.maps_get = s.maps_put = false;
  const PathChoice choice = PathDecision({}, {}, Path::get).choose(s);
  EXPECT_EQ(choice.path(), Path::ring);
  EXPECT_EQ(lack(choice, Path::get), not_mapped_yet);
  EXPECT_NE(choice.note.find("get was asked for, but"), std::string::npos);
}

TEST(PathDecision, lets_one_process_work_where_a_gpu_serves_them_in_turns) {
  PathQuery s{.bytes = 8, .sender = device_run, .receiver = device_run, .same_device = true};
  s.takes_turns = true;
  s.works_here = true;
  EXPECT_EQ(chosen(s), Path::get);
  s.works_here = false;
  EXPECT_EQ(chosen(s), Path::put);
}

TEST(PathDecision, can_be_forced_and_says_what_else_there_was) {
  const PathQuery s{.bytes = 1 << 20, .sender = host_run, .receiver = host_run};
  const PathChoice choice = PathDecision({}, {}, Path::message).choose(s);
  EXPECT_EQ(choice.path(), Path::message);
  EXPECT_EQ(choice.estimates.size(), 5U);
  EXPECT_EQ(lack(choice, Path::put), "the receiver's memory is not on a device");
  for (const PathEstimate& estimate : choice.estimates) EXPECT_GT(estimate.predicted_us, 0);
}

TEST(PathDecision, names_are_read_back) {
  for (int i = 0; i < path_count; ++i) {
    const auto path = static_cast<Path>(i);
    EXPECT_EQ(path_named(name_of(path)), path);
  }
  EXPECT_EQ(path_named("teleport"), std::nullopt);
}

namespace {

constexpr std::array all_sides{host_run,     host_parts, locked_run,
                               locked_parts, device_run, device_parts};
constexpr std::array chosen_paths{Path::message, Path::shared, Path::get, Path::put, Path::ring};

/// The first table of PathDecision, written down once more: what stands in the way of `path`.
bool is_in_table(const PathQuery& q, Path path) {
  const auto is_reached = [](const SideFacts& side) { return side.on_device || side.is_locked; };
  switch (path) {
    case Path::message:
      return true;
    case Path::shared:
      return q.no_shared.empty();
    case Path::get:
      if (!q.sender.on_device) {
        return q.sender.is_contiguous && !q.receiver.on_device && q.no_read.empty();
      }
      return is_reached(q.receiver) && q.no_get.empty() && q.maps_get &&
             (q.sender.is_contiguous || q.no_between.empty());
    case Path::put:
      return is_reached(q.sender) && q.receiver.on_device && q.no_put.empty() && q.maps_put &&
             (q.receiver.is_contiguous || q.no_between.empty());
    case Path::ring:
      return (q.sender.on_device || q.receiver.on_device) && is_reached(q.sender) &&
             is_reached(q.receiver) && q.no_ring.empty();
    case Path::eager:
      break;
  }
  return false;
}

/// Every pair of sides with every set of obstacles.
template <class Visit>
void for_all_queries(const Visit& visit) {
  for (const SideFacts& sender : all_sides) {
    for (const SideFacts& receiver : all_sides) {
      for (unsigned obstacles = 0; obstacles < 256; ++obstacles) {
        PathQuery query{.bytes = 3'000'000, .sender = sender, .receiver = receiver};
        const auto why = [&](unsigned bit) {
          return (obstacles >> bit & 1U) != 0 ? std::string_view("in the way") : std::string_view();
        };
        query.no_shared = why(0);
        query.no_get = why(1);
        query.no_between = why(2);
        query.no_read = why(3);
        query.no_put = why(4);
        query.no_ring = why(5);
        query.maps_get = why(6).empty();
        query.maps_put = why(7).empty();
        visit(query);
      }
    }
  }
}

}  // namespace

TEST(PathDecision, takes_a_path_exactly_where_its_row_of_the_table_holds) {
  std::map<Path, int> taken;
  for_all_queries([&](const PathQuery& query) {
    const PathChoice choice = PathDecision({}, {}).choose(query);
    for (const Path path : chosen_paths) {
      ASSERT_EQ(lack(choice, path).empty(), is_in_table(query, path)) << name_of(path);
      const PathDecision forced({}, {}, path);
      const PathChoice forced_choice = forced.choose(query);
      ASSERT_EQ(forced_choice.path() == path, is_in_table(query, path) || choice.path() == path);
      ASSERT_EQ(forced_choice.note.empty(), is_in_table(query, path));
    }
    ASSERT_TRUE(is_in_table(query, choice.path()));
    for (const PathEstimate& estimate : choice.estimates) {
      if (!estimate.lacks.empty()) continue;
      ASSERT_LE(choice.predicted_us(), estimate.predicted_us);
    }
    ++taken[choice.path()];
  });
  for (const Path path : chosen_paths) EXPECT_GT(taken[path], 0) << name_of(path);
}

TEST(PathDecision, plans_every_row_of_its_second_table) {
  using Step = PathPlan::Step;
  const PathSizes sizes;
  const PathDecision decision({}, sizes);
  constexpr std::int64_t bytes = 3'000'000;
  const auto plan = [&](const SideFacts& sender, const SideFacts& receiver, Path path,
                        std::int64_t size = 3'000'000) {
    return decision.plan({.bytes = size, .sender = sender, .receiver = receiver}, path);
  };
  constexpr std::int64_t longest = Wire::piece_bytes_max;
  EXPECT_EQ(plan(host_run, host_run, Path::message), (PathPlan{Step::grant, longest, 0}));
  EXPECT_EQ(plan(host_parts, host_run, Path::message), (PathPlan{Step::grant, 524'288, 0}));
  EXPECT_EQ(plan(device_run, host_run, Path::message), (PathPlan{Step::grant, 524'288, 0}));
  EXPECT_EQ(plan(host_run, host_parts, Path::message), (PathPlan{Step::grant, 524'288, 4}));
  EXPECT_EQ(plan(host_run, device_run, Path::message, 600'000), (PathPlan{Step::grant, 524'288, 2}))
      << "no more slots than pieces";
  EXPECT_EQ(plan(host_run, device_run, Path::message, 0), (PathPlan{Step::grant, 524'288, 0}));
  EXPECT_EQ(plan(host_parts, host_parts, Path::shared),
            (PathPlan{Step::grant, sizes.shared_piece(bytes, false), 4}));
  EXPECT_EQ(plan(host_parts, device_run, Path::shared), (PathPlan{Step::grant, 524'288, 4}));
  EXPECT_EQ(plan(device_parts, device_parts, Path::ring, 64'000'000),
            (PathPlan{Step::grant, sizes.ring_piece(64'000'000), 8}));
  EXPECT_EQ(plan(device_parts, device_run, Path::put), (PathPlan{Step::grant, longest, 0}));
  EXPECT_EQ(plan(device_run, device_parts, Path::put), (PathPlan{Step::grant, bytes, 0}));
  EXPECT_EQ(plan(device_run, device_parts, Path::get), (PathPlan{Step::fetch, longest, 0}));
  EXPECT_EQ(plan(device_parts, locked_run, Path::get), (PathPlan{Step::fetch, bytes, 0}));
  EXPECT_EQ(plan(host_run, host_run, Path::get), (PathPlan{Step::read, sizes.read_piece_bytes, 0}));
  EXPECT_EQ(plan(host_run, host_parts, Path::get), (PathPlan{Step::read, 524'288, 1}));
}

TEST(PathDecision, sends_empty_messages_over_the_wire_whatever_is_asked_for) {
  const PathQuery query{.bytes = 0, .sender = device_run, .receiver = device_run};
  for (const Path path : chosen_paths) {
    EXPECT_EQ(PathDecision({}, {}, path).choose(query).path(), Path::message);
  }
}

// ---- expected messages -------------------------------------------------------------------------

TEST(PathDecision, posts_pieces_of_an_expected_message_only_where_the_wire_is_what_it_takes) {
  const PathDecision decision({}, {});
  PathQuery s{.bytes = 1 << 20, .sender = host_run, .receiver = host_run};
  EXPECT_FALSE(decision.posts_pieces(s, 8192)) << "the receiver's core reads";
  s.no_read = "not allowed";
  EXPECT_FALSE(decision.posts_pieces(s, 8192)) << "it passes slots in shared memory";
  s.no_shared = "apart";
  EXPECT_TRUE(decision.posts_pieces(s, 8192));
  EXPECT_FALSE(decision.posts_pieces(s, 1 << 20)) << "it goes with a note";
  for (const SideFacts& receiver : {host_parts, locked_parts, device_run}) {
    s.receiver = receiver;
    EXPECT_FALSE(decision.posts_pieces(s, 8192)) << "it is unpacked from slots";
  }
  s.receiver = host_run;
  s.no_read = {};
  EXPECT_TRUE(PathDecision({}, {}, Path::message).posts_pieces(s, 8192)) << "it is wanted";
}

TEST(PathDecision, lets_the_sender_of_an_expected_message_use_only_places_that_are_set_aside) {
  const PathDecision decision({}, {});
  const auto choice = [&](const PathQuery& s, bool are_posted = false) {
    return decision.hand_over(s, are_posted, 8192);
  };
  PathQuery s{.bytes = 0, .sender = host_run, .receiver = host_run};
  EXPECT_EQ(choice(s), Handover::deliver);
  EXPECT_EQ(choice(s, true), Handover::deliver) << "it says that it is empty";
  s.bytes = 8192;
  EXPECT_EQ(choice(s), Handover::deliver);
  EXPECT_EQ(choice(s, true), Handover::pieces);
  s.bytes = 8193;
  EXPECT_EQ(choice(s), Handover::announce) << "the receiver reads it";
  EXPECT_EQ(choice(s, true), Handover::pieces);
  s.sender = device_parts;
  EXPECT_EQ(choice(s, true), Handover::pieces) << "packed by the sender's slots";
  s = {.bytes = 8, .sender = device_run, .receiver = host_run};
  EXPECT_EQ(choice(s), Handover::announce) << "a note takes host memory only";
  s = {.bytes = 64'000'000, .sender = device_parts, .receiver = device_run};
  EXPECT_EQ(choice(s), Handover::put);
  s.maps_put = false;
  EXPECT_EQ(choice(s), Handover::announce);
  s = {.bytes = 64'000'000, .sender = device_run, .receiver = device_parts};
  EXPECT_EQ(choice(s), Handover::announce) << "the receiver's device reads it";
  s.sender = device_parts;
  EXPECT_EQ(chosen(s), Path::ring);
  EXPECT_EQ(choice(s), Handover::announce) << "slots are the receiver's to give";
}

}  // namespace heddle::p2p
