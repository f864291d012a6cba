/// What goes wrong in a group: what its members tell each other, and how it fails.

#include <algorithm>
#include <cstring>
#include <fmt/core.h>

#include "node-runtime/collectives/group_core.hpp"

namespace heddle::collectives {
namespace {

constexpr std::int32_t control_tag = Operation::tags;

}  // namespace

/// This member's call `number` does not begin.
void GroupCore::refuse(std::int64_t number, const Error& why) {
  {
    const std::scoped_lock lock(mutex_);
    under_way_.erase(number);
    if (Called* const called = find_call(number)) called->is_refused = true;
    if (!refusals_.extract(number).empty() || failure_of(number) != nullptr) return;  // they know
  }
  tell_all(Kind::refused, number, why.what(), why.code());
}

GroupCore::Called* GroupCore::find_call(std::int64_t number) {
  const auto found = std::ranges::find(calls_, number, &Called::number);
  return found == calls_.end() ? nullptr : &*found;
}

std::string GroupCore::call_of(std::int64_t number) {
  const Called* const called = find_call(number);
  return called == nullptr ? "" : called->call.describe();
}

void GroupCore::over(std::int64_t number, const Error* failure) {
  bool is_news = false;
  std::string call;
  std::optional<TracedOperation> traced;
  {
    const std::scoped_lock lock(mutex_);
    traced = take_traced(number);
    under_way_.erase(number);
    is_news = failure != nullptr && failure_of(number) == nullptr;
    if (is_news) call = call_of(number);
  }
  if (traced && failure == nullptr) options_.trace->add(*traced);
  streams_.go_on(number, failure);
  if (!is_news) return;
  fail_all(first_to_fail(number, *failure),
           Error(failure->code(), fmt::format("rank {} could not do operation {} of the group, {}: "
                                              "{}",
                                              rank(), number, call, failure->what())));
}

bool GroupCore::wait_for_news(std::unique_lock<std::mutex>& lock, std::chrono::milliseconds limit,
                              const std::function<bool()>& is_there) {
  const Waiting& waiting = options_.waiting;
  if (!waiting.drive) return news_.wait_for(lock, limit, is_there);
  for (const Waiting::Time end = waiting.now() + limit; !is_there();) {
    if (waiting.now() > end) return false;
    lock.unlock();
    waiting.drive();
    lock.lock();
  }
  return true;
}

// ---- failure ---------------------------------------------------------------------------------

void GroupCore::fail(std::int64_t from, const Error& why) {
  std::vector<std::shared_ptr<Operation>> left;
  std::vector<std::weak_ptr<GroupRounds>> rounds;
  {
    const std::scoped_lock lock(mutex_);
    if (failure_of(from) != nullptr) return;
    failure_ = own_copy(why);
    failed_from_ = from;
    news_.notify_all();
    // Those before go on. Those that an earlier failure has aborted are not aborted again.
    for (auto at = under_way_.lower_bound(from); at != under_way_.end(); ++at) {
      if (at->second != nullptr) left.push_back(at->second);
    }
    rounds = rounds_;
  }
  for (const auto& operation : left) operation->abort(why);
  for (const auto& weak : rounds) {
    if (const auto found = weak.lock()) found->group_failed(why);
  }
}

void GroupCore::fail_all(std::int64_t from, const Error& why) {
  {
    const std::scoped_lock lock(mutex_);
    if (failure_of(from) != nullptr) return;  // who told it has told all
  }
  tell_all(Kind::failed, from, why.what(), why.code());
  fail(from, why);
}

void GroupCore::fail_all(const Error& why) {
  {
    const std::scoped_lock lock(mutex_);
    if (failure_) return;
  }
  fail_all(0, why);
}

void GroupCore::misfit(std::int64_t number, Rank peer) {
  std::string call;
  {
    const std::scoped_lock lock(mutex_);
    call = call_of(number);
    misfits_.emplace(number, peer);
  }
  tell(peer, Kind::compare, number, calls_up_to(number));  // perhaps an earlier one
  tell(peer, Kind::misfit, number, call);
}

/// The sender's operation of that number is not this member's: who hears it knows both calls.
void GroupCore::heard_of_misfit(const ControlHeader& header, const std::string& text) {
  std::string own;
  {
    const std::scoped_lock lock(mutex_);
    // Where it was refused the sender hears so, and tells all.
    const Called* const called = find_call(header.number);
    if (called != nullptr && called->is_refused) return;
    own = called == nullptr ? "something else" : called->call.describe();
  }
  fail_by_misfit(header.number, {header.rank, text}, {rank(), own});
}

void GroupCore::heard_refusal(const ControlHeader& header, const std::string& text) {
  const Error why(static_cast<ErrorCode>(header.code),
                  fmt::format("rank {} refuses operation {} of the group: {}", header.rank,
                              header.number, text));
  {
    const std::scoped_lock lock(mutex_);
    const auto found = under_way_.find(header.number);
    const bool is_begun =
        header.number == on_board_ || (found != under_way_.end() && found->second != nullptr);
    const bool is_past = header.number < next_ && found == under_way_.end();
    if (!is_begun && !is_past) {
      refusals_.emplace(header.number, why);
      return;
    }
    // Nobody waits for it where it was refused as well.
    const Called* const called = find_call(header.number);
    if (is_past && called != nullptr && called->is_refused) return;
  }
  fail_all(header.number, why);
}

// ---- what others wait for ----------------------------------------------------------------------

void GroupCore::quiet(std::int64_t number, const std::string& step) {
  std::string call;
  std::optional<Rank> misfit_peer;
  {
    const std::scoped_lock lock(mutex_);
    call = call_of(number);
    if (const auto found = misfits_.find(number); found != misfits_.end()) {
      misfit_peer = found->second;
    }
  }
  if (misfit_peer) {
    return fail_all(
        number,
        Error(ErrorCode::usage,
              fmt::format("operation {} of the group: rank {} calls {}, but what rank {} has sent "
                          "is of another call; all ranks must make the same calls in the same "
                          "order, with elements that fit",
                          number, rank(), call, misfit_peer->value())));
  }
  fail_with_states(0, number,
                   fmt::format("operation {} of the group, {}; there may be ranks that do not call "
                               "it",
                               number, call),
                   step);
}

void GroupCore::quiet(std::int32_t rounds, std::int64_t round, const std::string& what,
                      const std::string& step) {
  fail_with_states(rounds, round,
                   fmt::format("{}; there may be ranks that have not begun it", what), step);
}

void GroupCore::fail_with_states(std::int32_t rounds, std::int64_t number, const std::string& what,
                                 const std::string& step) {
  constexpr std::chrono::seconds answers_within{1};
  {
    const std::scoped_lock lock(mutex_);
    states_.clear();
    quiet_steps_[{rounds, number}] = step;
  }
  tell_all(Kind::ask_state, number, "", ErrorCode::usage, rounds);
  std::string table = fmt::format("nothing has happened for {:.3g} s in {}",
                                  std::chrono::duration<double>(options_.patience).count(), what);
  {
    std::unique_lock lock(mutex_);
    if (rounds == 0 ? failure_of(number) != nullptr : failure_.has_value()) return;
    wait_for_news(lock, answers_within, [&] { return std::cmp_equal(states_.size() + 1, size()); });
    states_[rank()] = fmt::format("is in it and waits: {}", step);
    for (std::int32_t r = 0; r < size(); ++r) {
      const auto found = states_.find(r);
      table += fmt::format("\n  rank {} {}", r,
                           found == states_.end() ? "does not answer" : found->second);
    }
  }
  fail_all(0, Error(ErrorCode::communication, table));
}

void GroupCore::asked_for_state(const ControlHeader& header) {
  if (header.rounds != 0) return asked_for_round(header);
  std::shared_ptr<Operation> operation;
  std::string state;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = under_way_.find(header.number);
    if (const auto step = quiet_steps_.find({0, header.number}); step != quiet_steps_.end()) {
      state = fmt::format("is in it and waits: {}", step->second);
    } else if (header.number == on_board_) {
      state = "is in it and waits: others at the board";
    } else if (found != under_way_.end()) {
      operation = found->second;
    } else if (header.number >= next_) {
      state = next_ == 1 ? std::string("has not called anything")
                         : fmt::format("has not called it; its last one is {}, {}", next_ - 1,
                                       call_of(next_ - 1));
    } else {
      state = "has ended it";
    }
  }
  const Rank to{header.rank};
  if (operation == nullptr) {
    if (state.empty()) state = "begins it";
    return tell(to, Kind::state, header.number, state);
  }
  operation->ask_step(
      [self = shared_from_this(), to, number = header.number](const std::string& step) {
        self->tell(to, Kind::state, number, fmt::format("is in it and waits: {}", step));
      });
}

