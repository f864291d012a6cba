// Messages that their receivers have told their senders of beforehand, between nodes of one
// process.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "node-runtime/transport/p2p/endpoint.hpp"
#include "tests/support/seeds.hpp"
#include "tests/transport/p2p/cluster.hpp"
#include "tests/transport/p2p/device_place.hpp"
#include "tests/transport/p2p/random_messages.hpp"

namespace heddle::p2p {
namespace {

/// What becomes of a message.
enum class Fate : std::uint8_t { fits, empty, too_short };

/// An expected message between random places of random nodes. Its tag is its number.
struct ExpectedMessage : RandomMessage {
  ExpectedMessage(std::int32_t nodes, std::int32_t number, std::mt19937_64& random)
      : RandomMessage(nodes, 600, random) {
    tag = number;
    // A room has the size of its message.
    target = random_place(scalars_in(source), random);
    while (scalars_in(target) != scalars_in(source)) {
      target = {Datatype(Scalar::int32), scalars_in(source)};
    }
    const std::uint64_t chance = random() % 8;
    if (chance == 0) fate = Fate::empty;
    if (chance == 1 && scalars_in(source) > 1) fate = Fate::too_short;
    has_room = random() % 4 != 0 || fate != Fate::fits;
    untouched = target.bytes;
    expected = fate == Fate::fits ? expected_after(target, source) : target.bytes;
  }

  /// Where both sides are; null: `source` and `target` themselves.
  PlaceOnDevice* from_place = nullptr;
  PlaceOnDevice* to_place = nullptr;

  [[nodiscard]] Envelope envelope() const { return {NodeId{from}, tag, channel}; }
  [[nodiscard]] Incoming room() {
    return {to_place ? to_place->address() : target.address(), target.count, target.type};
  }
  [[nodiscard]] Outgoing message() {
    std::byte* const memory = from_place ? from_place->address() : source.address();
    if (fate == Fate::empty) return {memory, 0, source.type};
    if (fate == Fate::too_short) return {memory, scalars_in(source) - 1, Scalar::int32};
    return {memory, source.count, source.type};
  }
  [[nodiscard]] std::vector<std::byte> content() const {
    return to_place ? to_place->content() : target.bytes;
  }

