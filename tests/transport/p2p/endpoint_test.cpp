#include "node-runtime/transport/p2p/endpoint.hpp"

#include <algorithm>
#include <atomic>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/seeds.hpp"
#include "tests/transport/p2p/cluster.hpp"
#include "tests/transport/p2p/random_messages.hpp"

namespace heddle::p2p {

namespace {

Request begin_send(Endpoint& endpoint, RandomMessage& m, bool at_once) {
  const Outgoing message{m.source.address(), m.source.count, m.source.type};
  return at_once ? endpoint.send_at_once(message, NodeId{m.to}, m.tag, channel)
                 : endpoint.send(message, NodeId{m.to}, m.tag, channel);
}

Request begin_receive(Endpoint& endpoint, RandomMessage& m, bool at_once) {
  const Incoming room{m.target.address(), m.target.count, m.target.type};
  const Pattern pattern{NodeId{m.from}, m.tag, channel};
  return at_once ? endpoint.receive_at_once(room, pattern) : endpoint.receive(room, pattern);
}

}  // namespace

TEST(Endpoint, brings_messages_of_every_size_and_shape_to_their_receives) {
  Endpoint::Statistics all;
  for (const std::uint64_t seed : simulation::seeds(300)) {
    SCOPED_TRACE(simulation::replay_hint(seed));
    std::mt19937_64 random(seed);
    const auto nodes = static_cast<std::int32_t>(1 + random() % 4);
    Cluster cluster(nodes, seed);
    struct Message : RandomMessage {
      using RandomMessage::RandomMessage;
      std::optional<Request> send;
      std::optional<Request> receive;
    };
    std::vector<Message> messages;
    for (std::uint64_t left = 1 + random() % 40; left > 0; --left) {
      messages.emplace_back(nodes, 600, random);
    }
    // Each side in the order of the messages, the two sides at their own pace.
    std::size_t sent = 0;
    std::size_t received = 0;
    const auto all_done = [&] {
      return sent == messages.size() && received == messages.size() &&
             std::ranges::all_of(
                 messages, [](const Message& m) { return m.send->done() && m.receive->done(); });
    };
    const std::uint64_t sends_first = random() % 5;
    for (int steps = 0; steps < 100'000 && !all_done(); ++steps) {
      if (sent < messages.size() && random() % 4 < sends_first) {
        Message& m = messages[sent++];
        m.send = begin_send(cluster.at(m.from), m, random() % 2 == 0);
      }
      if (received < messages.size() && (random() % 4 >= sends_first || sent == messages.size())) {
        Message& m = messages[received++];
        m.receive = begin_receive(cluster.at(m.to), m, random() % 2 == 0);
      }
      if (sends_first == 0 && received == messages.size() && sent < messages.size()) {
        Message& m = messages[sent++];
        m.send = begin_send(cluster.at(m.from), m, random() % 2 == 0);
      }
      cluster.step();
    }
    ASSERT_TRUE(all_done()) << "nothing goes on";
    for (const Message& m : messages) {
      const Status status = m.receive->wait();
      ASSERT_EQ(status.source, NodeId{m.from});
      ASSERT_EQ(status.tag, m.tag);
      ASSERT_EQ(status.bytes, 4 * scalars_in(m.source));
      ASSERT_EQ(m.target.bytes, m.expected);
      ASSERT_FALSE(m.send->wait().is_cancelled);
    }
    ASSERT_TRUE(cluster.run_until([&] { return cluster.is_idle(); }));
    ASSERT_EQ(cluster.net().defects(), 0);
    for (std::int32_t node = 0; node < nodes; ++node) {
      const Endpoint::Statistics s = cluster.at(node).statistics();
      for (std::size_t path = 0; path < all.sent.size(); ++path) all.sent[path] += s.sent[path];
      all.unexpected += s.unexpected;
    }
  }
  if (simulation::one_seed_only()) return;
  for (const Path path : {Path::eager, Path::message, Path::shared}) {
    EXPECT_GT(all.sent[static_cast<std::size_t>(path)], 50) << name_of(path);
  }
  EXPECT_GT(all.unexpected, 50);
}

TEST(Endpoint, keeps_the_order_of_each_source_for_receives_from_any) {
  for (const std::uint64_t seed : simulation::seeds(100)) {
    SCOPED_TRACE(simulation::replay_hint(seed));
    constexpr std::int32_t senders = 3;
    constexpr std::int64_t each = 12;
    std::mt19937_64 random(seed);
    Cluster cluster(senders + 1, seed);
    std::vector<std::vector<std::int32_t>> sources;
    std::vector<std::vector<std::int32_t>> targets(senders * each, std::vector<std::int32_t>(200));
    std::vector<Request> requests;
    for (std::int32_t number = 0; number < each; ++number) {
      for (std::int32_t from = 1; from <= senders; ++from) {
        auto& source = sources.emplace_back(1 + random() % 199, -1);  // eager or not
        source[0] = number;
      }
    }
    std::size_t next = 0;
    for (std::int32_t number = 0; number < each; ++number) {
      for (std::int32_t from = 1; from <= senders; ++from, ++next) {
        requests.push_back(cluster.at(from).send(
            {sources[next].data(), static_cast<std::int64_t>(sources[next].size()), Scalar::int32},
            NodeId{0}, number % 2, channel));
        if (random() % 2 == 0) cluster.step();
      }
    }
    std::vector<Request> receives;
    receives.reserve(targets.size());
    for (auto& target : targets) {
      receives.push_back(cluster.at(0).receive({target.data(), 200, Scalar::int32},
                                               {Pattern::any_source, Pattern::any_tag, channel}));
    }
    ASSERT_TRUE(cluster.run_until(
        [&] { return std::ranges::all_of(receives, [](const Request& r) { return r.done(); }); }));
    std::vector<std::int32_t> seen(senders + 1, 0);
    for (std::size_t r = 0; r < receives.size(); ++r) {
      const Status status = receives[r].wait();
      ASSERT_EQ(targets[r][0], seen[static_cast<std::size_t>(status.source.value())]++);
      ASSERT_EQ(status.tag, targets[r][0] % 2);
    }
    ASSERT_TRUE(cluster.run_until([&] { return cluster.is_idle(); }));
  }
}

TEST(Endpoint, tells_both_sides_of_messages_that_do_not_fit) {
  for (const std::int64_t count : {4, 400}) {  // eager, announced
    SCOPED_TRACE(count);
    Cluster cluster(2, 3);
    std::vector<double> from(400, 1);
    std::vector<double> to(400, 2);
    const auto sent =
        cluster.at(0).send({from.data(), count, Scalar::float64}, NodeId{1}, 5, channel);
    const auto short_room =
        cluster.at(1).receive({to.data(), count - 1, Scalar::float64}, {NodeId{0}, 5, channel});
    ASSERT_TRUE(cluster.run_until([&] { return sent.done() && short_room.done(); }));
    EXPECT_NE(
        error_of(short_room)
            .find(fmt::format(
                "message of {} bytes with tag 5 from node 0 to node 1 would be truncated: it is "
                "received where {} bytes fit",
                8 * count, 8 * (count - 1))),
        std::string::npos)
        << error_of(short_room);
    EXPECT_EQ(to, std::vector<double>(400, 2));
    if (count == 400) {
      EXPECT_EQ(error_of(sent), error_of(short_room));
    }

    const auto other =
        cluster.at(0).send({from.data(), count, Scalar::float64}, NodeId{1}, 6, channel);
    const auto as_integers =
        cluster.at(1).receive({to.data(), 400, Scalar::int64}, {NodeId{0}, 6, channel});
    ASSERT_TRUE(cluster.run_until([&] { return other.done() && as_integers.done(); }));
    EXPECT_NE(error_of(as_integers).find("signatures of the message"), std::string::npos);
    ASSERT_TRUE(cluster.run_until([&] { return cluster.is_idle(); }));
  }
}

TEST(Endpoint, refuses_bad_arguments_at_once) {
  Cluster cluster(2, 1);
  std::vector<double> memory(10);
  const auto sending = [&](const Outgoing& message, NodeId to, std::int32_t tag) {
    try {
      static_cast<void>(cluster.at(0).send(message, to, tag, channel));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::usage);
      return std::string(error.what());
    }
    return std::string();
  };
  const Outgoing good{memory.data(), 10, Scalar::float64};
  EXPECT_NE(sending(good, NodeId{2}, 0).find("sending to node 2: there are 2 nodes"),
            std::string::npos);
  EXPECT_NE(sending(good, NodeId{1}, -1).find("tag -1"), std::string::npos);
  EXPECT_NE(sending({memory.data(), -3, Scalar::float64}, NodeId{1}, 0).find("-3 elements"),
            std::string::npos);
  EXPECT_NE(sending({nullptr, 1, Scalar::float64}, NodeId{1}, 0).find("null address"),
            std::string::npos);
  const Datatype overlapping = Datatype::vector(2, 2, 1, Scalar::float64);
  EXPECT_THROW(static_cast<void>(cluster.at(0).receive({memory.data(), 1, overlapping}, {})),
               Error);
  EXPECT_THROW(static_cast<void>(cluster.at(0).receive({memory.data(), 1, Scalar::byte},
                                                       {NodeId{7}, 0, channel})),
               Error);
  EXPECT_TRUE(cluster.is_idle());
}