void GroupCore::asked_for_round(const ControlHeader& header) {
  std::shared_ptr<GroupRounds> rounds;
  std::string state = "has dropped it";
  {
    const std::scoped_lock lock(mutex_);
    const auto index = static_cast<std::size_t>(header.rounds) - 1;
    if (const auto step = quiet_steps_.find({header.rounds, header.number});
        step != quiet_steps_.end()) {
      state = fmt::format("is in it and waits: {}", step->second);
    } else if (index < rounds_.size()) {
      rounds = rounds_[index].lock();
    } else {
      state = "has not made it";
    }
  }
  const auto answer = [self = shared_from_this(), to = Rank{header.rank}, number = header.number](
                          const std::string& found) { self->tell(to, Kind::state, number, found); };
  rounds == nullptr ? answer(state) : rounds->ask_state(header.number, answer);
}

// ---- rounds ----------------------------------------------------------------------------------

std::int32_t GroupCore::add(std::weak_ptr<GroupRounds> rounds) {
  const std::scoped_lock lock(mutex_);
  rounds_.push_back(std::move(rounds));
  return static_cast<std::int32_t>(rounds_.size());
}

void GroupCore::throw_failure() const {
  const std::scoped_lock lock(mutex_);
  if (failure_) throw own_copy(*failure_);
}