  Fate fate = Fate::fits;
  bool has_room = true;
  bool is_told = false;  ///< the sender knows of it
  std::vector<std::byte> untouched;
  std::optional<Request> receive;
  std::optional<Request> send;
};

using ExpectedMessages = std::vector<std::unique_ptr<ExpectedMessage>>;

/// Options of endpoints that hear of these messages, by their numbers.
Endpoint::Options hearing(ExpectedMessages& messages, Endpoint::Options options = small_options()) {
  options.word = [&messages](NodeId, std::span<const std::byte> word) {
    ASSERT_EQ(word.size(), sizeof(std::int32_t));
    ExpectedMessage& told = *messages.at(static_cast<std::size_t>(read<std::int32_t>(word)));
    ASSERT_FALSE(told.is_told);
    told.is_told = true;
  };
  return options;
}

void expect(Cluster& cluster, ExpectedMessage& m) {
  const auto word = bytes_of(m.tag);
  if (m.has_room) {
    m.receive = cluster.at(m.to).expect(m.room(), m.envelope(), word);
  } else {
    cluster.at(m.to).expect_without_room(m.envelope(), word);
    m.receive = cluster.at(m.to).receive(m.room(), {NodeId{m.from}, m.tag, channel});
  }
}

void send(Cluster& cluster, ExpectedMessage& m) {
  m.send = cluster.at(m.from).send_expected(m.message(), NodeId{m.to}, m.tag, channel);
}

/// Expects all, and sends each some time after its sender has heard of it. True: all are over.
bool exchange(Cluster& cluster, ExpectedMessages& messages, std::mt19937_64& random) {
  std::size_t next = 0;
  return cluster.run_until([&] {
    if (next < messages.size() && random() % 3 == 0) expect(cluster, *messages[next++]);
    for (const auto& m : messages) {
      if (m->is_told && !m->send && random() % 4 == 0) send(cluster, *m);
    }
    return next == messages.size() && std::ranges::all_of(messages, [](const auto& m) {
             return m->send && m->send->done() && m->receive->done();
           });
  });
}

void check(const ExpectedMessage& m) {
  SCOPED_TRACE(m.tag);
  if (m.fate == Fate::too_short) {
    EXPECT_NE(error_of(*m.send).find("does not fit the room of"), std::string::npos);
    EXPECT_EQ(error_of(*m.receive), error_of(*m.send));
  } else {
    const Status status = m.receive->wait();
    EXPECT_EQ(status.source, NodeId{m.from});
    EXPECT_EQ(status.tag, m.tag);
    EXPECT_FALSE(status.is_cancelled);
    EXPECT_EQ(status.bytes, m.fate == Fate::empty ? 0 : 4 * scalars_in(m.source));
    EXPECT_EQ(m.send->wait().bytes, status.bytes);
  }
  EXPECT_EQ(m.content(), m.expected);
}

EmulatedOptions device_of_a_mebibyte() {
  EmulatedOptions options;
  options.memory_bytes = std::uint64_t{1} << 20U;
  options.event_capacity = 256;
  options.fill_allocations = false;
  return options;
}

using Places = std::vector<std::unique_ptr<PlaceOnDevice>>;

/// On a device of the node, in host memory that it reaches in place, or (null) in any.
PlaceOnDevice* somewhere(Places& places, Place& place, Device& device, std::mt19937_64& random) {
  const std::uint64_t kind = random() % 3;
  if (kind == 0) return nullptr;
  const Where where = kind == 1 ? Where{&device, nullptr} : Where{nullptr, &device};
  places.push_back(std::make_unique<PlaceOnDevice>(place, where));
  return places.back().get();
}

}  // namespace

TEST(ExpectedMessages, of_every_size_and_shape_come_whole_are_empty_or_fail_on_both_sides) {
  Endpoint::Statistics all;
  for (const std::uint64_t seed : simulation::seeds(300)) {
    SCOPED_TRACE(simulation::replay_hint(seed));
    std::mt19937_64 random(seed);
    const auto nodes = static_cast<std::int32_t>(1 + random() % 4);
    ExpectedMessages messages;
    for (std::uint64_t left = 1 + random() % 40; left > 0; --left) {
      messages.push_back(std::make_unique<ExpectedMessage>(
          nodes, static_cast<std::int32_t>(messages.size()), random));
    }
    Endpoint::Options options = hearing(messages);
    if (seed % 7 == 0) options.posted_pieces_max = 3;
    Cluster cluster(nodes, seed, options);
    ASSERT_TRUE(exchange(cluster, messages, random)) << "nothing goes on";
    for (const auto& m : messages) check(*m);
    ASSERT_TRUE(cluster.run_until([&] { return cluster.is_idle(); }));
    ASSERT_EQ(cluster.net().defects(), 0);
    for (std::int32_t node = 0; node < nodes; ++node) {
      const Endpoint::Statistics s = cluster.at(node).statistics();
      for (std::size_t path = 0; path < all.sent.size(); ++path) all.sent[path] += s.sent[path];
    }
  }
  if (simulation::one_seed_only()) return;
  for (const Path path : {Path::eager, Path::message, Path::shared, Path::get}) {
    EXPECT_GT(all.sent[static_cast<std::size_t>(path)], 50) << name_of(path);
  }
}

TEST(ExpectedMessages, between_devices_and_hosts_take_the_path_that_their_sender_chooses) {
  constexpr std::uint64_t count = 60;
  const std::vector<std::uint64_t> seeds = simulation::seeds(count);
  Endpoint::Statistics all;
  for (const std::uint64_t seed : seeds) {
    SCOPED_TRACE(simulation::replay_hint(seed));
    std::mt19937_64 random(seed);
    const auto nodes = static_cast<std::int32_t>(2 + random() % 2);
    ExpectedMessages messages;
    for (std::uint64_t left = 1 + random() % 16; left > 0; --left) {
      messages.push_back(std::make_unique<ExpectedMessage>(
          nodes, static_cast<std::int32_t>(messages.size()), random));
    }
    Endpoint::Options options = hearing(messages);
    if (seed % 3 == 0) options.path = static_cast<Path>(random() % path_count);
    Cluster::Devices devices{.per_node = 1, .emulated = device_of_a_mebibyte()};
    if (seed % 4 == 1) devices.refusing_node = static_cast<std::int32_t>(seed) % nodes;
    Cluster cluster(nodes, seed, options, devices);
    Places places;
    for (const auto& m : messages) {
      m->from_place = somewhere(places, m->source, cluster.device(m->from, 0), random);
      m->to_place = somewhere(places, m->target, cluster.device(m->to, 0), random);
    }
    for (std::int32_t node = 0; node < nodes; ++node) cluster.at(node).meet_neighbours();
    ASSERT_TRUE(cluster.run_until([&] {
      for (std::int32_t node = 0; node < nodes; ++node) {
        if (!cluster.at(node).are_neighbours_known()) return false;
      }
      return true;
    }));
    ASSERT_TRUE(exchange(cluster, messages, random)) << "nothing goes on";
    for (const auto& m : messages) check(*m);
    for (const auto& m : messages) {
      for (const auto* place : {m->from_place, m->to_place}) {
        if (place == nullptr || !place->memory()) continue;
        const std::int32_t node = place == m->from_place ? m->from : m->to;
        const Request release = cluster.at(node).release(place->memory()->address());
        ASSERT_TRUE(cluster.run_until([&] { return release.done(); }));
      }
    }
    ASSERT_TRUE(cluster.close());
    ASSERT_EQ(cluster.net().defects(), 0);
    for (std::int32_t node = 0; node < nodes; ++node) {
      const Endpoint::Statistics s = cluster.at(node).statistics();
      for (std::size_t path = 0; path < all.sent.size(); ++path) all.sent[path] += s.sent[path];
    }
  }
  if (seeds.size() < count) return;  // too few for every path
  for (const Path path : {Path::eager, Path::get, Path::put, Path::ring, Path::shared}) {
    EXPECT_GT(all.sent[static_cast<std::size_t>(path)], 5) << name_of(path);
  }
}

TEST(ExpectedMessages, leave_for_another_host_without_an_answer) {
  ExpectedMessages messages;
  std::vector<double> source(1000, 3);
  std::vector<double> target(1000);
  Endpoint::Options options = small_options();
  int told = 0;
  options.word = [&](NodeId, std::span<const std::byte>) { ++told; };
  Cluster cluster(2, 1, options);  // nodes on two hosts
  const Request receive = cluster.at(1).expect({target.data(), 1000, Scalar::float64},
                                               {NodeId{0}, 5, channel}, bytes_of(7));
  ASSERT_TRUE(cluster.run_until([&] { return told == 1; }));
  const Request send =
      cluster.at(0).send_expected({source.data(), 1000, Scalar::float64}, NodeId{1}, 5, channel);
  // Only the sender goes on and the wire moves pieces: the receiver says nothing any more.
  for (int steps = 0; steps < 1000 && !send.done(); ++steps) {
    cluster.net().step();
    cluster.at(0).progress();
  }
  EXPECT_TRUE(send.done());
  EXPECT_EQ(target, source);
  ASSERT_TRUE(cluster.run_until([&] { return receive.done() && cluster.is_idle(); }));
  EXPECT_EQ(receive.wait().path, Path::message);
}

TEST(ExpectedMessages, are_not_cancelled) {
  for (const std::uint64_t seed : {1U, 2U, 4U}) {
    std::vector<double> source(1000, 3);
    std::vector<double> target(1000);
    Endpoint::Options options = small_options();
    int told = 0;
    options.word = [&](NodeId, std::span<const std::byte>) { ++told; };
    Cluster cluster(2, seed, options);
    const Request receive = cluster.at(1).expect({target.data(), 1000, Scalar::float64},
                                                 {NodeId{0}, 5, channel}, bytes_of(7));
    receive.cancel();
    ASSERT_TRUE(cluster.run_until([&] { return told == 1; }));
    const Request send =
        cluster.at(0).send_expected({source.data(), 1000, Scalar::float64}, NodeId{1}, 5, channel);
    send.cancel();
    ASSERT_TRUE(cluster.run_until([&] { return send.done() && receive.done(); }));
    EXPECT_FALSE(receive.wait().is_cancelled || send.wait().is_cancelled);
    EXPECT_EQ(target, source);
    ASSERT_TRUE(cluster.run_until([&] { return cluster.is_idle(); }));
  }
}

TEST(ExpectedMessages, fail_where_nobody_expects_them) {
  Cluster cluster(2, 1);
  const double value = 0;
  try {
    static_cast<void>(
        cluster.at(0).send_expected({&value, 1, Scalar::float64}, NodeId{1}, 5, channel));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    EXPECT_STREQ(error.what(),
                 "sending with tag 5 to node 1: it has not said that it expects such a message");
  }
  EXPECT_TRUE(cluster.at(0).is_idle());
}

TEST(ExpectedMessages, fail_with_a_node_that_is_lost_at_any_time) {
  for (const std::uint64_t seed : simulation::seeds(200)) {
    SCOPED_TRACE(simulation::replay_hint(seed));
    std::mt19937_64 random(seed);
    constexpr std::int32_t nodes = 3;
    ExpectedMessages messages;
    for (std::uint64_t left = 5 + random() % 20; left > 0; --left) {
      messages.push_back(std::make_unique<ExpectedMessage>(
          nodes, static_cast<std::int32_t>(messages.size()), random));
    }
    Cluster cluster(nodes, seed, hearing(messages));
    const auto lost = static_cast<std::int32_t>(random() % nodes);
    const auto touches = [&](const ExpectedMessage& m) { return m.from == lost || m.to == lost; };
    for (const auto& m : messages) expect(cluster, *m);
    const auto send_some = [&] {
      for (const auto& m : messages) {
        if (m->is_told && !m->send && random() % 4 == 0) send(cluster, *m);
      }
    };
    for (std::uint64_t steps = random() % 300; steps > 0; --steps) {
      send_some();
      cluster.step();
    }
    cluster.lose(lost);
    // What the others do not know yet they never hear.
    for (const auto& m : messages) {
      if (touches(*m) && (m->from == lost || !m->is_told)) m->is_told = false;
    }
    ASSERT_TRUE(cluster.run_until([&] {
      send_some();
      return std::ranges::all_of(messages, [&](const auto& m) {
        if (!touches(*m)) return m->send && m->send->done() && m->receive->done();
        const bool is_received = m->to == lost || m->receive->done();
        return is_received && (m->from == lost || !m->send || m->send->done());
      });
    })) << "nothing goes on";
    for (const auto& m : messages) {
      if (!touches(*m)) check(*m);
      if (m->from == lost && m->to != lost && m->fate == Fate::fits) {
        const std::string error = error_of(*m->receive);
        const bool has_come = error.empty() && m->target.bytes == m->expected;
        EXPECT_TRUE(has_come || error.find("lost") != std::string::npos) << error;
      }
    }
    ASSERT_TRUE(cluster.run_until([&] { return cluster.is_idle(); }));
  }
}

}  // namespace heddle::p2p
