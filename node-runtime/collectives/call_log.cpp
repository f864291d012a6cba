#include "node-runtime/collectives/call_log.hpp"

#include <algorithm>
#include <cstring>
#include <fmt/core.h>
#include <utility>

#include "node-runtime/collectives/execution/seal.hpp"

namespace heddle::collectives {
namespace {

/// Calls that a comparison has, at most: as many of the last ones.
constexpr std::size_t calls_compared = 8;

/// One of them, in a note; its description follows.
struct ComparedCall {
  std::int64_t number = 0;
  std::uint64_t digest = 0;
  std::uint64_t length = 0;
};

}  // namespace

const CallLog::Called* CallLog::find(std::int64_t number) const {
  const auto found = std::ranges::find(calls_, number, &Called::number);
  return found == calls_.end() ? nullptr : &*found;
}

void CallLog::mark_refused(std::int64_t number) {
  const auto found = std::ranges::find(calls_, number, &Called::number);
  if (found != calls_.end()) found->is_refused = true;
}

// ---- calls -----------------------------------------------------------------------------------

std::int64_t CallLog::take_number(const Call& call) {
  const std::scoped_lock lock(mutex_);
  if (const Error* const failure = reason(next_)) throw own_copy(*failure);
  // Messages are named by numbers modulo under_way_max.
  if (!under_way_.empty() && next_ - under_way_.begin()->first >= under_way_max) {
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

std::uint64_t CallLog::seal_behind_others(std::uint64_t seal) const {
  const std::scoped_lock lock(mutex_);
  return std::max<std::uint64_t>(1, mixed(calls_digest_, seal));
}

/// Then the call is not under way any more.
std::optional<Error> CallLog::take_reason_against(std::int64_t number) {
  const auto refusal = refusals_.extract(number);
  const Error* const failure = reason(number);
  if (failure == nullptr && refusal.empty()) return std::nullopt;
  under_way_.erase(number);
  mark_refused(number);
  return own_copy(failure != nullptr ? *failure : refusal.mapped());
}

void CallLog::note_begin(std::int64_t number, std::uint64_t seal) {
  calls_digest_ = seal;
  const auto found = std::ranges::find(calls_, number, &Called::number);
  if (found != calls_.end()) found->digest = seal;
}

std::optional<Error> CallLog::begin(std::int64_t number, std::uint64_t seal,
                                    std::shared_ptr<Operation> operation) {
  const std::scoped_lock lock(mutex_);
  if (auto why = take_reason_against(number)) return why;
  under_way_[number] = std::move(operation);
  note_begin(number, seal);
  return std::nullopt;
}

std::optional<Error> CallLog::begin_at_board(std::int64_t number, std::uint64_t seal) {
  const std::scoped_lock lock(mutex_);
  if (auto why = take_reason_against(number)) return why;
  under_way_.erase(number);
  at_board_ = number;
  note_begin(number, seal);
  return std::nullopt;
}

void CallLog::end_at_board() {
  const std::scoped_lock lock(mutex_);
  at_board_ = 0;
}

bool CallLog::refuse(std::int64_t number) {
  const std::scoped_lock lock(mutex_);
  under_way_.erase(number);
  mark_refused(number);
  return refusals_.extract(number).empty() && reason(number) == nullptr;
}

std::shared_ptr<Operation> CallLog::end(std::int64_t number) {
  const std::scoped_lock lock(mutex_);
  auto ended = under_way_.extract(number);
  return ended.empty() ? nullptr : std::move(ended.mapped());
}

// ---- refusals and failure --------------------------------------------------------------------

CallLog::Refusal CallLog::hear_refusal(std::int64_t number, const Error& why) {
  const std::scoped_lock lock(mutex_);
  const auto found = under_way_.find(number);
  const bool is_begun =
      number == at_board_ || (found != under_way_.end() && found->second != nullptr);
  const bool is_past = number < next_ && found == under_way_.end();
  if (!is_begun && !is_past) {
    refusals_.emplace(number, why);
    return Refusal::kept;
  }
  // Nobody waits for it where it was refused as well.
  const Called* const called = find(number);
  const bool was_refused_here = is_past && called != nullptr && called->is_refused;
  return was_refused_here ? Refusal::ignored : Refusal::too_late;
}

std::optional<std::vector<std::shared_ptr<Operation>>> CallLog::fail(std::int64_t from,
                                                                     const Error& why) {
  const std::scoped_lock lock(mutex_);
  if (reason(from) != nullptr) return std::nullopt;
  failure_ = own_copy(why);
  failed_from_ = from;
  // Those before go on. Those that an earlier failure has aborted are not aborted again.
  std::vector<std::shared_ptr<Operation>> left;
  for (auto at = under_way_.lower_bound(from); at != under_way_.end(); ++at) {
    if (at->second != nullptr) left.push_back(at->second);
  }
  return left;
}

std::optional<Error> CallLog::failure_of(std::int64_t number) const {
  const std::scoped_lock lock(mutex_);
  const Error* const failure = reason(number);
  return failure == nullptr ? std::nullopt : std::optional(own_copy(*failure));
}

std::optional<Error> CallLog::failure() const {
  const std::scoped_lock lock(mutex_);
  return failure_ ? std::optional(own_copy(*failure_)) : std::nullopt;
}

// ---- what others ask -------------------------------------------------------------------------

std::string CallLog::describe(std::int64_t number) const {
  const std::scoped_lock lock(mutex_);
  const Called* const called = find(number);
  return called == nullptr ? "" : called->call.describe();
}

bool CallLog::was_refused(std::int64_t number) const {
  const std::scoped_lock lock(mutex_);
  const Called* const called = find(number);
  return called != nullptr && called->is_refused;
}

CallLog::State CallLog::state_of(std::int64_t number) const {
  const std::scoped_lock lock(mutex_);
  if (number == at_board_) return {"is in it and waits: others at the board", nullptr};
  if (const auto found = under_way_.find(number); found != under_way_.end()) {
    if (found->second == nullptr) return {"begins it", nullptr};
    return {"", found->second};
  }
  if (number < next_) return {"has ended it", nullptr};
  if (next_ == 1) return {"has not called anything", nullptr};
  const Called* const last = find(next_ - 1);
  return {fmt::format("has not called it; its last one is {}, {}", next_ - 1,
                      last == nullptr ? "" : last->call.describe()),
          nullptr};
}

std::string CallLog::calls_up_to(std::int64_t number, std::size_t room) const {
  const std::scoped_lock lock(mutex_);
  std::string note;
  std::size_t left = calls_compared;
  for (auto at = calls_.rbegin(); at != calls_.rend() && left > 0; ++at) {
    if (at->number > number || at->digest == 0) continue;
    --left;
    const std::string text = at->call.describe();
    const ComparedCall call{at->number, at->digest, text.size()};
    if (note.size() + sizeof call + text.size() > room) break;
    note.append(reinterpret_cast<const char*>(&call), sizeof call);
    note += text;
  }
  return note;
}

std::optional<CallLog::Difference> CallLog::first_difference(std::string_view note) const {
  const std::scoped_lock lock(mutex_);
  std::optional<Difference> first;
  ComparedCall call;
  while (note.size() >= sizeof call) {
    std::memcpy(&call, note.data(), sizeof call);
    note.remove_prefix(sizeof call);
    const std::string_view text = note.substr(0, call.length);
    note.remove_prefix(text.size());
    const Called* const called = find(call.number);
    if (called == nullptr || called->digest == 0 || called->digest == call.digest) continue;
    // The note has the latest call first.
    first = Difference{call.number, std::string(text), called->call.describe()};
  }
  return first;
}

bool CallLog::is_valid() const {
  const std::scoped_lock lock(mutex_);
  if (!under_way_.empty()) {
    if (under_way_.rbegin()->first >= next_) return false;
    if (next_ - under_way_.begin()->first > under_way_max) return false;
  }
  return calls_.size() <= calls_remembered && std::ranges::is_sorted(calls_, {}, &Called::number) &&
         std::ranges::none_of(calls_,
                              [](const Called& one) { return one.is_refused && one.digest != 0; });
}

}  // namespace heddle::collectives
