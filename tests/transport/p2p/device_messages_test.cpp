// Messages from and to memory of devices, by every path, between nodes of one process.

#include <array>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "node-runtime/transport/p2p/endpoint.hpp"
#include "tests/support/seeds.hpp"
#include "tests/transport/p2p/cluster.hpp"
#include "tests/transport/p2p/device_place.hpp"
#include "tests/transport/p2p/random_messages.hpp"

namespace heddle::p2p {
namespace {

EmulatedOptions small_device() {
  EmulatedOptions options;
  options.memory_bytes = std::uint64_t{1} << 20U;
  options.event_capacity = 256;
  options.fill_allocations = false;
  return options;
}

struct DeviceMessage : RandomMessage {
  DeviceMessage(Cluster& cluster, std::int32_t nodes, std::int32_t devices, std::mt19937_64& random)
      : RandomMessage(nodes, 600, random),
        untouched(target.bytes),
        sender(source, somewhere(cluster, from, devices, random)),
        receiver(target, somewhere(cluster, to, devices, random)) {}

  /// On a device, in host memory that one reaches, or in any.
  static Where somewhere(Cluster& cluster, std::int32_t node, std::int32_t devices,
                         std::mt19937_64& random) {
    Device& device = cluster.device(
        node, static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(devices)));
    switch (random() % 5) {
      case 0:
        return {};
      case 1:
      case 2:
        return {nullptr, &device};
      default:
        return {&device, nullptr};
    }
  }
  void start_send(Cluster& cluster) {
    send = cluster.at(from).send({sender.address(), source.count, source.type}, NodeId{to}, tag,
                                 channel);
  }
  void start_receive(Cluster& cluster) {
    receive = cluster.at(to).receive({receiver.address(), target.count, target.type},
                                     {NodeId{from}, tag, channel});
  }

  std::vector<std::byte> untouched;
  PlaceOnDevice sender;
  PlaceOnDevice receiver;
  std::optional<Request> send;
  std::optional<Request> receive;
};

using Messages = std::vector<std::unique_ptr<DeviceMessage>>;

/// Sends and receives, each in order, at their own pace; true: all have come to their end.
bool exchange(Cluster& cluster, Messages& messages, std::mt19937_64& random) {
  std::size_t sent = 0;
  std::size_t received = 0;
  while (sent < messages.size() || received < messages.size()) {
    const bool sends = received == messages.size() || (sent < messages.size() && random() % 2 == 0);
    sends ? messages[sent++]->start_send(cluster) : messages[received++]->start_receive(cluster);
    for (std::uint64_t steps = random() % 8; steps > 0; --steps) cluster.step();
  }
  return cluster.run_until([&] {
    return std::ranges::all_of(messages,
                               [](const auto& m) { return m->send->done() && m->receive->done(); });
  });
}

Messages random_messages(Cluster& cluster, std::int32_t nodes, std::int32_t devices,
                         std::uint64_t count, std::mt19937_64& random) {
  Messages messages;
  for (; count > 0; --count) {
    messages.push_back(std::make_unique<DeviceMessage>(cluster, nodes, devices, random));
  }
  return messages;
}

std::string name_of_case(const ::testing::TestParamInfo<std::optional<Path>>& info) {
  return info.param ? std::string(name_of(*info.param)) : "chosen";
}

class DeviceMessages : public ::testing::TestWithParam<std::optional<Path>> {};

}  // namespace

