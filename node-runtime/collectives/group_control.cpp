#include "node-runtime/collectives/group_control.hpp"

#include <algorithm>
#include <cstring>
#include <fmt/core.h>

namespace heddle::collectives {
namespace {

constexpr std::chrono::milliseconds misfit_patience{1000};
constexpr std::chrono::seconds answers_within{1};

/// The first operation that ends with `why`, which operation `number` has found. Who lacks a node's
/// messages, or has waited in vain, cannot tell which ones of the others would end.
std::int64_t first_to_fail(std::int64_t number, const Error& why) {
  return why.code() == ErrorCode::communication ? 0 : number;
}

}  // namespace

std::shared_ptr<GroupControl> GroupControl::make(std::weak_ptr<UserMessages> messages,
                                                 Options options, std::shared_ptr<CallLog> log) {
  std::shared_ptr<GroupControl> control(
      new GroupControl(std::move(messages), std::move(options), std::move(log)));
  if (control->size() > 1) control->listen();
  return control;
}

GroupControl::GroupControl(std::weak_ptr<UserMessages> messages, Options options,
                           std::shared_ptr<CallLog> log)
    : messages_(std::move(messages)), options_(std::move(options)), log_(std::move(log)) {}

GroupControl::~GroupControl() {
  const auto messages = messages_.lock();
  if (messages != nullptr && listening_ && !listening_->done()) listening_->cancel();
}

// ---- failure ---------------------------------------------------------------------------------

void GroupControl::refuse(std::int64_t number, const Error& why) {
  if (log_->refuse(number)) tell_all(Kind::refused, number, why.what(), why.code());
}

void GroupControl::operation_failed(std::int64_t number, const Error& why) {
  fail_all(first_to_fail(number, why),
           Error(why.code(), fmt::format("rank {} could not do operation {} of the group, {}: {}",
                                         rank(), number, log_->describe(number), why.what())));
}

void GroupControl::fail(std::int64_t from, const Error& why) {
  const auto left = log_->fail(from, why);
  if (!left) return;
  std::vector<std::weak_ptr<GroupRounds>> rounds;
  {
    // Who waits for news has looked into the log before, and waits now, or finds the failure.
    const std::scoped_lock lock(mutex_);
    news_.notify_all();
    rounds = rounds_;
  }
  for (const auto& operation : *left) operation->abort(why);
  for (const auto& weak : rounds) {
    if (const auto found = weak.lock()) found->group_failed(why);
  }
}

void GroupControl::fail_all(std::int64_t from, const Error& why) {
  if (log_->failure_of(from)) return;  // who told it has told all
  tell_all(Kind::failed, from, why.what(), why.code());
  fail(from, why);
}

void GroupControl::fail_all(const Error& why) {
  if (!log_->failure()) fail_all(0, why);
}

bool GroupControl::wait_for_news(std::unique_lock<std::mutex>& lock,
                                 std::chrono::milliseconds limit,
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

// ---- calls that do not fit together ----------------------------------------------------------

void GroupControl::misfit(std::int64_t number, Rank peer) {
  {
    const std::scoped_lock lock(mutex_);
    misfits_.emplace(number, peer);
  }
  // Perhaps an earlier one.
  tell(peer, Kind::compare, number, log_->calls_up_to(number, text_bytes));
  tell(peer, Kind::misfit, number, log_->describe(number));
}

/// The sender's operation of that number is not this member's: who hears it knows both calls.
void GroupControl::heard_of_misfit(const Header& header, const std::string& text) {
  // Where it was refused the sender hears so, and tells all.
  if (log_->was_refused(header.number)) return;
  const std::string own = log_->describe(header.number);
  fail_by_misfit(header.number, {header.rank, text},
                 {rank(), own.empty() ? "something else" : own});
}

void GroupControl::heard_refusal(const Header& header, const std::string& text) {
  const Error why(static_cast<ErrorCode>(header.code),
                  fmt::format("rank {} refuses operation {} of the group: {}", header.rank,
                              header.number, text));
  if (log_->hear_refusal(header.number, why) == CallLog::Refusal::too_late) {
    fail_all(header.number, why);
  }
}

void GroupControl::compare_calls(std::int64_t number) {
  const std::string note = log_->calls_up_to(number, text_bytes);
  for (std::int32_t distance = 1; distance < size(); distance *= 2) {
    tell(Rank{(rank() + distance) % size()}, Kind::compare, number, note);
    if (2 * distance == size()) continue;  // the same one
    tell(Rank{(rank() + size() - distance) % size()}, Kind::compare, number, note);
  }
}

void GroupControl::heard_comparison(const Header& header, std::string_view note) {
  const auto first = log_->first_difference(note);
  if (first) fail_by_misfit(first->number, {header.rank, first->other}, {rank(), first->own});
}

/// Two ranks, with what they call.
void GroupControl::fail_by_misfit(std::int64_t number, std::pair<std::int32_t, std::string> first,
                                  std::pair<std::int32_t, std::string> second) {
  if (second.first < first.first) std::swap(first, second);
  fail_all(
      number,
      Error(ErrorCode::usage,
            fmt::format("operation {} of the group: rank {} calls {}, but rank {} calls {}; "
                        "all ranks must make the same calls in the same order, with elements "
                        "that fit{}",
                        number, first.first, first.second, second.first, second.second,
                        first.second == second.second ? " (their types or options differ)" : "")));
}

Error GroupControl::what_it_was(std::int64_t number) {
  {
    std::unique_lock lock(mutex_);
    std::optional<Error> failure;
    const auto has_failed = [&] { return (failure = log_->failure_of(number)).has_value(); };
    if (wait_for_news(lock, misfit_patience, has_failed)) return Error(*failure);
  }
  quiet(number, "");
  return log_->failure_of(number).value();
}

// ---- what others wait for --------------------------------------------------------------------

bool GroupControl::fail_by_known_misfit(std::int64_t number) {
  std::optional<Rank> peer;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = misfits_.find(number);
    if (found == misfits_.end()) return false;
    peer = found->second;
  }
  fail_all(number,
           Error(ErrorCode::usage,
                 fmt::format("operation {} of the group: rank {} calls {}, but what rank {} has "
                             "sent is of another call; all ranks must make the same calls in the "
                             "same order, with elements that fit",
                             number, rank(), log_->describe(number), peer->value())));
  return true;
}

std::string GroupControl::describe_quiet(std::int64_t number) const {
  return fmt::format("operation {} of the group, {}; there may be ranks that do not call it",
                     number, log_->describe(number));
}

void GroupControl::quiet(std::int64_t number, const std::string& step) {
  if (fail_by_known_misfit(number)) return;
  fail_with_states(operation_subject(number), describe_quiet(number), step);
}

void GroupControl::stuck(std::int64_t number, const std::string& step) {
  if (fail_by_known_misfit(number)) return;
  ask_or_fail(operation_subject(number), describe_quiet(number), step);
}

void GroupControl::quiet_round(std::int32_t rounds, std::int64_t round, const std::string& what,
                               const std::string& step) {
  fail_with_states({rounds, round},
                   fmt::format("{}; there may be ranks that have not begun it", what), step);
}

void GroupControl::stuck_round(std::int32_t rounds, std::int64_t round, const std::string& what,
                               const std::string& step) {
  ask_or_fail({rounds, round}, fmt::format("{}; there may be ranks that have not begun it", what),
              step);
}

bool GroupControl::has_failed(const Subject& subject) const {
  return (subject.first == 0 ? log_->failure_of(subject.second) : log_->failure()).has_value();
}

void GroupControl::ask_members(const Subject& subject, const std::string& step) {
  {
    const std::scoped_lock lock(mutex_);
    inquiries_[subject] = {step, options_.waiting.now(), {}};
  }
  tell_all(Kind::ask_state, subject.second, "", ErrorCode::usage, subject.first);
}

void GroupControl::fail_with_states(const Subject& subject, const std::string& what,
                                    const std::string& step) {
  ask_members(subject, step);
  {
    std::unique_lock lock(mutex_);
    if (has_failed(subject)) return;
    wait_for_news(lock, answers_within, [&] { return is_answered(inquiries_.at(subject)); });
  }
  fail_with_answers(subject, what);
}

void GroupControl::ask_or_fail(const Subject& subject, const std::string& what,
                               const std::string& step) {
  if (has_failed(subject)) return;
  bool is_asked = false;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = inquiries_.find(subject);
    is_asked = found != inquiries_.end();
    if (is_asked && !is_answered(found->second) &&
        options_.waiting.now() - found->second.since < answers_within) {
      return;
    }
  }
  if (is_asked) return fail_with_answers(subject, what);
  // Calls that do not fit together are found before the answers come.
  if (subject.first == 0) compare_calls(subject.second);
  ask_members(subject, step);
}

