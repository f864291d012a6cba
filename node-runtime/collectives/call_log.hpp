#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "node-runtime/collectives/call/call.hpp"
#include "node-runtime/collectives/execution/operation.hpp"

namespace heddle::collectives {

/// What this rank has called on a group, by number: which operations are under way, which calls
/// were refused, what the last calls were, and from which number on the group has failed.
///
/// All calls that have begun are mixed into one digest, the same on all members whose calls fit
/// together. Messages are sealed with it, so that the next message at the latest shows that two
/// members have called differently.
///
/// Invariant (`is_valid()`), with u the least number under way:
///   u <= number < next for all numbers under way;  next - u <= under_way_max
///   |last calls| <= calls_remembered, in the order of their numbers;  a refused call has no digest
/// The number that the group has failed from only falls.
///
/// Lock: mutex_ guards all members; while it is held no other lock is taken, and nobody is called.
/// Threads: any.
class CallLog {
 public:
  static constexpr std::int64_t under_way_max = Operation::numbers_apart;
  static constexpr std::size_t calls_remembered = 256;

  // ---- by the thread that makes the call -------------------------------------------------------

  /// The number of a call that is being made. Throws Error(usage) when under_way_max are under way,
  /// and what has made the group fail.
  [[nodiscard]] std::int64_t take_number(const Call& call);
  /// What the messages of a call with this `seal` have behind all calls that have begun.
  [[nodiscard]] std::uint64_t seal_behind_others(std::uint64_t seal) const;
  /// Call `number` begins, as `operation`, or at the board. If another member has refused it, or
  /// the group has failed, it does not: returns why.
  [[nodiscard]] std::optional<Error> begin(std::int64_t number, std::uint64_t seal,
                                           std::shared_ptr<Operation> operation);
  [[nodiscard]] std::optional<Error> begin_at_board(std::int64_t number, std::uint64_t seal);
  void end_at_board();
  /// Call `number` does not begin: it is wrong here. Whether the other members are to hear that;
  /// false: they know, or hear why the group has failed.
  [[nodiscard]] bool refuse(std::int64_t number);

  // ---- by whoever hears something --------------------------------------------------------------

  /// An operation is over; returns it.
  std::shared_ptr<Operation> end(std::int64_t number);
  enum class Refusal : std::uint8_t {
    kept,      ///< the call has not begun here; it throws when it does
    ignored,   ///< it was refused here, too
    too_late,  ///< it has begun here: the group fails
  };
  /// Another member refuses its call `number`.
  [[nodiscard]] Refusal hear_refusal(std::int64_t number, const Error& why);
  /// The group fails from call `from` on. Returns the operations that end with it; nullopt: it had
  /// failed from there on before.
  [[nodiscard]] std::optional<std::vector<std::shared_ptr<Operation>>> fail(std::int64_t from,
                                                                            const Error& why);
  /// What made call `number` fail with all later ones.
  [[nodiscard]] std::optional<Error> failure_of(std::int64_t number) const;
  /// What made the group fail, from whichever call on.
  [[nodiscard]] std::optional<Error> failure() const;

  // ---- what others ask -------------------------------------------------------------------------

  /// Empty where it is not among the last ones.
  [[nodiscard]] std::string describe(std::int64_t number) const;
  [[nodiscard]] bool was_refused(std::int64_t number) const;
  struct State {
    std::string text;                      ///< "has ended it"; empty: the operation knows
    std::shared_ptr<Operation> operation;  ///< under way
  };
  [[nodiscard]] State state_of(std::int64_t number) const;
  /// The last calls up to `number` that have begun, the latest first, for another member's
  /// first_difference(); at most `room` bytes.
  [[nodiscard]] std::string calls_up_to(std::int64_t number, std::size_t room) const;
  struct Difference {
    std::int64_t number;
    std::string other;
    std::string own;
  };
  /// The first call that both have made, and differently. `note`: another member's calls_up_to().
  [[nodiscard]] std::optional<Difference> first_difference(std::string_view note) const;

  [[nodiscard]] bool is_valid() const;

 private:
  /// A call that was made.
  struct Called {
    std::int64_t number;
    CallSummary call;
    bool is_refused = false;
    std::uint64_t digest = 0;  ///< of it and those before; 0: it has not begun
  };

  // With the lock. Null: not among the last ones.
  [[nodiscard]] const Called* find(std::int64_t number) const;
  void mark_refused(std::int64_t number);
  [[nodiscard]] const Error* reason(std::int64_t number) const {
    return failure_ && number >= failed_from_ ? &*failure_ : nullptr;
  }
  [[nodiscard]] std::optional<Error> take_reason_against(std::int64_t number);
  void note_begin(std::int64_t number, std::uint64_t seal);

  mutable std::mutex mutex_;
  std::int64_t next_ = 1;
  std::map<std::int64_t, std::shared_ptr<Operation>> under_way_;  ///< null: is being made
  std::deque<Called> calls_;                                      ///< the last ones
  std::uint64_t calls_digest_ = 0;                                ///< of all calls that have begun
  std::map<std::int64_t, Error> refusals_;  ///< of others, for calls that have not begun
  std::int64_t at_board_ = 0;               ///< the call that is done there; 0: none
  std::optional<Error> failure_;
  std::int64_t failed_from_ = 0;  ///< if there is a failure: the first call that has it
};

}  // namespace heddle::collectives
