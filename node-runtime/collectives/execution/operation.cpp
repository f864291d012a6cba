#include "node-runtime/collectives/execution/operation.hpp"

#include <exception>
#include <utility>

#include "base/assert.hpp"
#include "base/process_limits.hpp"
#include "node-runtime/transport/datatype/datatype.hpp"

namespace heddle::collectives {
namespace {

/// Pieces of memory as a message: bytes, or one element of a type, counted from the first one.
template <class Message, class Byte>
Message message_of(std::span<const std::span<Byte>> pieces) {
  const std::span<Byte> first = pieces.front();
  if (pieces.size() == 1) {
    return {first.data(), static_cast<std::int64_t>(first.size()), Scalar::byte};
  }
  std::vector<Datatype::IndexedBlock> blocks;
  for (const std::span<Byte> piece : pieces) {
    blocks.push_back({piece.data() - first.data(), static_cast<std::int64_t>(piece.size())});
  }
  return {first.data(), 1, Datatype::hindexed(blocks, Scalar::byte)};
}

}  // namespace

Operation::Operation(Task task, std::shared_ptr<const GroupMessages> messages, std::int64_t number)
    : messages_(std::move(messages)), number_(number), execution_(std::move(task), *this) {}

void Operation::begin() {
  const bool is_mine = claim();
  HEDDLE_CHECK(is_mine, "operation {} begins twice", number_);
  execution_.begin();
  do advance();
  while (!give_back());
}

bool Operation::is_over() {
  const std::scoped_lock lock(mutex_);
  return is_over_;
}

void Operation::wait() {
  bool is_mine = false;
  for (;;) {
    const Doorbell::Ticket ticket = bell_.ticket();
    if (is_over()) break;
    if (!is_mine) is_mine = claim();
    if (is_mine) {
      advance();
      if (execution_.is_over() && give_back()) break;
    }
    bell_.wait(ticket);
  }
  if (execution_.failure()) throw *execution_.failure();
}

bool Operation::claim() {
  const std::scoped_lock lock(mutex_);
  return !std::exchange(is_claimed_, true);
}

void Operation::advance() {
  for (;;) {
    std::vector<End> ended;
    {
      const std::scoped_lock lock(mutex_);
      ended.swap(ended_);
    }
    if (ended.empty()) return;
    for (const End& one : ended) {
      const bool had_failed = execution_.failure().has_value();
      try {
        execution_.ended(one.ticket, one.failure ? &*one.failure : nullptr);
      } catch (const std::exception& error) {
        execution_.fail(as_error(error));
      }
      if (!had_failed && execution_.failure()) take_back_messages();
    }
  }
}

bool Operation::give_back() {
  {
    const std::scoped_lock lock(mutex_);
    if (!ended_.empty()) return false;
    is_claimed_ = false;
    is_over_ = execution_.is_over();
  }
  bell_.ring_all();
  return true;
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

void Operation::message_ended(std::int64_t ticket, std::optional<Error> failure) {
  bool is_mine = false;
  {
    const std::scoped_lock lock(mutex_);
    under_way_.erase(ticket);
    ended_.push_back({ticket, std::move(failure)});
    is_mine = !std::exchange(is_claimed_, true);
  }
  if (!is_mine) return bell_.ring_all();
  do advance();
  while (!give_back());
}

/// Calls `begin_request(on_end)`. One that cannot begin has ended.
template <class Begin>
void Operation::begin_message(std::int64_t ticket, const Begin& begin_request) {
  {
    const std::scoped_lock lock(mutex_);
    under_way_.emplace(ticket, std::nullopt);
  }
  const auto on_end = [self = shared_from_this(), ticket](const p2p::Status& status,
                                                          const Error* failure) {
    std::optional<Error> why;
    if (failure != nullptr) {
      why = *failure;
    } else if (status.is_cancelled) {
      why = Error(ErrorCode::usage, "a collective operation was under way when its node ended");
    }
    self->message_ended(ticket, std::move(why));
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
  begin_message(ticket, [&](p2p::OnEnd on_end) {
    return messages_->send(message_of<p2p::Outgoing>(pieces), node_of(to), tag_of(name),
                           std::move(on_end));
  });
}

void Operation::receive(Rank from, Name name, std::span<const std::span<std::byte>> pieces,
                        std::int64_t ticket) {
  begin_message(ticket, [&](p2p::OnEnd on_end) {
    return messages_->receive(message_of<p2p::Incoming>(pieces), node_of(from), tag_of(name),
                              std::move(on_end));
  });
}

}  // namespace heddle::collectives