void GroupControl::fail_with_answers(const Subject& subject, const std::string& what) {
  std::string table = fmt::format("nothing has happened for {:.3g} s in {}",
                                  std::chrono::duration<double>(options_.patience).count(), what);
  {
    const std::scoped_lock lock(mutex_);
    Inquiry& inquiry = inquiries_.at(subject);
    inquiry.states[rank()] = fmt::format("is in it and waits: {}", inquiry.step);
    for (std::int32_t r = 0; r < size(); ++r) {
      const auto found = inquiry.states.find(r);
      table += fmt::format("\n  rank {} {}", r,
                           found == inquiry.states.end() ? "does not answer" : found->second);
    }
  }
  fail_all(0, Error(ErrorCode::communication, table));
}

void GroupControl::asked_for_state(const Header& header) {
  if (header.rounds != 0) return asked_for_round(header);
  const Rank to{header.rank};
  const auto waits = [self = shared_from_this(), to,
                      number = header.number](const std::string& step) {
    self->tell(to, Kind::state, number, fmt::format("is in it and waits: {}", step));
  };
  std::optional<std::string> step;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = inquiries_.find(operation_subject(header.number));
    if (found != inquiries_.end()) step = found->second.step;
  }
  if (step) return waits(*step);
  const CallLog::State state = log_->state_of(header.number);
  if (state.operation == nullptr) return tell(to, Kind::state, header.number, state.text);
  state.operation->ask_step(waits);
}

