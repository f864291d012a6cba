#include <array>
#include <chrono>
#include <gtest/gtest.h>
#include <signal.h>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/child_process.hpp"
#include "base/error.hpp"
#include "node-runtime/progress/delayed_messages.hpp"
#include "node-runtime/progress/failure_message.hpp"
#include "node-runtime/progress/peer_watch.hpp"
#include "node-runtime/progress/progress_message.hpp"
#include "node-runtime/progress/progress_pause.hpp"

/// What the progress thread is made of, each alone and without MPI.
namespace heddle {
namespace {

constexpr std::int64_t second_ns = 1'000'000'000;

PeerWatch watch_of(std::vector<std::int32_t> processes, double silence_seconds) {
  std::vector<std::string> hosts;
  for (std::size_t i = 0; i < processes.size(); ++i) hosts.push_back("host" + std::to_string(i));
  return {{0, std::move(hosts), std::move(processes), silence_seconds}, 0};
}

/// Looks ten times a second until then; the number of heartbeats that were due.
int look_until(PeerWatch& watch, std::int64_t& now_ns, std::int64_t until_ns) {
  int due = 0;
  for (; now_ns < until_ns; now_ns += second_ns / 10) {
    due += watch.look(now_ns) ? 1 : 0;
    EXPECT_TRUE(watch.is_valid());
  }
  return due;
}

std::string loss(PeerWatch& watch, std::int64_t now_ns) {
  try {
    static_cast<void>(watch.look(now_ns));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::communication);
    return error.what();
  }
  return {};
}

}  // namespace

// ---- other nodes -------------------------------------------------------------------------------

TEST(PeerWatch, sends_a_heartbeat_twice_a_second_to_the_next_node) {
  PeerWatch watch = watch_of({0, 0, 0}, 1000);
  EXPECT_EQ(watch.successor(), 1);
  std::int64_t now_ns = 0;
  const int due = look_until(watch, now_ns, 12 * second_ns);
  EXPECT_GE(due, 18);
  EXPECT_LE(due, 24);
}

TEST(PeerWatch, a_node_is_lost_when_it_has_been_silent_for_too_long) {
  PeerWatch watch = watch_of({0, 0, 0}, 3);
  std::int64_t now_ns = 0;
  static_cast<void>(look_until(watch, now_ns, 2 * second_ns));
  watch.heard(2, now_ns);
  const std::int64_t heard_ns = now_ns;
  static_cast<void>(look_until(watch, now_ns, heard_ns + 3 * second_ns));
  now_ns += second_ns / 2;
  const std::string text = loss(watch, now_ns);
  EXPECT_NE(text.find("node 2 on host host2 was lost: it has been silent for 3 s"),
            std::string::npos)
      << text;
}

TEST(PeerWatch, time_in_which_this_process_was_stopped_is_no_silence) {
  PeerWatch watch = watch_of({0, 0}, 3);
  std::int64_t now_ns = 0;
  static_cast<void>(look_until(watch, now_ns, second_ns));
  now_ns += 1000 * second_ns;
  EXPECT_EQ(loss(watch, now_ns), "");
}