TEST(Endpoint, takes_back_what_nobody_has_taken_yet) {
  Cluster cluster(2, 5);
  std::vector<double> from(500, 1);
  std::vector<double> to(500, 2);
  const auto receive =
      cluster.at(1).receive({to.data(), 500, Scalar::float64}, {NodeId{0}, 1, channel});
  receive.cancel();
  ASSERT_TRUE(cluster.run_until([&] { return receive.done(); }));
  EXPECT_TRUE(receive.wait().is_cancelled);

  const auto send = cluster.at(0).send({from.data(), 500, Scalar::float64}, NodeId{1}, 1, channel);
  for (int i = 0; i < 50; ++i) cluster.step();
  send.cancel();
  ASSERT_TRUE(cluster.run_until([&] { return send.done(); }));
  EXPECT_TRUE(send.wait().is_cancelled);
  ASSERT_TRUE(cluster.run_until([&] { return cluster.is_idle(); }));

  // Too late: they end as if nobody had asked.
  const auto second =
      cluster.at(0).send({from.data(), 500, Scalar::float64}, NodeId{1}, 1, channel);
  const auto taker =
      cluster.at(1).receive({to.data(), 500, Scalar::float64}, {NodeId{0}, 1, channel});
  ASSERT_TRUE(cluster.run_until([&] { return taker.done(); }));
  taker.cancel();
  second.cancel();
  ASSERT_TRUE(cluster.run_until([&] { return second.done() && cluster.is_idle(); }));
  EXPECT_FALSE(taker.wait().is_cancelled);
  EXPECT_FALSE(second.wait().is_cancelled);
  EXPECT_EQ(to, from);
}

