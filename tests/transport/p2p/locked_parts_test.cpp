// Messages between page-locked host memory of one node and a device of another one, contiguous or
// not on either side.

#include <algorithm>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "node-runtime/transport/p2p/endpoint.hpp"
#include "node-runtime/transport/p2p/locked_pages.hpp"
#include "tests/transport/p2p/cluster.hpp"
#include "tests/transport/p2p/device_place.hpp"
#include "tests/transport/p2p/random_messages.hpp"

namespace heddle::p2p {
namespace {

constexpr std::int64_t matrix_order = 20;

/// What is sent and what is received, and which way it comes once memory is mapped.
struct Parts {
  std::string name;
  Datatype from;
  Datatype to;
  Path to_device = Path::put;  ///< from the host
  Path to_host = Path::get;    ///< from a device
};

/// Blocks of lengths and at distances that no loop describes, as many doubles as in a matrix.
Datatype list_of_blocks() {
  std::vector<Datatype::IndexedBlock> blocks;
  std::int64_t at = 0;
  for (std::int64_t left = matrix_order * matrix_order, i = 0; left > 0; ++i) {
    const std::int64_t length = std::min<std::int64_t>(left, 1 + i * i % 31);
    blocks.push_back({at, length});
    at += length + 1 + i % 3;
    left -= length;
  }
  return Datatype::indexed(blocks, Scalar::float64);
}

std::vector<Parts> all_parts() {
  const Datatype run = Datatype::contiguous(matrix_order * matrix_order, Scalar::float64);
  const Datatype part =
      Datatype::vector(matrix_order, matrix_order, matrix_order + 3, Scalar::float64);
  const Datatype aligned = Datatype::vector(matrix_order, 24, 32, Scalar::float64);
  const Datatype wider =
      Datatype::vector(matrix_order, matrix_order, matrix_order + 9, Scalar::float64);
  const Datatype halves =
      Datatype::vector(2 * matrix_order, matrix_order / 2, matrix_order + 1, Scalar::float64);
  const auto triangle = [](Datatype::TriangleShape::Part which, std::int64_t leading) {
    return Datatype::triangle(
        {.part = which, .rows = matrix_order, .columns = matrix_order, .leading = leading},
        Scalar::float64);
  };
  const Datatype lower = triangle(Datatype::TriangleShape::Part::lower, matrix_order);
  const Datatype upper = triangle(Datatype::TriangleShape::Part::upper, matrix_order + 2);
  const Datatype packed =
      Datatype::contiguous(matrix_order * (matrix_order + 1) / 2, Scalar::float64);
  const Datatype transposed = Datatype::hvector(
      matrix_order, 1, 8, Datatype::vector(matrix_order, 1, matrix_order, Scalar::float64));
  const Datatype list = list_of_blocks();
  return {
      {"contiguous", run, run},
      {"sub-matrix", part, part},
      {"sub-matrix as copy engines like it", aligned, aligned},
      {"sub-matrix to another leading dimension", part, wider},
      {"sub-matrix to half columns", part, halves},
      {"lower triangle", lower, lower},
      {"upper triangle", upper, upper},
      {"gather", part, run},
      {"scatter", run, part},
      {"transpose of what is received", run, transposed},
      {"transpose of what is sent", transposed, run},
      {"triangle to a run", lower, packed, Path::put, Path::ring},
      {"run to a triangle", packed, lower, Path::ring, Path::get},
      {"lower to upper triangle", lower, upper, Path::ring, Path::ring},
      {"list to a run", list, run, Path::put, Path::ring},
      {"run to a list", run, list, Path::ring, Path::get},
      {"list to a list", list, list, Path::ring, Path::ring},
      {"list to a sub-matrix", list, part, Path::ring, Path::ring},
      {"sub-matrix to a list", part, list, Path::ring, Path::ring},
      {"sub-matrix to a transpose", part, transposed, Path::put, Path::ring},
  };
}

Cluster::Devices some_devices(std::int32_t per_node) {
  Cluster::Devices devices;
  devices.per_node = per_node;
  devices.emulated.memory_bytes = std::uint64_t{1} << 20U;
  devices.emulated.event_capacity = 256;
  return devices;
}

/// Several pieces by rings, and cores so slow that devices' ways are better.
Endpoint::Options fast_devices() {
  Endpoint::Options options = small_options();
  options.rates.host = 1e-4;
  return options;
}

/// One message from node 0 to node 1, with sentinels around what is received.
struct PartsMessage {
  PartsMessage(const Parts& parts, const Where& from, const Where& to)
      : source(parts.from, 1), target(parts.to, 1) {
    std::mt19937_64 random(7);
    source.fill(random);
    expected = expected_after(target, source);
    Place zero = source;
    std::ranges::fill(zero.bytes, std::byte{0});
    zeroed = expected_after(target, zero);
    sender.emplace(source, from);
    receiver.emplace(target, to);
  }
  void send(Cluster& cluster) {
    sending = cluster.at(0).send({sender->address(), 1, source.type}, NodeId{1}, 3, channel);
  }
  void receive(Cluster& cluster) {
    receiving =
        cluster.at(1).receive({receiver->address(), 1, target.type}, {NodeId{0}, 3, channel});
  }
  /// What is not to be written still has its sentinels.
  [[nodiscard]] bool surroundings_are_untouched() const {
    std::vector<std::byte> found;
    try {
      found = receiver->content();
    } catch (const Error&) {  // the operation that was to fail was the test's own
      found = receiver->content();
    }
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (zeroed[i] == sentinel && found[i] != sentinel) return false;
    }
    return true;
  }
  [[nodiscard]] bool is_over() const { return sending->done() && receiving->done(); }
  /// So that it can be freed.
  [[nodiscard]] bool release(Cluster& cluster) {
    std::vector<Request> releases;
    if (sender->memory()) releases.push_back(cluster.at(0).release(sender->address()));
    if (receiver->memory()) releases.push_back(cluster.at(1).release(receiver->address()));
    return cluster.run_until(
        [&] { return std::ranges::all_of(releases, [](const Request& r) { return r.done(); }); });
  }

