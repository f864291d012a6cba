#include "node-runtime/collectives/group_core.hpp"

#include <algorithm>
#include <cstring>
#include <fmt/core.h>

#include "base/process_limits.hpp"

namespace heddle::collectives {
namespace {

constexpr std::int32_t control_tag = Operation::tags;
constexpr std::chrono::milliseconds misfit_patience{1000};

/// `work()`; what is wrong with types, algorithms or memory comes without the call's name.
template <class Work>
auto named(const Call& call, const Work& work) {
  try {
    return work();
  } catch (const std::exception& error) {
    const Error known = as_error(error);
    throw Error(known.code(), fmt::format("{}: {}", call.describe(), known.what()));
  }
}

}  // namespace

std::shared_ptr<GroupCore> GroupCore::make(std::weak_ptr<UserMessages> messages, Options options) {
  std::shared_ptr<GroupCore> core(new GroupCore(std::move(messages), std::move(options)));
  if (core->size() > 1) core->listen();
  return core;
}

GroupCore::GroupCore(std::weak_ptr<UserMessages> messages, Options options)
    : messages_(std::move(messages)),
      options_(std::move(options)),
      planner_(options_.own, options_.places, options_.rates) {
  own_.nodes = options_.nodes;
  own_.send = [this](const p2p::Outgoing& message, NodeId to, std::int32_t tag, p2p::OnEnd on_end) {
    return user_messages()->send(message, to, tag, options_.channel, std::move(on_end));
  };
  own_.receive = [this](const p2p::Incoming& room, NodeId from, std::int32_t tag,
                        p2p::OnEnd on_end) {
    return user_messages()->receive(room, from, tag, options_.channel, std::move(on_end));
  };
  own_.misfit = [this](std::int64_t number, Rank peer) { misfit(number, peer); };
  own_.over = [this](std::int64_t number, const Error* failure) { over(number, failure); };
  own_.quiet = [this](std::int64_t number, const std::string& step) { quiet(number, step); };
  own_.compare = [this](std::int64_t number) { compare_calls(number); };
  own_.patience = options_.patience;
  own_.waiting = options_.waiting;
  user_messages()->count_group(1);
}

/// Nobody has a handle, and no operation is under way.
GroupCore::~GroupCore() {
  const auto messages = messages_.lock();
  if (messages == nullptr) return;
  messages->count_group(-1);
  if (listening_ && !listening_->done()) listening_->cancel();
}

std::shared_ptr<UserMessages> GroupCore::user_messages() const {
  if (auto found = messages_.lock()) return found;
  throw Error(ErrorCode::usage, "a group of a node is used, but the node has ended");
}

// ---- calls -----------------------------------------------------------------------------------

std::int64_t GroupCore::take_number(const Call& call) {
  const std::scoped_lock lock(mutex_);
  if (failure_) throw own_copy(*failure_);
  // Messages are named by numbers modulo operations_max.
  if (!under_way_.empty() && next_ - under_way_.begin()->first >= operations_max) {
    throw Error(ErrorCode::usage,
                fmt::format("{}: {} operations of the group are under way, as many as may be; wait "
                            "for number {} first",
                            call.describe(), under_way_.size(), under_way_.begin()->first));
  }
  const std::int64_t number = next_++;
  under_way_.emplace(number, nullptr);
  calls_.push_back({number, call.summary()});
  if (calls_.size() > calls_remembered) calls_.pop_front();
  return number;
}

GroupCore::Begun GroupCore::begin(const Call& call) {
  const std::int64_t number = take_number(call);
  Begun begun;
  std::uint64_t seal = 0;
  try {
    check(call, rank(), size());
    Planner::Planned planned = named(call, [&] { return planner_.plan(call, number); });
    begun.choice = std::move(planned.choice);
    seal = planned.task.seal = seal_behind_others(planned.task.seal);
    // The operations keep the group alive.
    const std::shared_ptr<const GroupMessages> messages(shared_from_this(), &own_);
    begun.operation = std::make_shared<Operation>(std::move(planned.task), messages, number);
  } catch (const std::exception& error) {
    refuse(number, as_error(error));
    throw;
  }
  {
    const std::scoped_lock lock(mutex_);
    const auto refusal = refusals_.extract(number);
    if (failure_ || !refusal.empty()) {
      under_way_.erase(number);
      if (Called* const called = find_call(number)) called->is_refused = true;
      throw own_copy(failure_ ? *failure_ : refusal.mapped());
    }
    under_way_[number] = begun.operation;
    begins(number, seal);
  }
  begun.operation->begin();
  return begun;
}

void GroupCore::run(const Call& call) {
  if (board_ == nullptr || !board_->takes(call)) return begin(call).operation->wait();
  run_on_board(call);
}

void GroupCore::run_on_board(const Call& call) {
  // One after the other, in the order of their numbers.
  const std::scoped_lock turn(board_mutex_);
  const std::int64_t number = take_number(call);
  try {
    check(call, rank(), size());
    named(call, [&] { board_->check_types(call); });
  } catch (const std::exception& error) {
    refuse(number, as_error(error));
    throw;
  }
  const std::uint64_t seal = seal_behind_others(seal_of(call, number));
  {
    const std::scoped_lock lock(mutex_);
    under_way_.erase(number);
    const auto refusal = refusals_.extract(number);
    if (failure_ || !refusal.empty()) {
      if (Called* const called = find_call(number)) called->is_refused = true;
      throw own_copy(failure_ ? *failure_ : refusal.mapped());
    }
    on_board_ = number;
    on_board_since_ = options_.waiting.now();
    compares_after_ = GroupMessages::compares_after;
    begins(number, seal);
  }
  try {
    board_->run(call, seal);
  } catch (const BoardMisfit& other) {
    misfit(number, other.peer);
    throw what_it_was(number);
  } catch (const std::exception& error) {
    // The others wait for this member's part, unless they know.
    const Error why = as_error(error);
    fail_all(Error(why.code(), fmt::format("rank {} could not do operation {} of the group, {}: {}",
                                           rank(), number, call.describe(), why.what())));
    throw;
  }
  const std::scoped_lock lock(mutex_);
  on_board_ = 0;
}

template <class IsThere>
bool GroupCore::wait_for_news(std::unique_lock<std::mutex>& lock, std::chrono::milliseconds limit,
                              const IsThere& is_there) {
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

/// Waits until the peer of a misfit has told all members both calls; if it does not soon, this one
/// tells what it knows.
Error GroupCore::what_it_was(std::int64_t number) {
  {
    std::unique_lock lock(mutex_);
    if (wait_for_news(lock, misfit_patience, [this] { return failure_.has_value(); })) {
      return own_copy(*failure_);
    }
  }
  quiet(number, "");
  const std::scoped_lock lock(mutex_);
  return own_copy(*failure_);
}

/// By the thread that waits at the board, now and then: throws when the group has failed.
void GroupCore::look_from_board() {
  {
    const std::scoped_lock lock(mutex_);
    if (failure_) throw own_copy(*failure_);
  }
  const auto waited = options_.waiting.now() - on_board_since_;
  if (waited > compares_after_) {
    compare_calls(on_board_);
    compares_after_ *= 2;
  }
  if (waited > options_.patience) {
    quiet(on_board_, "others at the board");
  }
}

void GroupCore::set_up_board() {
  const auto has_one_host = [&] {
    for (std::int32_t r = 1; r < size(); ++r) {
      if (options_.places[Rank{r}].host != options_.places[Rank{0}].host) return false;
    }
    return true;
  };
  if (size() == 1 || !has_one_host()) return;
  // The lowest rank's memory; all tell whether they have it.
  using Name = p2p::HostRegion::Name;
  std::optional<p2p::HostRegion> memory;
  Name name;
  const std::size_t bytes = HostBoard::bytes_for(size());
  try {
    if (rank() == 0) {
      memory.emplace(0, bytes);
      name = memory->name();
    }
  } catch (const Error&) {
    name = {};
  }
  Call giving;
  giving.kind = CollectiveKind::broadcast;
  giving.options.name = "making a board";
  (rank() == 0 ? giving.inputs : giving.outputs)
      .emplace_back(Incoming{&name, static_cast<std::int64_t>(sizeof name)});
  begin(giving).operation->wait();
  try {
    if (rank() != 0 && name.fd >= 0) memory.emplace(name);
  } catch (const Error&) {
    memory.reset();  // a sandbox that refuses it: messages do
  }
  std::int8_t has_memory = memory ? 1 : 0;
  Call asking;
  asking.kind = CollectiveKind::all_reduce;
  asking.is_in_place = true;
  asking.operation = ReduceOperation::minimum();
  asking.options.name = "making a board";
  asking.outputs.emplace_back(Incoming{&has_memory, 1, Scalar::int8});
  begin(asking).operation->wait();
  if (has_memory == 0) return;
  board_ = std::make_unique<HostBoard>(
      std::move(*memory), size(), rank(),
      Board::Patience{options_.looks, options_.yields, [this] { look_from_board(); },
                      options_.waiting.drive});
}

/// This member's call `number` does not begin.
void GroupCore::refuse(std::int64_t number, const Error& why) {
  {
    const std::scoped_lock lock(mutex_);
    under_way_.erase(number);
    if (Called* const called = find_call(number)) called->is_refused = true;
    if (!refusals_.extract(number).empty() || failure_) return;  // the others know
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
  {
    const std::scoped_lock lock(mutex_);
    under_way_.erase(number);
    is_news = failure != nullptr && !failure_;
    if (is_news) call = call_of(number);
  }
  if (!is_news) return;
  fail_all(Error(failure->code(), fmt::format("rank {} could not do operation {} of the group, {}: "
                                              "{}",
                                              rank(), number, call, failure->what())));
}

// ---- failure ---------------------------------------------------------------------------------

void GroupCore::fail(const Error& why) {
  std::vector<std::shared_ptr<Operation>> left;
  {
    const std::scoped_lock lock(mutex_);
    if (failure_) return;
    failure_ = own_copy(why);
    news_.notify_all();
    for (const auto& [number, operation] : under_way_) {
      if (operation != nullptr) left.push_back(operation);
    }
  }
  for (const auto& operation : left) operation->abort(why);
}

void GroupCore::fail_all(const Error& why) {
  {
    const std::scoped_lock lock(mutex_);
    if (failure_) return;  // who told it has told all
  }
  tell_all(Kind::failed, 0, why.what(), why.code());
  fail(why);
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
    own = call_of(header.number);
    if (own.empty()) own = "something else";
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
  fail_all(why);
}

// ---- what others wait for ----------------------------------------------------------------------

void GroupCore::quiet(std::int64_t number, const std::string& step) {
  constexpr std::chrono::seconds answers_within{1};
  std::string call;
  std::optional<Rank> misfit_peer;
  {
    const std::scoped_lock lock(mutex_);
    call = call_of(number);
    if (const auto found = misfits_.find(number); found != misfits_.end()) {
      misfit_peer = found->second;
    }
    states_.clear();
    quiet_steps_[number] = step;
  }
  if (misfit_peer) {
    return fail_all(
        Error(ErrorCode::usage,
              fmt::format("operation {} of the group: rank {} calls {}, but what rank {} has sent "
                          "is of another call; all ranks must make the same calls in the same "
                          "order, with elements that fit",
                          number, rank(), call, misfit_peer->value())));
  }
  tell_all(Kind::ask_state, number, "");
  std::string table = fmt::format(
      "nothing has happened for {:.3g} s in operation {} of the group, {}; there may be ranks that "
      "do not call it",
      std::chrono::duration<double>(options_.patience).count(), number, call);
  {
    std::unique_lock lock(mutex_);
    if (failure_) return;
    wait_for_news(lock, answers_within, [&] { return std::cmp_equal(states_.size() + 1, size()); });
    states_[rank()] = fmt::format("is in it and waits: {}", step);
    for (std::int32_t r = 0; r < size(); ++r) {
      const auto found = states_.find(r);
      table += fmt::format("\n  rank {} {}", r,
                           found == states_.end() ? "does not answer" : found->second);
    }
  }
  fail_all(Error(ErrorCode::communication, table));
}

void GroupCore::asked_for_state(const ControlHeader& header) {
  std::shared_ptr<Operation> operation;
  std::string state;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = under_way_.find(header.number);
    if (const auto step = quiet_steps_.find(header.number); step != quiet_steps_.end()) {
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

// ---- messages between members ----------------------------------------------------------------

void GroupCore::tell_all(Kind kind, std::int64_t number, std::string_view text, ErrorCode code) {
  for (std::int32_t r = 0; r < size(); ++r) {
    if (r != rank()) tell(Rank{r}, kind, number, text, code);
  }
}

/// Where it cannot be told the node has failed or ended, as the other one hears.
void GroupCore::tell(Rank to, Kind kind, std::int64_t number, std::string_view text,
                     ErrorCode code) {
  text = text.substr(0, control_bytes - sizeof(ControlHeader));
  const ControlHeader header{number, rank(), kind, static_cast<std::uint8_t>(code),
                             static_cast<std::uint16_t>(text.size())};
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
    if (failure != nullptr) return self->fail(*failure);  // the node has failed
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
      return fail(Error(static_cast<ErrorCode>(header.code), text));
    case Kind::refused:
      return heard_refusal(header, text);
    case Kind::compare:
      return heard_comparison(header, text);
    case Kind::ask_state:
      return asked_for_state(header);
    case Kind::state: {
      const std::scoped_lock lock(mutex_);
      states_[header.rank] = text;
      news_.notify_all();
      return;
    }
  }
}

}  // namespace heddle::collectives