/// Sends and receives are taken back at any moment; each pair ends with or without its bytes.
TEST(Endpoint, survives_cancellation_at_any_moment) {
  for (const std::uint64_t seed : simulation::seeds(200)) {
    SCOPED_TRACE(simulation::replay_hint(seed));
    std::mt19937_64 random(seed);
    Cluster cluster(2, seed);
    std::vector<double> from(300, 1);
    std::vector<double> to(300, 0);
    const auto count = static_cast<std::int64_t>(1 + random() % 300);
    const auto send =
        cluster.at(0).send({from.data(), count, Scalar::float64}, NodeId{1}, 0, channel);
    std::optional<Request> receive;
    const std::uint64_t receive_at = random() % 30;
    const std::uint64_t cancel_at = random() % 40;
    const bool cancels_send = random() % 2 == 0;
    for (std::uint64_t step = 0; step < 60; ++step) {
      if (step == receive_at) {
        receive = cluster.at(1).receive({to.data(), 300, Scalar::float64}, {NodeId{0}, 0, channel});
      }
      if (step == cancel_at) {
        if (cancels_send) {
          send.cancel();
        } else if (receive) {
          receive->cancel();
        }
      }
      cluster.step();
    }
    ASSERT_TRUE(cluster.run_until([&] { return send.done() || !cancels_send; }));
    if (cancels_send && send.wait().is_cancelled) receive->cancel();
    ASSERT_TRUE(cluster.run_until([&] { return receive->done(); }));
    if (receive->wait().is_cancelled && !(send.done() && send.wait().is_cancelled)) {
      // The message is there still, for somebody else.
      receive = cluster.at(1).receive({to.data(), 300, Scalar::float64}, {NodeId{0}, 0, channel});
      ASSERT_TRUE(cluster.run_until([&] { return receive->done(); }));
    }
    ASSERT_TRUE(cluster.run_until([&] { return send.done() && cluster.is_idle(); }));
    const bool was_sent = !send.wait().is_cancelled;
    ASSERT_EQ(receive->wait().is_cancelled, !was_sent);
    ASSERT_EQ(to[0], was_sent ? 1 : 0);
  }
}