// ---- messages between members ----------------------------------------------------------------

void GroupCore::tell_all(Kind kind, std::int64_t number, std::string_view text, ErrorCode code,
                         std::int32_t rounds) {
  for (std::int32_t r = 0; r < size(); ++r) {
    if (r != rank()) tell(Rank{r}, kind, number, text, code, rounds);
  }
}

/// Where it cannot be told the node has failed or ended, as the other one hears.
void GroupCore::tell(Rank to, Kind kind, std::int64_t number, std::string_view text, ErrorCode code,
                     std::int32_t rounds) {
  text = text.substr(0, control_bytes - sizeof(ControlHeader));
  const ControlHeader header{number,
                             rank(),
                             kind,
                             static_cast<std::uint8_t>(code),
                             static_cast<std::uint16_t>(text.size()),
                             rounds};
  const auto note = std::make_shared<std::vector<std::byte>>(sizeof header + text.size());
  std::memcpy(note->data(), &header, sizeof header);
  std::memcpy(note->data() + sizeof header, text.data(), text.size());
  try {
    const p2p::Outgoing message{note->data(), static_cast<std::int64_t>(note->size())};
    static_cast<void>(user_messages()->send(
        message, options_.nodes[static_cast<std::size_t>(to.value())], control_tag,
        options_.channel, [note](const p2p::Status&, const Error*) {}));
  } catch (const Error&) {
    return;
  }
}

/// Until the group is gone, or the node has failed or ended.
void GroupCore::listen() {
  const auto note = std::make_shared<std::vector<std::byte>>(control_bytes);
  const auto on_end = [weak = weak_from_this(), note](const p2p::Status& status,
                                                      const Error* failure) {
    const auto self = weak.lock();
    if (self == nullptr || status.is_cancelled) return;
    if (failure != nullptr) return self->fail(0, *failure);  // the node has failed
    ControlHeader header;
    std::memcpy(&header, note->data(), sizeof header);
    const std::string text(reinterpret_cast<const char*>(note->data() + sizeof header),
                           header.length);
    self->listen();
    self->heard(header, text);
  };
  try {
    const p2p::Incoming room{note->data(), static_cast<std::int64_t>(note->size())};
    p2p::Request request = user_messages()->listen(room, control_tag, options_.channel, on_end);
    const std::scoped_lock lock(mutex_);
    listening_ = std::move(request);
  } catch (const Error&) {
    return;
  }
}

void GroupCore::heard(const ControlHeader& header, const std::string& text) {
  switch (header.kind) {
    case Kind::misfit:
      return heard_of_misfit(header, text);
    case Kind::failed:
      return fail(header.number, Error(static_cast<ErrorCode>(header.code), text));
    case Kind::refused:
      return heard_refusal(header, text);
    case Kind::ask_state:
      return asked_for_state(header);
    case Kind::compare:
      return heard_comparison(header, text);
    case Kind::state: {
      const std::scoped_lock lock(mutex_);
      states_[header.rank] = text;
      news_.notify_all();
      return;
    }
  }
}

}  // namespace heddle::collectives
