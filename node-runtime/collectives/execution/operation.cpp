#include "node-runtime/collectives/execution/operation.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/process_limits.hpp"
#include "node-runtime/transport/datatype/datatype.hpp"

namespace heddle::collectives {
namespace {

constexpr std::chrono::milliseconds misfit_patience_of_waiter{1000};

/// Pieces of memory as a message: bytes, or one element of a type, counted from the first one.
template <class Message, class Byte>
Message message_of(std::span<const std::span<Byte>> pieces, std::uint64_t seal) {
  const std::span<Byte> first = pieces.front();
  std::vector<Datatype::IndexedBlock> blocks;
  for (const std::span<Byte> piece : pieces) {
    const std::int64_t begin = piece.data() - first.data();
    const auto bytes = static_cast<std::int64_t>(piece.size());
    // Pieces that lie one behind the other are one.
    if (!blocks.empty() && blocks.back().displacement + blocks.back().length == begin) {
      blocks.back().length += bytes;
    } else {
      blocks.push_back({begin, bytes});
    }
  }
  if (blocks.size() == 1) return {first.data(), blocks.front().length, Scalar::byte, seal};
  return {first.data(), 1, Datatype::hindexed(blocks, Scalar::byte), seal};
}

}  // namespace

Operation::Operation(Task task, std::shared_ptr<const GroupMessages> messages, std::int64_t number)
    : messages_(std::move(messages)), number_(number), execution_(std::move(task), *this) {}

void Operation::begin() {
  try {
    execution_.begin();
  } catch (const std::exception& error) {
    fail(as_error(error));
  }
  finish_if_over();
  advance(Claim::given_back);
}

bool Operation::is_over() {
  const std::scoped_lock lock(mutex_);
  return is_over_;
}

void Operation::wait() {
  // Short enough to notice soon that nothing happens, long enough to cost nothing.
  constexpr std::int64_t look_us = 100000;
  const Waiting& waiting = messages_->waiting;
  Waiting::Time last = waiting.now();
  std::chrono::milliseconds compares_after = GroupMessages::compares_after;
  bool is_mine = false;
  for (;;) {
    const Doorbell::Ticket ticket = bell_.ticket();
    if (is_over()) break;
    if (!is_mine) is_mine = claim();
    if (is_mine) advance(Claim::kept);
    if (is_over()) break;
    waiting.drive ? waiting.drive() : bell_.wait(ticket, look_us);
    if (bell_.ticket() != ticket) {
      last = waiting.now();
      compares_after = GroupMessages::compares_after;
      continue;
    }
    if (messages_->compare && waiting.now() - last > compares_after) {
      messages_->compare(number_);
      compares_after *= 2;
    }
    // The sender of a message that does not fit answers soon, or not at all.
    const auto patience = has_misfits() ? std::min(messages_->patience, misfit_patience_of_waiter)
                                        : messages_->patience;
    if (messages_->quiet && waiting.now() - last > patience) {
      messages_->quiet(number_, is_mine ? execution_.waits_for() : "");
      last = waiting.now();
    }
  }
  // Nobody changes it any more.
  if (execution_.failure()) throw own_copy(*execution_.failure());
}

void Operation::abort(const Error& why) {
  bool is_mine = false;
  {
    const std::scoped_lock lock(mutex_);
    if (is_over_ || std::exchange(is_aborted_, true)) return;
    abortion_ = own_copy(why);
    is_mine = !std::exchange(is_claimed_, true);
  }
  is_mine ? advance(Claim::given_back) : bell_.ring_all();
}

void Operation::ask_step(std::function<void(const std::string& step)> told) {
  bool is_mine = false;
  {
    const std::scoped_lock lock(mutex_);
    if (is_over_) return;
    questions_.push_back(std::move(told));
    is_mine = !std::exchange(is_claimed_, true);
  }
  is_mine ? advance(Claim::given_back) : bell_.ring_all();
}

void Operation::tell_stuck() {
  ask_step([this](const std::string& step) {
    if (messages_->stuck) messages_->stuck(number_, step);
  });
}

bool Operation::has_misfits() {
  const std::scoped_lock lock(mutex_);
  return !misfits_.empty();
}

bool Operation::claim() {
  const std::scoped_lock lock(mutex_);
  return !is_over_ && !std::exchange(is_claimed_, true);
}

void Operation::advance(Claim afterwards) {
  const auto self = shared_from_this();
  bool ends_now = false;  // is_finished_ is not this thread's to read once the claim is given back
  for (;;) {
    std::vector<End> ended;
    std::optional<Error> abortion;
    std::vector<std::function<void(const std::string&)>> questions;
    {
      const std::scoped_lock lock(mutex_);
      ended.swap(ended_);
      abortion = std::exchange(abortion_, std::nullopt);
      questions.swap(questions_);
      if (abortion) {
        for (const std::int64_t ticket : std::exchange(misfits_, {})) {
          ended.push_back({ticket, abortion});
        }
      }
      if (ended.empty() && !abortion && questions.empty()) {
        if (is_finished_) {
          ends_now = true;
          is_over_ = true;
          is_claimed_ = false;
        } else if (afterwards == Claim::given_back) {
          is_claimed_ = false;
        }
        break;
      }
    }
    if (abortion) fail(*abortion);
    for (const End& one : ended) serve(one);
    if (!questions.empty()) {
      const std::string step = execution_.waits_for();
      for (const auto& told : questions) told(step);
    }
    finish_if_over();
  }
  if (ends_now || afterwards == Claim::given_back) bell_.ring_all();
  if (!ends_now || !messages_->over) return;
  messages_->over(number_, execution_.failure() ? &*execution_.failure() : nullptr);
}

/// With the claim.
void Operation::finish_if_over() {
  if (is_finished_ || !execution_.is_over()) return;
  is_finished_ = true;
  try {
    execution_.finish_task();
  } catch (const std::exception& error) {
    execution_.fail(as_error(error));
  }
}

/// With the claim.
void Operation::serve(const End& end) {
  const bool had_failed = execution_.failure().has_value();
  try {
    execution_.ended(end.ticket, end.failure ? &*end.failure : nullptr);
  } catch (const std::exception& error) {
    execution_.fail(as_error(error));
  }
  if (!had_failed && execution_.failure()) take_back_messages();
}

/// With the claim.
void Operation::fail(const Error& why) {
  const bool had_failed = execution_.failure().has_value();
  execution_.fail(why);
  if (!had_failed) take_back_messages();
}

void Operation::take_back_messages() {
  std::vector<p2p::Request> left;
  {
    const std::scoped_lock lock(mutex_);
    for (const auto& [ticket, request] : under_way_) {
      if (request) left.push_back(*request);
    }
  }
  for (const p2p::Request& request : left) request.cancel();
}

void Operation::message_ended(std::int64_t ticket, std::optional<Rank> peer,
                              std::optional<Error> failure) {
  events_.fetch_add(1, std::memory_order_relaxed);
  bool is_mine = false;
  bool is_misfit = false;
  {
    const std::scoped_lock lock(mutex_);
    under_way_.erase(ticket);
    // What fits is found out with the peer; the message has ended when the operation is aborted.
    is_misfit =
        failure && failure->code() == ErrorCode::usage && peer && messages_->misfit && !is_aborted_;
    if (is_misfit) {
      misfits_.push_back(ticket);
    } else {
      ended_.push_back({ticket, std::move(failure)});
      is_mine = !std::exchange(is_claimed_, true);
    }
  }
  if (is_misfit) return messages_->misfit(number_, *peer);
  is_mine ? advance(Claim::given_back) : bell_.ring_all();
}

/// Calls `begin_request(on_end)`. One that cannot begin has ended.
template <class Begin>
void Operation::begin_message(std::int64_t ticket, std::optional<Rank> peer,
                              const Begin& begin_request) {
  {
    const std::scoped_lock lock(mutex_);
    under_way_.emplace(ticket, std::nullopt);
  }
  const auto on_end = [self = shared_from_this(), ticket, peer](const p2p::Status& status,
                                                                const Error* failure) {
    std::optional<Error> why;
    if (failure != nullptr) {
      why = *failure;
    } else if (status.is_cancelled) {
      why = Error(ErrorCode::communication, "it was under way when the node ended, or had failed");
    }
    self->message_ended(ticket, peer, std::move(why));
  };
  try {
    const p2p::Request request = begin_request(on_end);
    const std::scoped_lock lock(mutex_);
    // It may have ended already.
    if (const auto place = under_way_.find(ticket); place != under_way_.end()) {
      place->second = request;
    }
  } catch (const std::exception& error) {
    // The claim is taken: advance() comes by.
    const std::scoped_lock lock(mutex_);
    under_way_.erase(ticket);
    ended_.push_back({ticket, as_error(error)});
  }
}

/// Equal for messages of different fragments or operations at most where these are so far apart
/// that the one has ended before the other begins, in the same order on both sides.
std::int32_t Operation::tag_of(Name name) const {
  constexpr std::int64_t names_max = std::int64_t{1} << 24;
  const std::int64_t place = (name.fragment * name.messages + name.number) % names_max;
  return static_cast<std::int32_t>(number_ % numbers_apart * names_max + place);
}

void Operation::send(Rank to, Name name, std::span<const std::span<const std::byte>> pieces,
                     std::int64_t ticket) {
  begin_message(ticket, to, [&](p2p::OnEnd on_end) {
    return messages_->send(message_of<p2p::Outgoing>(pieces, name.seal), node_of(to), tag_of(name),
                           std::move(on_end));
  });
}

void Operation::receive(Rank from, Name name, std::span<const std::span<std::byte>> pieces,
                        std::int64_t ticket) {
  begin_message(ticket, from, [&](p2p::OnEnd on_end) {
    return messages_->receive(message_of<p2p::Incoming>(pieces, name.seal), node_of(from),
                              tag_of(name), std::move(on_end));
  });
}

void Operation::work(p2p::DeviceWork work, std::int64_t ticket) {
  begin_message(ticket, std::nullopt, [&](p2p::OnEnd on_end) {
    return messages_->work(std::move(work), std::move(on_end));
  });
}

void Operation::refer(std::shared_ptr<p2p::Referral> referral, std::int64_t ticket) {
  begin_message(ticket, std::nullopt, [&](p2p::OnEnd on_end) {
    return messages_->refer(std::move(referral), std::move(on_end));
  });
}

}  // namespace heddle::collectives