TEST_P(DeviceMessages, come_as_they_were_sent) {
  Endpoint::Statistics all;
  for (const std::uint64_t seed : simulation::seeds(24)) {
    SCOPED_TRACE(simulation::replay_hint(seed));
    std::mt19937_64 random(seed);
    const auto nodes = static_cast<std::int32_t>(1 + random() % 3);
    const auto devices = static_cast<std::int32_t>(1 + random() % 2);
    Endpoint::Options options = small_options();
    options.path = GetParam();
    options.mappings_max = static_cast<std::int32_t>(1 + random() % 4);
    options.lanes.blocks_max = static_cast<std::uint32_t>(random() % 3);
    Cluster::Devices wanted{devices, small_device(), -1};
    wanted.emulated.faults.delay_us_max = random() % 2 == 0 ? 100 : 0;
    // One copy that all others overtake.
    wanted.emulated.faults.slow_copy = random() % 40;
    wanted.emulated.faults.slow_copy_us = 5000;
    wanted.emulated.faults.refuse_peers = random() % 8 == 0;
    if (random() % 4 == 0) wanted.refusing_node = 0;
    Cluster cluster(nodes, seed, options, wanted);
    {
      Messages messages = random_messages(cluster, nodes, devices, 1 + random() % 24, random);
      // Twice: the second time their memory is mapped.
      for (int round = 0; round < 2; ++round) {
        for (const auto& m : messages) m->receiver.load(m->untouched);
        ASSERT_TRUE(exchange(cluster, messages, random)) << "nothing goes on";
        for (const auto& m : messages) {
          ASSERT_EQ(error_of(*m->receive), "");
          ASSERT_EQ(error_of(*m->send), "");
          ASSERT_EQ(m->receive->wait().bytes, 4 * scalars_in(m->source));
          ASSERT_EQ(m->receiver.content(), m->expected);
        }
      }
      ASSERT_TRUE(cluster.run_until([&] { return cluster.is_idle(); }));
      // Nobody has the memory mapped when it is freed.
      std::vector<Request> releases;
      for (const auto& m : messages) {
        if (m->sender.memory())
          releases.push_back(cluster.at(m->from).release(m->sender.address()));
        if (m->receiver.memory()) {
          releases.push_back(cluster.at(m->to).release(m->receiver.address()));
        }
      }
      ASSERT_TRUE(cluster.run_until([&] {
        return std::ranges::all_of(releases, [](const Request& r) { return r.done(); });
      }));
      for (const Request& release : releases) ASSERT_EQ(error_of(release), "");
    }
    ASSERT_TRUE(cluster.close());
    ASSERT_EQ(cluster.net().defects(), 0);
    for (std::int32_t node = 0; node < nodes; ++node) {
      EXPECT_EQ(cluster.mapper(node).open_count, 0);
      const Endpoint::Statistics s = cluster.at(node).statistics();
      for (std::size_t path = 0; path < all.sent.size(); ++path) {
        all.sent[path] += s.sent[path];
        all.received[path] += s.received[path];
      }
    }
  }
  EXPECT_EQ(all.sent, all.received);
  // Few seeds need not come upon everything.
  if (!GetParam() || simulation::seeds(24).size() < 24) return;
  EXPECT_GT(all.sent[static_cast<std::size_t>(*GetParam())], 0) << "the forced path";
}

INSTANTIATE_TEST_SUITE_P(Paths, DeviceMessages,
                         ::testing::Values(std::nullopt, Path::message, Path::shared, Path::get,
                                           Path::put, Path::ring),
                         name_of_case);

/// Any copy or kernel of a device may fail: the messages that it was for fail, on both sides or on
/// the side that failed; others come as they should, and nothing stays behind.
TEST(DeviceFaults, end_messages_on_both_sides) {
  std::int64_t failed = 0;
  for (const std::uint64_t seed : simulation::seeds(60)) {
    SCOPED_TRACE(simulation::replay_hint(seed));
    std::mt19937_64 random(seed);
    Endpoint::Options options = small_options();
    options.path = static_cast<Path>(random() % path_count);
    Cluster::Devices wanted{1, small_device(), -1};
    (random() % 2 == 0 ? wanted.emulated.faults.fail_copy : wanted.emulated.faults.fail_kernel) =
        1 + random() % 20;
    Cluster cluster(2, seed, options, wanted);
    {
      Messages messages;
      try {
        messages = random_messages(cluster, 2, 1, 1 + random() % 12, random);
      } catch (const Error&) {
        continue;  // the copy that failed was the test's own
      }
      ASSERT_TRUE(exchange(cluster, messages, random)) << "nothing goes on";
      for (const auto& m : messages) {
        const std::string at_receiver = error_of(*m->receive);
        if (!at_receiver.empty()) {
          ++failed;
          const bool is_cause = at_receiver.find("injected") != std::string::npos;
          const bool is_consequence = at_receiver.find("have failed") != std::string::npos;
          EXPECT_TRUE(is_cause || is_consequence) << at_receiver;
        } else {
          EXPECT_EQ(error_of(*m->send), "");
        }
      }
      ASSERT_TRUE(cluster.run_until([&] { return cluster.is_idle(); }));
    }
    ASSERT_TRUE(cluster.close());
    ASSERT_EQ(cluster.net().defects(), 0);
  }
  if (simulation::seeds(60).size() == 60) {
    EXPECT_GT(failed, 0);
  }
}