TEST(Endpoint, fails_what_a_lost_node_was_to_do_and_nothing_else) {
  for (const std::uint64_t seed : simulation::seeds(100)) {
    SCOPED_TRACE(simulation::replay_hint(seed));
    std::mt19937_64 random(seed);
    Cluster cluster(3, seed);
    std::vector<std::int32_t> from(2000, 7);
    std::vector<std::vector<std::int32_t>> to(6, std::vector<std::int32_t>(2000));
    const auto in = [](std::vector<std::int32_t>& memory) {
      return Incoming{memory.data(), 1000, Datatype::resized(Scalar::int32, 0, 8)};
    };
    const Outgoing large{from.data(), 1000, Datatype::resized(Scalar::int32, 0, 8)};
    const auto to_lost = cluster.at(0).send(large, NodeId{2}, 0, channel);
    const auto from_lost = cluster.at(0).receive(in(to[0]), {NodeId{2}, 0, channel});
    const auto half_way = cluster.at(2).send(large, NodeId{0}, 0, channel);
    const auto taken = cluster.at(2).receive(in(to[1]), {NodeId{0}, 0, channel});
    const auto well = cluster.at(0).send(large, NodeId{1}, 0, channel);
    const auto fine = cluster.at(1).receive(in(to[2]), {Pattern::any_source, 0, channel});
    for (std::uint64_t steps = random() % 200; steps > 0; --steps) cluster.step();
    const bool came = from_lost.done();
    const bool went = to_lost.done();
    cluster.lose(2);
    ASSERT_TRUE(cluster.run_until(
        [&] { return to_lost.done() && from_lost.done() && well.done() && fine.done(); }));
    EXPECT_TRUE(half_way.done() && taken.done());
    // What was under way may have come, and gone, to its end all the same.
    for (const auto& [request, was_done] : {std::pair(from_lost, came), std::pair(to_lost, went)}) {
      const std::string error = error_of(request);
      EXPECT_TRUE(error.empty() || (!was_done && error.find("node 2 is lost") != error.npos))
          << error;
    }
    EXPECT_EQ(fine.wait().bytes, 4000);
    EXPECT_EQ(to[2][1998], 7);
    const auto late = cluster.at(0).send(large, NodeId{2}, 0, channel);
    const auto later = cluster.at(0).receive(in(to[3]), {NodeId{2}, 0, channel});
    ASSERT_TRUE(
        cluster.run_until([&] { return late.done() && later.done() && cluster.is_idle(); }));
    EXPECT_NE(error_of(late).find("sending to node 2, which is lost"), std::string::npos);
    EXPECT_NE(error_of(later).find("receiving from node 2, which is lost"), std::string::npos);
  }
}

TEST(Endpoint, refuses_more_requests_than_it_may_have) {
  Endpoint::Options options = small_options();
  options.requests_max = 2;
  Cluster cluster(2, 9, options);
  double value = 0;
  std::vector<Request> receives;
  receives.reserve(2);
  for (int i = 0; i < 2; ++i) {
    receives.push_back(
        cluster.at(0).receive({&value, 1, Scalar::float64}, {NodeId{1}, i, channel}));
  }
  EXPECT_THROW(
      static_cast<void>(cluster.at(0).send({&value, 1, Scalar::float64}, NodeId{1}, 0, channel)),
      Error);
  for (const Request& receive : receives) receive.cancel();
  ASSERT_TRUE(cluster.run_until([&] { return cluster.is_idle(); }));
  EXPECT_NO_THROW(
      static_cast<void>(cluster.at(0).send({&value, 0, Scalar::float64}, NodeId{0}, 0, channel)));
  const auto self = cluster.at(0).receive({&value, 1, Scalar::float64}, {NodeId{0}, 0, channel});
  ASSERT_TRUE(cluster.run_until([&] { return self.done() && cluster.is_idle(); }));
  EXPECT_EQ(self.wait().bytes, 0);
}

TEST(Endpoint, reads_what_the_system_lets_it_and_finds_another_way_or_tells_both_sides) {
  Cluster cluster(2, 4);  // on one host, where nodes read each other's memory
  const std::vector<std::int32_t> source(250, 7);
  std::vector<std::int32_t> target(250);
  const auto exchange = [&] {
    const Request send =
        cluster.at(0).send({source.data(), 250, Scalar::int32}, NodeId{1}, 3, channel);
    const Request receive =
        cluster.at(1).receive({target.data(), 250, Scalar::int32}, {NodeId{0}, 3, channel});
    EXPECT_TRUE(cluster.run_until([&] { return send.done() && receive.done(); }));
    return std::pair(send, receive);
  };
  EXPECT_EQ(exchange().second.wait().path, Path::get);
  EXPECT_EQ(target, source);

  cluster.net().allow_reads(2);  // of five pieces
  const auto [send, receive] = exchange();
  EXPECT_NE(error_of(send).find("the memory is not read"), std::string::npos) << error_of(send);
  EXPECT_NE(error_of(receive).find("the memory is not read"), std::string::npos);

  std::ranges::fill(target, 0);
  const auto [again, by_another_path] = exchange();
  EXPECT_NE(by_another_path.wait().path, Path::get);
  EXPECT_EQ(again.wait().path, by_another_path.wait().path);
  EXPECT_EQ(target, source);
}