  Place source;
  Place target;
  std::vector<std::byte> expected;
  std::vector<std::byte> zeroed;  ///< what is expected of zeros
  std::optional<PlaceOnDevice> sender;
  std::optional<PlaceOnDevice> receiver;
  std::optional<Request> sending;
  std::optional<Request> receiving;
};

}  // namespace

/// Twice, as the first message finds nothing mapped. The host's memory is what the last of its
/// node's devices reaches, and no other.
TEST(LockedParts, come_by_devices_in_both_directions) {
  for (const Parts& parts : all_parts()) {
    for (const bool to_device : {true, false}) {
      for (const std::int32_t devices : {1, 2}) {
        SCOPED_TRACE(fmt::format("{}, {}, {} devices", parts.name,
                                 to_device ? "to a device" : "to the host", devices));
        Cluster cluster(2, 4, fast_devices(), some_devices(devices));
        {
          const Where host{nullptr, &cluster.device(to_device ? 0 : 1, devices - 1)};
          const Where device{&cluster.device(to_device ? 1 : 0, 0), nullptr};
          PartsMessage message(parts, to_device ? host : device, to_device ? device : host);
          for (int round = 0; round < 2; ++round) {
            message.receiver->load(std::vector<std::byte>(message.expected.size(), sentinel));
            message.send(cluster);
            message.receive(cluster);
            ASSERT_TRUE(cluster.run_until([&] { return message.is_over(); }));
            ASSERT_EQ(error_of(*message.receiving), "");
            ASSERT_EQ(error_of(*message.sending), "");
            ASSERT_EQ(message.receiver->content(), message.expected);
          }
          EXPECT_EQ(name_of(message.receiving->wait().path),
                    name_of(to_device ? parts.to_device : parts.to_host));
          ASSERT_TRUE(message.release(cluster));
        }
        ASSERT_TRUE(cluster.close());
        EXPECT_EQ(cluster.net().defects(), 0);
      }
    }
  }
}

TEST(LockedParts, are_packed_by_cores_where_devices_reach_only_a_part_of_them) {
  Cluster cluster(2, 4, fast_devices(), some_devices(1));
  {
    const Datatype part =
        Datatype::vector(matrix_order, matrix_order, matrix_order + 3, Scalar::float64);
    constexpr std::size_t page_bytes = 4096;
    const HostPages pages(2 * page_bytes);
    // All but the last column, or so.
    const LockedPages locked(cluster.device(0, 0), pages.span().first(page_bytes));
    std::byte* const begin = pages.span().data() + 512;
    for (std::size_t i = 0; i < 2 * page_bytes; ++i) {
      pages.span()[i] = static_cast<std::byte>(i * 7 + i / 256);
    }
    const DeviceBuffer target(cluster.device(1, 0), page_bytes);
    for (int round = 0; round < 2; ++round) {
      const auto send = cluster.at(0).send({begin, 1, part}, NodeId{1}, 0, channel);
      const auto receive =
          cluster.at(1).receive({target.address(), matrix_order * matrix_order, Scalar::float64},
                                {NodeId{0}, 0, channel});
      ASSERT_TRUE(cluster.run_until([&] { return send.done() && receive.done(); }));
      EXPECT_EQ(name_of(receive.wait().path), "shared");
    }
    std::vector<std::byte> found(static_cast<std::size_t>(part.size()));
    copy(cluster.device(1, 0), found.data(), target.address(), found.size(), false);
    std::vector<std::byte> expected(found.size());
    pack(make_plan(part), 1, begin, {0, part.size()}, expected.data());
    EXPECT_EQ(found, expected);
    const auto release = cluster.at(1).release(target.address());
    ASSERT_TRUE(cluster.run_until([&] { return release.done(); }));
  }
  ASSERT_TRUE(cluster.close());
}