/// Twice, so that what is mapped for the second message is used.
TEST(DeviceMessages, memory_that_others_allocated_is_found_wherever_it_is) {
  for (const bool is_shared : {true, false}) {
    EmulatedOptions emulated = small_device();
    emulated.foreign_bytes = 1 << 16;
    emulated.faults.refuse_sharing = !is_shared;
    Cluster cluster(2, 4, small_options(), {1, emulated, -1});
    auto& here = dynamic_cast<EmulatedDevice&>(cluster.device(0, 0));
    auto& there = dynamic_cast<EmulatedDevice&>(cluster.device(1, 0));
    const Datatype apart = Datatype::vector(50, 1, 2, Scalar::float64);
    for (const Datatype& from_type : {apart, Datatype::contiguous(50, Scalar::float64)}) {
      for (const Datatype& to_type : {apart, Datatype::contiguous(50, Scalar::float64)}) {
        std::byte* const from = here.allocate_foreign(1000);
        std::byte* const to = there.allocate_foreign(1000);
        for (int round = 1; round <= 2; ++round) {
          std::fill_n(reinterpret_cast<double*>(from), 100, round);
          std::fill_n(reinterpret_cast<double*>(to), 100, -1);
          const auto send = cluster.at(0).send({from, 1, from_type}, NodeId{1}, 0, channel);
          const auto receive = cluster.at(1).receive({to, 1, to_type}, {NodeId{0}, 0, channel});
          ASSERT_TRUE(cluster.run_until([&] { return send.done() && receive.done(); }));
          const Path path = receive.wait().path;
          EXPECT_EQ(path == Path::get || path == Path::put, is_shared && round == 2)
              << name_of(path);
          const std::span target(reinterpret_cast<const double*>(to), 100);
          EXPECT_EQ(std::ranges::count(target, round), 50);
          EXPECT_EQ(std::ranges::count(target, -1), 50);
        }
        const auto releasing = {cluster.at(0).release(from), cluster.at(1).release(to)};
        ASSERT_TRUE(cluster.run_until([&] {
          return std::ranges::all_of(releasing, [](const Request& r) { return r.done(); });
        }));
        here.free_foreign(from);
        there.free_foreign(to);
      }
    }
    EXPECT_EQ(cluster.mapper(0).open_count, 1) << "the other's ring";
    ASSERT_TRUE(cluster.close());
  }
}

TEST(DeviceMessages, host_memory_is_looked_up_once_for_short_messages_and_always_for_long_ones) {
  EmulatedOptions emulated = small_device();
  emulated.foreign_bytes = 1 << 16;
  EmulatedDevice device(0, emulated);
  std::byte* const place = device.allocate_foreign(1000);
  device.free_foreign(place);  // where nobody's memory is
  class Nobody final : public Notifier {
    void notify() noexcept override {}
  } nobody;
  const std::array<Device*, 1> devices{&device};
  const Lanes lanes(devices, small_options().lanes, nobody);
  EXPECT_EQ(lanes.owner_of(place, 8), std::nullopt);
  std::byte* const now = device.allocate_foreign(1000);
  ASSERT_EQ(now, place);
  EXPECT_EQ(lanes.owner_of(place, 8), std::nullopt) << "as it was remembered";
  EXPECT_EQ(lanes.owner_of(place, 1 << 20), LaneId{0});
  EXPECT_EQ(lanes.owner_of(place, 8), LaneId{0}) << "and what was remembered is forgotten";
  device.free_foreign(now);
}