TEST(Endpoint, reads_by_way_of_slots_whatever_waits_for_them) {
  Cluster cluster(2, 4);  // on one host, where nodes read each other's memory
  constexpr int messages = 40;
  const Datatype apart = Datatype::vector(50, 1, 2, Scalar::int32);
  const std::vector<std::int32_t> source(50, 7);
  std::vector<std::int32_t> target(100 * messages);
  std::vector<Request> requests;
  for (std::size_t i = 0; i < messages; ++i) {
    requests.push_back(
        cluster.at(0).send({source.data(), 50, Scalar::int32}, NodeId{1}, 0, channel));
    requests.push_back(
        cluster.at(1).receive({target.data() + 100 * i, 1, apart}, {NodeId{0}, 0, channel}));
  }
  ASSERT_TRUE(cluster.run_until([&] { return std::ranges::all_of(requests, &Request::done); }));
  EXPECT_EQ(requests.back().wait().path, Path::get);
  EXPECT_EQ(std::ranges::count(target, 7), 50 * messages);
}

TEST(Endpoint, says_what_nobody_has_asked_for_and_what_is_over) {
  for (const std::int64_t count : {1, 100}) {  // eager, announced
    Endpoint* receiver = nullptr;
    std::vector<std::int32_t> target(100);
    std::vector<std::string> heard;
    Endpoint::Options options = small_options();
    options.unexpected = [&](const Envelope& envelope) {
      heard.push_back(fmt::format("{} from {}", envelope.tag, envelope.source.value()));
      const auto on_end = [&](const Status& status, const Error* failure) {
        heard.push_back(
            fmt::format("{} bytes{}", status.bytes, failure != nullptr ? ", failed" : ""));
      };
      static_cast<void>(receiver->receive({target.data(), 50, Scalar::int32},
                                          {envelope.source, envelope.tag, channel}, on_end));
    };
    Cluster cluster(2, 4, options);
    receiver = &cluster.at(1);
    const std::vector<std::int32_t> source(100, 5);
    bool is_sent = false;
    static_cast<void>(cluster.at(0).send({source.data(), count, Scalar::int32}, NodeId{1}, 8,
                                         channel,
                                         [&](const Status&, const Error*) { is_sent = true; }));
    EXPECT_TRUE(cluster.run_until([&] { return is_sent && heard.size() == 2; }));
    const std::vector<std::string> fits{"8 from 0", "4 bytes"};
    const std::vector<std::string> is_too_long{"8 from 0", "0 bytes, failed"};
    EXPECT_EQ(heard, count == 1 ? fits : is_too_long);
  }
}

/// Threads of both nodes send to and fro while another one drives the endpoints.
TEST(Endpoint, serves_many_threads) {
  constexpr int pairs = 3;
  constexpr std::int32_t rounds = 40;
  Cluster cluster(2, 11);
  std::atomic<int> running{2 * pairs};
  std::atomic<int> wrong{0};
  const auto play = [&](std::int32_t node, int pair) {
    const ChannelId own{pair};
    const NodeId peer{1 - node};
    std::vector<std::int32_t> memory(static_cast<std::size_t>(20 + 60 * pair));
    const auto count = static_cast<std::int64_t>(memory.size());
    for (std::int32_t round = 0; round < rounds; ++round) {
      if ((round + node) % 2 == 0) {
        std::ranges::fill(memory, round);
        cluster.at(node).send({memory.data(), count, Scalar::int32}, peer, 0, own).wait();
      } else {
        cluster.at(node).receive({memory.data(), count, Scalar::int32}, {peer, 0, own}).wait();
        const bool is_right =
            std::ranges::all_of(memory, [&](auto value) { return value == round; });
        if (!is_right) wrong.fetch_add(1, std::memory_order_relaxed);
      }
    }
    running.fetch_sub(1, std::memory_order_relaxed);
  };
  std::vector<std::thread> threads;
  for (int pair = 0; pair < pairs; ++pair) {
    for (const std::int32_t node : {0, 1}) threads.emplace_back(play, node, pair);
  }
  while (running.load(std::memory_order_relaxed) > 0) cluster.step();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(std::memory_order_relaxed), 0);
  EXPECT_TRUE(cluster.run_until([&] { return cluster.is_idle(); }));
}

}  // namespace heddle::p2p
