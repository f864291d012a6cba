/// One rank's execution by itself: how it fails, its stages and errands, and operations over it.

#include <array>
#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "node-runtime/collectives/execution/operation.hpp"

namespace heddle::collectives {

/// Remembers what has begun.
class QuietCourier final : public Courier {
 public:
  void send(Rank, Name, std::span<const std::span<const std::byte>>, std::int64_t ticket) override {
    begun.push_back(ticket);
  }
  void receive(Rank, Name, std::span<const std::span<std::byte>>, std::int64_t ticket) override {
    begun.push_back(ticket);
  }
  std::vector<std::int64_t> begun;
};

TEST(Execution, that_has_failed_begins_nothing_more_and_is_over_with_its_last_message) {
  Schedule schedule;
  schedule.slots = 2;
  schedule.steps = {{Step::Kind::receive, 0, Rank{1}, {}, Spot::in_slot(0), {}},
                    {Step::Kind::receive, 0, Rank{2}, {}, Spot::in_slot(1), {}},
                    {Step::Kind::send, 0, Rank{3}, {Spot::in_slot(0)}, {}, {0}}};
  std::vector<std::byte> slots(16);
  Task task;
  task.schedule = std::make_shared<const CompiledSchedule>(schedule);
  task.place = [](std::int32_t) { return BlockPlace{8, 0, 0}; };
  task.element_bytes = 1;
  task.fragment_elements = 8;
  task.slots = slots.data();
  QuietCourier courier;
  Execution execution(std::move(task), courier);
  execution.begin();
  ASSERT_EQ(courier.begun.size(), 2U) << execution.waits_for();
  const Error lost(ErrorCode::communication, "node 2 is lost");
  execution.ended(courier.begun[1], &lost);
  EXPECT_FALSE(execution.is_over()) << "the other message is under way";
  execution.ended(courier.begun[0]);
  EXPECT_EQ(courier.begun.size(), 2U) << "nothing is sent on";
  EXPECT_TRUE(execution.is_over());
  ASSERT_TRUE(execution.failure().has_value());
  EXPECT_STREQ(execution.failure()->what(), "node 2 is lost");
}

/// One copy, of nothing or of a byte.
Task copying(std::int64_t count, const std::byte& from, std::byte& to) {
  Schedule schedule;
  schedule.steps = {{Step::Kind::copy, 0, {}, {Spot::in_input()}, Spot::in_output(), {}}};
  Task task;
  task.schedule = std::make_shared<const CompiledSchedule>(schedule);
  task.place = [count](std::int32_t) { return BlockPlace{count, 0, 0}; };
  task.element_bytes = 1;
  task.input = &from;
  task.output = &to;
  return task;
}

TEST(Operations, that_are_aborted_or_asked_before_they_begin_end_all_the_same) {
  for (const std::int64_t count : {0, 1}) {
    const std::byte from{7};
    std::byte to{0};
    std::vector<std::int64_t> over;
    auto messages = std::make_shared<GroupMessages>();
    messages->over = [&](std::int64_t number, const Error*) { over.push_back(number); };
    const auto asked = std::make_shared<Operation>(copying(count, from, to), messages, 1);
    std::vector<std::string> steps;
    asked->ask_step([&](const std::string& step) { steps.push_back(step); });
    asked->begin();
    asked->wait();
    EXPECT_EQ(to, count == 1 ? from : std::byte{0});
    EXPECT_LE(steps.size(), 1U);
    const auto aborted = std::make_shared<Operation>(copying(count, from, to), messages, 2);
    aborted->abort(Error(ErrorCode::usage, "not this one"));
    EXPECT_FALSE(aborted->is_over()) << "it has not begun";
    aborted->begin();
    EXPECT_TRUE(aborted->is_over());
    // What had nothing left to do when it was aborted may as well be done.
    try {
      aborted->wait();
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), "not this one");
    }
    EXPECT_EQ(over, (std::vector<std::int64_t>{1, 2}));
  }
}

/// A chore that notes when it begins, and ends by a message that QuietCourier keeps.
Chore noted(std::vector<std::string>& notes, const std::string& what) {
  return {what, [&notes, what](Courier& courier, std::int64_t ticket) {
            notes.push_back(what);
            courier.send(Rank{1}, {}, {}, ticket);
            return false;
          }};
}

/// A chore that is over at once.
Chore immediate(std::vector<std::string>& notes, const std::string& what) {
  return {what, [&notes, what](Courier&, std::int64_t) {
            notes.push_back(what);
            return true;
          }};
}

TEST(Stages, come_one_after_the_other_before_the_steps_and_behind_them) {
  using Notes = std::vector<std::string>;
  const std::byte from{7};
  std::byte to{0};
  Notes notes;
  Task task = copying(1, from, to);
  task.before = {{noted(notes, "a"), noted(notes, "b")}, {immediate(notes, "c")}, {}};
  task.after = {{noted(notes, "d")}};
  task.finish = [&] { notes.emplace_back("finish"); };
  QuietCourier courier;
  Execution execution(std::move(task), courier);
  execution.begin();
  EXPECT_EQ(notes, (Notes{"a", "b"}));
  EXPECT_EQ(execution.waits_for(), "a");
  execution.ended(courier.begun[1]);
  EXPECT_EQ(notes, (Notes{"a", "b"}));
  EXPECT_EQ(to, std::byte{0});
  execution.ended(courier.begun[0]);
  EXPECT_EQ(notes, (Notes{"a", "b", "c", "d"}));
  EXPECT_EQ(to, from) << "the step is behind the stages before it";
  EXPECT_FALSE(execution.is_over());
  EXPECT_EQ(execution.waits_for(), "d");
  execution.ended(courier.begun[2]);
  EXPECT_TRUE(execution.is_over());
  execution.finish_task();
  EXPECT_EQ(notes.back(), "finish");
}

