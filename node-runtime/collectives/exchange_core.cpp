#include "node-runtime/collectives/exchange_core.hpp"

#include <algorithm>
#include <exception>
#include <fmt/core.h>
#include <utility>

#include "base/clock.hpp"
#include "base/process_limits.hpp"
#include "base/require.hpp"
#include "node-runtime/collectives/execution/seal.hpp"

namespace heddle::collectives {

std::shared_ptr<ExchangeCore> ExchangeCore::make(std::shared_ptr<GroupCore> group,
                                                 ExchangePlan plan, std::string name,
                                                 p2p::ChannelId channel) {
  std::shared_ptr<ExchangeCore> core(
      new ExchangeCore(std::move(group), std::move(plan), std::move(name)));
  core->use(channel);
  core->number_ = core->group_->control().add(core);
  return core;
}

ExchangeCore::ExchangeCore(std::shared_ptr<GroupCore> group, ExchangePlan plan, std::string name)
    : group_(std::move(group)), plan_(std::move(plan)), name_(std::move(name)) {}

/// Rounds keep the exchange alive, and so `this`.
void ExchangeCore::use(p2p::ChannelId channel) {
  channel_ = channel;
  messages_.nodes = group_->options().nodes;
  messages_.patience = group_->options().patience;
  messages_.waiting = group_->options().waiting;
  messages_.send = [this, channel](const p2p::Outgoing& message, NodeId to, std::int32_t tag,
                                   p2p::OnEnd on_end) {
    return group_->user_messages()->send(message, to, tag, channel, std::move(on_end));
  };
  messages_.receive = [this, channel](const p2p::Incoming& room, NodeId from, std::int32_t tag,
                                      p2p::OnEnd on_end) {
    return group_->user_messages()->receive(room, from, tag, channel, std::move(on_end));
  };
  messages_.work = [this](p2p::DeviceWork work, p2p::OnEnd on_end) {
    return group_->user_messages()->work(std::move(work), std::move(on_end));
  };
  messages_.over = [this](std::int64_t round, const Error* failure) { over(round, failure); };
  messages_.quiet = [this](std::int64_t round, const std::string& step) {
    group_->control().quiet_round(number_, round, describe(round), step);
  };
  messages_.stuck = [this](std::int64_t round, const std::string& step) {
    group_->control().stuck_round(number_, round, describe(round), step);
  };
}

std::string ExchangeCore::describe(std::int64_t round) const {
  return fmt::format("round {} of {}", round, name_);
}

// ---- rounds ------------------------------------------------------------------------------------

/// The operation of the next round. The group may fail at any time: that is looked for when it can
/// be found by group_failed(), which aborts it from then on.
std::shared_ptr<Operation> ExchangeCore::take_round(std::optional<Stage> gate) {
  std::shared_ptr<Operation> made;
  {
    const std::scoped_lock lock(mutex_);
    if (operation_ != nullptr && !operation_->is_over()) {
      throw Error(ErrorCode::usage,
                  fmt::format("{} cannot begin, as round {} is under way; wait for it first",
                              describe(round_ + 1), round_));
    }
    const std::int64_t round = round_ + 1;
    Task task = plan_.task;
    if (gate) task.before.push_back(std::move(*gate));
    // 0 stands for messages without a seal.
    task.seal = std::max<std::uint64_t>(
        1, mixed(static_cast<std::uint64_t>(number_), static_cast<std::uint64_t>(round)));
    // The operation keeps the exchange alive.
    const std::shared_ptr<const GroupMessages> messages(shared_from_this(), &messages_);
    made = std::make_shared<Operation>(std::move(task), messages, round);
    operation_ = made;
    round_ = round;
    failure_.reset();
    begun_ = Clock::now();
    seconds_ = 0;
    if (group_->options().trace != nullptr) traced_since_ns_[round] = now_ns();
  }
  if (const auto why = group_->log().failure()) {
    const std::scoped_lock lock(mutex_);
    operation_.reset();
    failure_ = own_copy(*why);
    throw Error(*why);
  }
  return made;
}

p2p::LaneId ExchangeCore::lane_of(const Stream& stream) const {
  if (const auto lane = group_->user_messages()->lane_of(stream.device())) return *lane;
  throw Error(ErrorCode::usage,
              fmt::format("{}: the stream is of device '{}', which is none of this node's whose "
                          "memory messages take",
                          name_, stream.device().info().name));
}

std::shared_ptr<Operation> ExchangeCore::begin(Stream* stream) {
  std::optional<Stage> gate;
  if (stream != nullptr) {
    gate = WaitingStreams::gate(*stream, lane_of(*stream), *group_->user_messages());
  }
  std::shared_ptr<Operation> begun = take_round(std::move(gate));
  begun->begin();
  if (stream != nullptr) watch(*stream, begun);
  return begun;
}

/// Where a thread moves messages: otherwise who begins a round waits for it some day.
void ExchangeCore::watch(const Stream& stream, const std::shared_ptr<Operation>& operation) const {
  const auto messages = group_->user_messages();
  if (messages->is_driven()) return;
  WaitingStreams::watch(stream, operation, group_->options().patience, *messages);
}

void ExchangeCore::arrived(const std::shared_ptr<Operation>& operation, Stream& stream) {
  const p2p::LaneId lane = lane_of(stream);
  const auto messages = group_->user_messages();
  if (messages->is_driven() || operation->is_over()) return wait_for(*operation);
  streams_.stop(operation->number(), stream, lane, *messages);
  if (!operation->is_over()) return watch(stream, operation);
  // It has ended meanwhile, perhaps before the stream was among those that wait.
  try {
    wait_for(*operation);
  } catch (const Error&) {
    return;  // the stream has failed
  }
}

/// Throws what made it fail. Streams that wait for it have gone on then.
void ExchangeCore::wait_for(Operation& operation) {
  try {
    operation.wait();
  } catch (const Error& failure) {
    streams_.go_on(operation.number(), &failure);
    throw;
  }
  streams_.go_on(operation.number(), nullptr);
}

/// By the thread that has the operation's claim, when it is over; the next round may have begun.
void ExchangeCore::over(std::int64_t round, const Error* failure) {
  bool is_news = false;
  {
    const std::scoped_lock lock(mutex_);
    is_news = failure != nullptr && !has_group_failed_;
  }
  if (is_news) {
    group_->control().fail_all(
        Error(failure->code(), fmt::format("rank {} could not do {}: {}", group_->rank(),
                                           describe(round), failure->what())));
  }
  streams_.go_on(round, failure);
  std::shared_ptr<Operation> dropped;  // without the lock
  std::optional<TracedOperation> traced;
  {
    const std::scoped_lock lock(mutex_);
    traced = take_traced(round);
  }
  if (traced && failure == nullptr) group_->options().trace->add(*traced);
  const std::scoped_lock lock(mutex_);
  if (round != round_) return;
  dropped = std::move(operation_);
  operation_ = nullptr;
  if (failure != nullptr) failure_ = own_copy(*failure);
}

std::optional<TracedOperation> ExchangeCore::take_traced(std::int64_t round) {
  const auto since = traced_since_ns_.extract(round);
  if (since.empty()) return std::nullopt;
  return TracedOperation{.operation = "exchange",
                         .algorithm = std::string(name_of(plan_.choice.way)),
                         .group = channel_.value(),
                         .number = round,
                         .bytes = plan_.bytes,
                         .ranks = group_->size(),
                         .start_ns = since.mapped()};
}

void ExchangeCore::found_over(std::int64_t round) {
  const std::scoped_lock lock(mutex_);
  if (seconds_ > 0 || round == 0 || round != round_) return;
  seconds_ = std::chrono::duration<double>(Clock::now() - begun_).count();
}

void ExchangeCore::wait() {
  std::shared_ptr<Operation> waited_for;
  std::int64_t round = 0;
  {
    const std::scoped_lock lock(mutex_);
    waited_for = operation_;
    round = round_;
    if (waited_for == nullptr && failure_) throw own_copy(*failure_);
  }
  if (waited_for != nullptr) wait_for(*waited_for);
  found_over(round);
}

bool ExchangeCore::done() {
  std::int64_t round = 0;
  {
    const std::scoped_lock lock(mutex_);
    if (operation_ != nullptr && !operation_->is_over()) return false;
    round = round_;
  }
  found_over(round);
  return true;
}

ExchangeReport ExchangeCore::report() {
  require(done(), "Exchange::report: a round is under way");
  ExchangeReport report;
  report.method = name_of(plan_.choice.way);
  report.predicted_s = plan_.choice.seconds;
  report.messages = plan_.messages;
  report.bytes = plan_.bytes;
  report.packed_bytes = plan_.slot_bytes;
  for (const auto& candidate : plan_.choice.considered) {
    if (candidate.text == report.method) continue;
    report.others.push_back(fmt::format("{}: {:.1f} us", candidate.text, 1e6 * candidate.seconds));
  }
  const std::scoped_lock lock(mutex_);
  report.rounds = round_;
  report.seconds = seconds_;
  return report;
}

// ---- failure -----------------------------------------------------------------------------------

void ExchangeCore::group_failed(const Error& why) {
  std::shared_ptr<Operation> left;
  {
    const std::scoped_lock lock(mutex_);
    has_group_failed_ = true;
    left = operation_;
  }
  if (left != nullptr) left->abort(why);
}

void ExchangeCore::ask_state(std::int64_t round,
                             std::function<void(const std::string& state)> told) {
  std::shared_ptr<Operation> asked;
  std::string state;
  {
    const std::scoped_lock lock(mutex_);
    if (round > round_) {
      state = round_ == 0 ? std::string("has not begun a round of it")
                          : fmt::format("has not begun it; its last one is round {}", round_);
    } else if (round < round_ || operation_ == nullptr || operation_->is_over()) {
      state = "has ended it";
    } else {
      asked = operation_;
    }
  }
  if (asked == nullptr) return told(state);
  asked->ask_step([told = std::move(told)](const std::string& step) {
    told(fmt::format("is in it and waits: {}", step));
  });
}

}  // namespace heddle::collectives