TEST(DeviceFaults, refused_mappings_are_tried_once_and_explained) {
  Endpoint::Options options = small_options();
  std::vector<MessageReport> reports;
  options.report = [&](const MessageReport& report) { reports.push_back(report); };
  Cluster cluster(2, 2, options, {1, small_device(), 1});
  {
    const DeviceBuffer from(cluster.device(0, 0), 4000);
    const DeviceBuffer to(cluster.device(1, 0), 4000);
    for (int round = 0; round < 3; ++round) {
      const auto send =
          cluster.at(0).send({from.address(), 4000, Scalar::byte}, NodeId{1}, 0, channel);
      const auto receive =
          cluster.at(1).receive({to.address(), 4000, Scalar::byte}, {NodeId{0}, 0, channel});
      ASSERT_TRUE(cluster.run_until([&] { return send.done() && receive.done(); }));
      EXPECT_EQ(receive.wait().bytes, 4000);
    }
    ASSERT_EQ(reports.size(), 3U);
    // Node 1 cannot read node 0's memory, but node 0 may write to node 1's.
    EXPECT_EQ(name_of(reports[0].path), "ring");
    EXPECT_EQ(name_of(reports[1].path), "put");
    EXPECT_EQ(name_of(reports[2].path), "put");
    const auto get =
        std::ranges::find(reports[2].choice->estimates, Path::get, &PathEstimate::path);
    EXPECT_EQ(get->lacks, "mappings are refused here");
    const auto releasing = {cluster.at(0).release(from.address()),
                            cluster.at(1).release(to.address())};
    ASSERT_TRUE(cluster.run_until(
        [&] { return std::ranges::all_of(releasing, [](const Request& r) { return r.done(); }); }));
  }
  ASSERT_TRUE(cluster.close());
}

TEST(DeviceFaults, memory_in_use_is_not_released_and_freed_memory_is_named) {
  Cluster cluster(2, 2, small_options(), {1, small_device(), -1});
  const Datatype sparse = Datatype::vector(100, 1, 2, Scalar::float64);
  {
    std::optional<DeviceBuffer> from(std::in_place, cluster.device(0, 0), 4000);
    const DeviceBuffer to(cluster.device(1, 0), 4000);
    const auto send = cluster.at(0).send({from->address(), 1, sparse}, NodeId{1}, 7, channel);
    const auto early = cluster.at(0).release(from->address() + 8);
    ASSERT_TRUE(cluster.run_until([&] { return early.done(); }));
    EXPECT_NE(error_of(early).find("a message of 800 bytes with tag 7 is being sent from it to "
                                   "node 1"),
              std::string::npos)
        << error_of(early);
    from.reset();  // in flight
    const auto receive = cluster.at(1).receive({to.address(), 1, sparse}, {NodeId{0}, 7, channel});
    ASSERT_TRUE(cluster.run_until([&] { return send.done() && receive.done(); }));
    EXPECT_NE(error_of(send).find("sending 800 bytes with tag 7 from node 0 to node 1"),
              std::string::npos)
        << error_of(send);
    EXPECT_EQ(error_of(send), error_of(receive));
    EXPECT_THROW(static_cast<void>(cluster.at(0).release(&cluster)), Error);
  }
  ASSERT_TRUE(cluster.close());
}