void GroupControl::asked_for_round(const Header& header) {
  std::shared_ptr<GroupRounds> rounds;
  std::string state = "has dropped it";
  {
    const std::scoped_lock lock(mutex_);
    const auto index = static_cast<std::size_t>(header.rounds) - 1;
    if (const auto asked = inquiries_.find({header.rounds, header.number});
        asked != inquiries_.end()) {
      state = fmt::format("is in it and waits: {}", asked->second.step);
    } else if (index < rounds_.size()) {
      rounds = rounds_[index].lock();
    } else {
      state = "has not made it";
    }
  }
  const auto answer = [self = shared_from_this(), header](const std::string& found) {
    self->tell(Rank{header.rank}, Kind::state, header.number, found, ErrorCode::usage,
               header.rounds);
  };
  rounds == nullptr ? answer(state) : rounds->ask_state(header.number, answer);
}

// ---- rounds ----------------------------------------------------------------------------------

std::int32_t GroupControl::add(std::weak_ptr<GroupRounds> rounds) {
  const std::scoped_lock lock(mutex_);
  rounds_.push_back(std::move(rounds));
  return static_cast<std::int32_t>(rounds_.size());
}

// ---- messages between members ----------------------------------------------------------------

void GroupControl::tell_all(Kind kind, std::int64_t number, std::string_view text, ErrorCode code,
                            std::int32_t rounds) {
  for (std::int32_t r = 0; r < size(); ++r) {
    if (r != rank()) tell(Rank{r}, kind, number, text, code, rounds);
  }
}

/// Where it cannot be told the node has failed or ended, as the other one hears.
void GroupControl::tell(Rank to, Kind kind, std::int64_t number, std::string_view text,
                        ErrorCode code, std::int32_t rounds) {
  text = text.substr(0, text_bytes);
  const Header header{number,
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
    const auto messages = messages_.lock();
    if (messages == nullptr) return;
    static_cast<void>(messages->send(message, options_.nodes[static_cast<std::size_t>(to.value())],
                                     control_tag, options_.channel,
                                     [note](const p2p::Status&, const Error*) {}));
  } catch (const Error&) {
    return;
  }
}

/// Until the group is gone, or the node has failed or ended.
void GroupControl::listen() {
  const auto note = std::make_shared<std::vector<std::byte>>(control_bytes);
  const auto on_end = [weak = weak_from_this(), note](const p2p::Status& status,
                                                      const Error* failure) {
    const auto self = weak.lock();
    if (self == nullptr || status.is_cancelled) return;
    if (failure != nullptr) return self->fail(0, *failure);  // the node has failed
    Header header;
    std::memcpy(&header, note->data(), sizeof header);
    const std::string text(reinterpret_cast<const char*>(note->data() + sizeof header),
                           header.length);
    self->listen();
    self->heard(header, text);
  };
  try {
    const p2p::Incoming room{note->data(), static_cast<std::int64_t>(note->size())};
    const auto messages = messages_.lock();
    if (messages == nullptr) return;
    p2p::Request request = messages->listen(room, control_tag, options_.channel, on_end);
    const std::scoped_lock lock(mutex_);
    listening_ = std::move(request);
  } catch (const Error&) {
    return;
  }
}

void GroupControl::heard(const Header& header, const std::string& text) {
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
      const auto asked = inquiries_.find({header.rounds, header.number});
      if (asked == inquiries_.end()) return;
      asked->second.states[header.rank] = text;
      news_.notify_all();
      return;
    }
  }
}

}  // namespace heddle::collectives
