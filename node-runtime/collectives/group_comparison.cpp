/// Members of a group compare their calls: what does not fit together is found although no message
/// of the one call meets a message of the other.

#include <algorithm>
#include <cstring>
#include <fmt/core.h>
#include <utility>

#include "node-runtime/collectives/execution/seal.hpp"
#include "node-runtime/collectives/group_core.hpp"

namespace heddle::collectives {
namespace {

/// Calls that a comparison has, at most: so many of the last ones.
constexpr std::size_t calls_compared = 8;

/// One of them, in a note; its description follows.
struct ComparedCall {
  std::int64_t number = 0;
  std::uint64_t digest = 0;
  std::uint64_t length = 0;
};

}  // namespace

std::uint64_t GroupCore::seal_behind_others(std::uint64_t seal) const {
  const std::scoped_lock lock(mutex_);
  return std::max<std::uint64_t>(1, mixed(calls_digest_, seal));
}

/// With the lock: the call begins here.
void GroupCore::begins(std::int64_t number, std::uint64_t seal) {
  calls_digest_ = seal;
  if (Called* const called = find_call(number)) called->digest = seal;
}

/// The last calls up to `number`, the latest first, as far as a note has room.
std::string GroupCore::calls_up_to(std::int64_t number) {
  const std::scoped_lock lock(mutex_);
  std::string note;
  std::size_t left = calls_compared;
  for (auto at = calls_.rbegin(); at != calls_.rend() && left > 0; ++at) {
    if (at->number > number || at->digest == 0) continue;
    --left;
    const std::string text = at->call.describe();
    const ComparedCall call{at->number, at->digest, text.size()};
    if (note.size() + sizeof call + text.size() > control_bytes - sizeof(ControlHeader)) break;
    note.append(reinterpret_cast<const char*>(&call), sizeof call);
    note += text;
  }
  return note;
}

/// By a thread that waits in vain: asks some others, so that any two members are some steps apart.
void GroupCore::compare_calls(std::int64_t number) {
  const std::string note = calls_up_to(number);
  for (std::int32_t distance = 1; distance < size(); distance *= 2) {
    tell(Rank{(rank() + distance) % size()}, Kind::compare, number, note);
    if (2 * distance == size()) continue;  // the same one
    tell(Rank{(rank() + size() - distance) % size()}, Kind::compare, number, note);
  }
}

/// Fails the group by the first call that both have made differently.
void GroupCore::heard_comparison(const ControlHeader& header, std::string_view note) {
  std::int64_t number = 0;
  std::string other;
  std::string own;
  {
    const std::scoped_lock lock(mutex_);
    ComparedCall call;
    while (note.size() >= sizeof call) {
      std::memcpy(&call, note.data(), sizeof call);
      note.remove_prefix(sizeof call);
      const std::string_view text = note.substr(0, call.length);
      note.remove_prefix(text.size());
      const Called* const called = find_call(call.number);
      if (called == nullptr || called->digest == 0 || called->digest == call.digest) continue;
      number = call.number;
      other = text;
      own = called->call.describe();
    }
  }
  if (number > 0) fail_by_misfit(number, {header.rank, other}, {rank(), own});
}

/// Two ranks, with what they call.
void GroupCore::fail_by_misfit(std::int64_t number, std::pair<std::int32_t, std::string> first,
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

}  // namespace heddle::collectives