TEST(DeviceFaults, a_lost_node_leaves_no_operation_and_no_mapping_behind) {
  for (const std::uint64_t seed : simulation::seeds(40)) {
    SCOPED_TRACE(simulation::replay_hint(seed));
    std::mt19937_64 random(seed);
    Endpoint::Options options = small_options();
    options.path = static_cast<Path>(random() % path_count);
    Cluster::Devices wanted{1, small_device(), -1};
    wanted.emulated.faults.delay_us_max = 200;
    Cluster cluster(3, seed, options, wanted);
    Messages messages = random_messages(cluster, 3, 1, 12, random);
    for (const auto& m : messages) {
      m->start_send(cluster);
      m->start_receive(cluster);
    }
    for (std::uint64_t steps = random() % 300; steps > 0; --steps) cluster.step();
    cluster.lose(2);
    ASSERT_TRUE(cluster.run_until([&] {
      return std::ranges::all_of(messages, [](const auto& m) {
        return (m->from == 2 || m->send->done()) && (m->to == 2 || m->receive->done());
      });
    }));
    for (const auto& m : messages) {
      if (m->from == 2 || m->to == 2) continue;
      EXPECT_EQ(error_of(*m->receive), "");
      EXPECT_EQ(m->receiver.content(), m->expected);
    }
    ASSERT_TRUE(cluster.run_until([&] { return cluster.is_idle(); }));
    std::vector<Request> releases;
    for (const auto& m : messages) {
      if (m->from != 2 && m->sender.memory()) {
        releases.push_back(cluster.at(m->from).release(m->sender.address()));
      }
      if (m->to != 2 && m->receiver.memory()) {
        releases.push_back(cluster.at(m->to).release(m->receiver.address()));
      }
    }
    ASSERT_TRUE(cluster.run_until(
        [&] { return std::ranges::all_of(releases, [](const Request& r) { return r.done(); }); }));
    ASSERT_TRUE(cluster.close());
    EXPECT_EQ(cluster.mapper(0).open_count + cluster.mapper(1).open_count, 0);
  }
}

TEST(Neighbours, map_each_other_s_devices_before_there_is_anything_to_do) {
  Cluster::Devices devices;
  devices.per_node = 2;
  devices.refusing_node = 2;
  Cluster cluster(3, 7, small_options(), devices);
  for (const std::int32_t node : {0, 1, 2}) {
    EXPECT_FALSE(cluster.at(node).are_neighbours_known());
    cluster.at(node).meet_neighbours();
  }
  EXPECT_TRUE(cluster.run_until([&] {
    return cluster.at(0).are_neighbours_known() && cluster.at(1).are_neighbours_known() &&
           cluster.at(2).are_neighbours_known();
  }));
  // Each device maps both devices of both others.
  EXPECT_EQ(cluster.mapper(0).open_count, 8);
  EXPECT_EQ(cluster.mapper(1).open_count, 8);
  EXPECT_EQ(cluster.mapper(2).open_count, 0);
  EXPECT_TRUE(cluster.close());
  EXPECT_EQ(cluster.mapper(0).open_count, 0);
}

TEST(Neighbours, that_do_not_come_are_named) {
  Cluster::Devices devices;
  devices.per_node = 1;
  Cluster cluster(3, 7, small_options(), devices);
  cluster.at(2).meet_neighbours();
  std::string error;
  try {
    cluster.at(0).await_neighbours(std::chrono::milliseconds(20));
  } catch (const Error& failure) {
    EXPECT_EQ(failure.code(), ErrorCode::communication);
    error = failure.what();
  }
  EXPECT_NE(error.find("node 0: within 0.02 s"), std::string::npos) << error;
  EXPECT_NE(error.find("devices they have: 1"), std::string::npos) << error;
  cluster.at(1).meet_neighbours();
  EXPECT_TRUE(cluster.run_until([&] { return cluster.at(0).are_neighbours_known(); }));
  EXPECT_TRUE(cluster.close());
}

TEST(Neighbours, without_devices_say_so) {
  Cluster::Devices devices;
  devices.per_node = 1;
  devices.bare_node = 1;
  Cluster cluster(2, 7, small_options(), devices);
  cluster.at(0).meet_neighbours();
  EXPECT_FALSE(cluster.at(0).are_neighbours_known());
  cluster.at(1).meet_neighbours();
  EXPECT_TRUE(cluster.run_until([&] { return cluster.at(0).are_neighbours_known(); }));
  EXPECT_TRUE(cluster.close());
}

}  // namespace heddle::p2p