TEST(PeerWatch, a_process_of_this_host_is_lost_as_soon_as_it_ends) {
  const auto live = [](const Conversation& conversation) {
    char word = 0;
    static_cast<void>(conversation.receive_value(word, std::chrono::minutes(1)));
  };
  ChildProcess child("be watched", live);
  PeerWatch watch = watch_of({0, child.id(), 0}, 1000);
  watch.look_at_processes();
  ASSERT_EQ(::kill(child.id(), SIGKILL), 0);
  std::string text;
  for (int i = 0; i < 1000 && text.empty(); ++i) {
    try {
      watch.look_at_processes();
    } catch (const Error& error) {
      text = error.what();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_NE(text.find("node 1 on host host1 was lost: its process has ended"), std::string::npos)
      << text;
}

TEST(PeerWatch, a_look_is_put_off_unless_it_is_urgent) {
  PeerWatch watch = watch_of({0, 0}, 0.01);
  EXPECT_EQ(loss(watch, 50'000'000), "") << "too soon after the last look";
  watch.look_soon();
  EXPECT_NE(loss(watch, 60'000'000), "");
}

// ---- messages ----------------------------------------------------------------------------------

TEST(ProgressMessage, carries_a_verdict_and_what_fits_of_its_text) {
  for (const std::size_t length :
       {std::size_t{0}, std::size_t{100}, std::size_t{448}, std::size_t{5000}}) {
    JobVerdict sent;
    sent.job = protocol::JobId{7};
    sent.status = 3;
    sent.info = 1'000'000'000'000;
    sent.pivot = -0.5;
    sent.code = ErrorCode::usage;
    sent.error = std::string(length, 'x');
    ProgressMessage message;
    message.header = ProgressMessage::of(ProgressMessage::Type::drained, sent);
    const std::size_t bytes = message.set_text(sent.error);
    EXPECT_EQ(bytes, 64 + std::min<std::size_t>(length, 448));
    const auto travelled = std::as_bytes(std::span(&message, 1)).first(bytes);
    const JobVerdict received = ProgressMessage::of(travelled).verdict();
    EXPECT_EQ(received.job, sent.job);
    EXPECT_EQ(received.status, sent.status);
    EXPECT_EQ(received.info, sent.info);
    EXPECT_EQ(received.pivot, sent.pivot);
    EXPECT_EQ(received.code, sent.code);
    EXPECT_EQ(received.error, sent.error.substr(0, 448));
  }
}

TEST(ProgressMessage, carries_what_a_grant_is_about) {
  protocol::GrantAction grant;
  grant.job = protocol::JobId{3};
  grant.tile = {protocol::MatrixId{5}, 6};
  grant.number = Version{9};
  grant.asked = true;
  const ProgressMessage::Header header = ProgressMessage::of(grant, 77);
  EXPECT_EQ(header.type, ProgressMessage::Type::grant);
  EXPECT_EQ(header.job, 3);
  EXPECT_EQ(header.matrix, 5);
  EXPECT_EQ(header.tile, 6);
  EXPECT_EQ(header.version, 9);
  EXPECT_EQ(header.tag, 77U);
  EXPECT_EQ(header.asked, 1);
}

TEST(FailureMessage, carries_a_text_and_whose_failure_it_is) {
  const FailureMessage own("the disk is full", false);
  EXPECT_EQ(own.text(), "the disk is full");
  EXPECT_FALSE(own.is_of_elsewhere());
  EXPECT_TRUE(FailureMessage("node 3 has failed", true).is_of_elsewhere());
  const FailureMessage longest(std::string(5000, 'x'), false);
  EXPECT_EQ(longest.text(), std::string(FailureMessage::bytes - 2, 'x'));
}

TEST(DelayedMessages, delays_nothing_without_faults) {
  DelayedMessages delayed({}, 0);
  EXPECT_FALSE(delayed.delays());
  EXPECT_FALSE(delayed.delay(protocol::AskAction{}, 0));
  EXPECT_TRUE(delayed.is_empty());
}

TEST(DelayedMessages, posts_each_message_once_and_not_later_than_the_longest_delay) {
  DelayedMessages delayed({.delay_us_max = 100, .seed = 3}, 1);
  for (std::int32_t i = 0; i < 50; ++i) {
    protocol::AskAction ask;
    ask.tile.index = i;
    ASSERT_TRUE(delayed.delay(ask, 1000));
  }
  std::vector<int> posted(50, 0);
  struct Post {
    std::vector<int>& posted;
    void operator()(const protocol::AskAction& ask) const {
      ++posted[static_cast<std::size_t>(ask.tile.index)];
    }
    void operator()(const protocol::SendAction&) const { ADD_FAILURE(); }
    void operator()(const protocol::GrantAction&) const { ADD_FAILURE(); }
    void operator()(const protocol::OfferAction&) const { ADD_FAILURE(); }
  };
  EXPECT_TRUE(delayed.post_due(51'000, Post{posted}));
  EXPECT_FALSE(delayed.is_empty()) << "some take longer than half of it";
  EXPECT_TRUE(delayed.post_due(101'000, Post{posted}));
  EXPECT_TRUE(delayed.is_empty());
  EXPECT_EQ(posted, std::vector<int>(50, 1));
}

// ---- pauses ------------------------------------------------------------------------------------

TEST(ProgressPause, depends_on_cores_and_work) {
  using Kind = ProgressPause::Kind;
  const auto sleep = [](std::int64_t us) { return ProgressPause{Kind::sleep, us, true}; };
  const ProgressPause yield{Kind::yield, 0, true};
  constexpr std::int64_t long_ago = second_ns;
  ProgressLoad load{.idle_ns = long_ago};
  EXPECT_EQ(pause_for(load), sleep(pause_us_quiet));
  load.is_at_work = true;
  EXPECT_EQ(pause_for(load), yield) << "it has a core of its own";
  load.shares_cores = true;
  EXPECT_EQ(pause_for(load), sleep(pause_us_shared));
  load.worker_waits = true;
  EXPECT_EQ(pause_for(load), sleep(pause_us_idle_worker_max));
  load.idle_ns = 400'000;
  EXPECT_EQ(pause_for(load), sleep(50)) << "an eighth of the wait so far";
  load.idle_ns = alert_ns;
  EXPECT_EQ(pause_for(load), sleep(pause_us_idle_worker));
  load.has_own_cores = true;
  EXPECT_EQ(pause_for(load), yield) << "the worker's core is free";
  load.idle_ns = alert_ns - 1;
  EXPECT_EQ(pause_for(load), (ProgressPause{Kind::yield, 0, false}));
  load.policy = WaitPolicy::park;
  load.shares_cores = load.has_own_cores = load.worker_waits = false;
  EXPECT_EQ(pause_for(load), sleep(pause_us_parked)) << "it is not to spin";
}

}  // namespace heddle