/// The node with the host memory cannot map the device: it says so once, and a core packs.
TEST(LockedParts, come_by_cores_where_mappings_are_refused) {
  for (const bool to_device : {true, false}) {
    SCOPED_TRACE(to_device);
    Cluster::Devices devices = some_devices(1);
    devices.refusing_node = to_device ? 0 : 1;
    Endpoint::Options options = fast_devices();
    std::vector<MessageReport> reports;
    options.report = [&](const MessageReport& report) { reports.push_back(report); };
    Cluster cluster(2, 4, options, devices);
    {
      const Where host{nullptr, &cluster.device(to_device ? 0 : 1, 0)};
      const Where device{&cluster.device(to_device ? 1 : 0, 0), nullptr};
      PartsMessage message(all_parts()[1], to_device ? host : device, to_device ? device : host);
      for (int round = 0; round < 3; ++round) {
        message.receiver->load(std::vector<std::byte>(message.expected.size(), sentinel));
        message.send(cluster);
        message.receive(cluster);
        ASSERT_TRUE(cluster.run_until([&] { return message.is_over(); }));
        ASSERT_EQ(error_of(*message.receiving), "");
        ASSERT_EQ(message.receiver->content(), message.expected);
      }
      ASSERT_EQ(reports.size(), 3U);
      const Path direct = to_device ? Path::put : Path::get;
      const auto lost =
          std::ranges::find(reports[2].choice->estimates, direct, &PathEstimate::path);
      EXPECT_EQ(lost->lacks, "mappings are refused here");
      EXPECT_NE(reports[2].path, direct);
      ASSERT_TRUE(message.release(cluster));
    }
    ASSERT_TRUE(cluster.close());
  }
}

/// Nothing of the receiver's is touched, and the next message takes its place.
TEST(LockedParts, are_taken_back_before_they_are_received) {
  Cluster cluster(2, 4, fast_devices(), some_devices(1));
  {
    const Where host{nullptr, &cluster.device(0, 0)};
    const Where device{&cluster.device(1, 0), nullptr};
    for (const Parts& parts : all_parts()) {
      SCOPED_TRACE(parts.name);
      PartsMessage message(parts, host, device);
      message.send(cluster);
      for (int steps = 0; steps < 20; ++steps) cluster.step();
      message.sending->cancel();
      ASSERT_TRUE(cluster.run_until([&] { return message.sending->done(); }));
      EXPECT_TRUE(message.sending->wait().is_cancelled);
      EXPECT_EQ(message.receiver->content(), message.target.bytes);
      message.send(cluster);
      message.receive(cluster);
      ASSERT_TRUE(cluster.run_until([&] { return message.is_over(); }));
      EXPECT_EQ(message.receiver->content(), message.expected);
      ASSERT_TRUE(message.release(cluster));
    }
  }
  ASSERT_TRUE(cluster.close());
}

/// Any copy or kernel of either device may fail: both sides hear of it, or all came well; what is
/// around the receiver's elements is as it was, and nothing stays behind.
TEST(LockedParts, fail_on_both_sides_with_what_moves_them) {
  int failed = 0;
  for (const Parts& parts : all_parts()) {
    for (const bool to_device : {true, false}) {
      for (std::uint64_t number = 1; number <= 6; ++number) {
        SCOPED_TRACE(fmt::format("{}, {}, operation {}", parts.name,
                                 to_device ? "to a device" : "to the host", number));
        Cluster::Devices devices = some_devices(1);
        devices.emulated.faults.fail_kernel = number;
        devices.emulated.faults.fail_copy = number + 1;  // the first one is the test's
        Cluster cluster(2, 4, fast_devices(), devices);
        {
          const Where host{nullptr, &cluster.device(to_device ? 0 : 1, 0)};
          const Where device{&cluster.device(to_device ? 1 : 0, 0), nullptr};
          PartsMessage message(parts, to_device ? host : device, to_device ? device : host);
          for (int round = 0; round < 2; ++round) {
            message.send(cluster);
            message.receive(cluster);
            ASSERT_TRUE(cluster.run_until([&] { return message.is_over(); }));
            if (error_of(*message.receiving).empty()) continue;
            ++failed;
            const std::string why = error_of(*message.receiving);
            EXPECT_TRUE(why.find("injected") != std::string::npos ||
                        why.find("have failed") != std::string::npos)
                << why;
          }
          ASSERT_TRUE(message.surroundings_are_untouched());
          ASSERT_TRUE(cluster.run_until([&] { return cluster.is_idle(); }));
          ASSERT_TRUE(message.release(cluster));
        }
        ASSERT_TRUE(cluster.close());
        ASSERT_EQ(cluster.net().defects(), 0);
      }
    }
  }
  EXPECT_GT(failed, 0);
}

}  // namespace heddle::p2p