TEST(Stages, that_have_done_all_leave_no_step_to_do) {
  const std::byte from{7};
  for (const bool has_all : {false, true}) {
    std::byte to{0};
    std::vector<std::string> notes;
    Task task = copying(1, from, to);
    task.before = {{immediate(notes, "a")}};
    task.has_all = [has_all] { return has_all; };
    task.after = {{immediate(notes, "b")}};
    QuietCourier courier;
    Execution execution(std::move(task), courier);
    execution.begin();
    EXPECT_TRUE(execution.is_over());
    EXPECT_EQ(execution.way(), has_all ? "direct" : "");
    EXPECT_EQ(to, has_all ? std::byte{0} : from);
    EXPECT_EQ(notes, (std::vector<std::string>{"a", "b"}));
  }
}

/// Receives a byte, then sends it back.
class Echo final : public Errand {
 public:
  explicit Echo(std::vector<std::string>& notes) : notes_(notes) {}
  void begin(Courier& courier) override {
    courier_ = &courier;
    notes_.emplace_back("begin");
    courier.receive(Rank{1}, {}, std::array{std::span(&byte_, 1)}, 0);
  }
  void ended(std::int64_t ticket) override {
    notes_.push_back(std::to_string(ticket));
    is_over_ = ticket == 7;
    if (ticket != 0) return;
    courier_->send(Rank{1}, {}, std::array{std::span<const std::byte>(&byte_, 1)}, 7);
  }
  [[nodiscard]] bool is_over() const override { return is_over_; }
  [[nodiscard]] std::string waits_for() const override { return "an echo"; }
  [[nodiscard]] std::string describe() const override { return "by an echo"; }

 private:
  std::vector<std::string>& notes_;
  Courier* courier_ = nullptr;
  std::byte byte_{};
  bool is_over_ = false;
};

TEST(Errands, are_done_between_the_stages_in_place_of_the_steps) {
  using Notes = std::vector<std::string>;
  const std::byte from{7};
  std::byte to{0};
  Notes notes;
  Task task = copying(1, from, to);
  task.before = {{immediate(notes, "a")}};
  task.has_all = [] { return false; };
  task.errand = [echo = std::make_shared<Echo>(notes)] { return echo; };
  task.after = {{immediate(notes, "b")}};
  QuietCourier courier;
  Execution execution(std::move(task), courier);
  execution.begin();
  EXPECT_EQ(notes, (Notes{"a", "begin"}));
  EXPECT_EQ(execution.waits_for(), "an echo");
  execution.ended(courier.begun.at(0));
  EXPECT_EQ(notes, (Notes{"a", "begin", "0"}));
  EXPECT_FALSE(execution.is_over());
  execution.ended(courier.begun.at(1));
  EXPECT_EQ(notes, (Notes{"a", "begin", "0", "7", "b"}));
  EXPECT_TRUE(execution.is_over());
  EXPECT_EQ(execution.way(), "by an echo");
  EXPECT_EQ(to, std::byte{0}) << "no step was done";
}

TEST(Errands, that_fail_are_over_when_nothing_is_under_way) {
  const std::byte from{7};
  std::byte to{0};
  std::vector<std::string> notes;
  Task task = copying(1, from, to);
  task.errand = [echo = std::make_shared<Echo>(notes)] { return echo; };
  task.after = {{immediate(notes, "b")}};
  QuietCourier courier;
  Execution execution(std::move(task), courier);
  execution.begin();
  execution.fail(Error(ErrorCode::communication, "somebody is lost"));
  EXPECT_FALSE(execution.is_over());
  execution.ended(courier.begun.at(0));
  EXPECT_TRUE(execution.is_over());
  EXPECT_EQ(notes, std::vector<std::string>{"begin"}) << "it is told nothing any more";
}

TEST(Stages, that_fail_or_throw_end_all_when_the_others_have_ended) {
  const std::byte from{7};
  std::byte to{0};
  std::vector<std::string> notes;
  Task task = copying(1, from, to);
  task.before = {{noted(notes, "a"), noted(notes, "b")}, {noted(notes, "c")}};
  QuietCourier courier;
  Execution execution(std::move(task), courier);
  execution.begin();
  const Error lost(ErrorCode::internal, "a device is gone");
  execution.ended(courier.begun[0], &lost);
  EXPECT_FALSE(execution.is_over());
  execution.ended(courier.begun[1]);
  EXPECT_TRUE(execution.is_over());
  EXPECT_EQ(notes.size(), 2U);
  EXPECT_EQ(to, std::byte{0});

  Task throwing = copying(1, from, to);
  throwing.before = {{noted(notes, "d"), {"e", [](Courier&, std::int64_t) -> bool {
                                            throw Error(ErrorCode::usage, "not this one");
                                          }}}};
  auto messages = std::make_shared<GroupMessages>();
  std::optional<Error> told;
  messages->over = [&](std::int64_t, const Error* failure) { told = *failure; };
  throwing.before.front().erase(throwing.before.front().begin());
  const auto operation = std::make_shared<Operation>(std::move(throwing), messages, 1);
  operation->begin();
  EXPECT_TRUE(operation->is_over());
  ASSERT_TRUE(told.has_value());
  EXPECT_STREQ(told->what(), "not this one");
}

}  // namespace heddle::collectives
