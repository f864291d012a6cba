#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "node-runtime/collectives/schedule/choice.hpp"
#include "node-runtime/collectives/schedule/copies.hpp"
#include "node-runtime/collectives/schedule/copy_table.hpp"

/// Which copies between ranks' memory and a buffer that they share are mapped, and which are staged
/// (002 section 5.2). Pure: it is told what happens, in its order, and needs no clock.
namespace heddle::collectives {

/// The eight states of a copy (002 section 5.2.3): INIT, RTS, IPC_ASGN, HS_ASGN, IPC_INIT, HS_INIT,
/// IPC_CMP and HS_CMP.
enum class CopyState : std::uint8_t {
  initial,
  ready,  ///< its rank has come to the operation
  mapped_assigned,
  staged_assigned,
  mapped_begun,
  staged_begun,
  mapped_ended,
  staged_ended,
};
/// "INIT", "RTS", ...
[[nodiscard]] std::string_view name_of(CopyState state);

/// What is known during one operation: the policy, and which types have ended.
class CopyPolicy {
 public:
  /// Static: the first `staged` copies of each stage that arrive are staged, the others mapped.
  [[nodiscard]] static CopyPolicy fixed(std::int32_t staged);
  /// Dynamic: by which copies end first.
  [[nodiscard]] static CopyPolicy dynamic();
  /// The policy of `copies` for an operation of `ranks`, of `bytes` each. By table: the published
  /// one, where `known` has no row for the operation. Automatic: by `known`, if it has one; else
  /// all of the type that is faster by far; else dynamic.
  [[nodiscard]] static CopyPolicy of(Copies copies, CollectiveKind kind, std::int32_t ranks,
                                     std::int64_t bytes, const CopyTable& known);

  [[nodiscard]] bool is_dynamic() const { return is_dynamic_; }
  [[nodiscard]] std::int32_t staged() const { return staged_; }
  /// Since the operation began.
  [[nodiscard]] bool has_ended(CopyType type) const {
    return has_ended_.at(static_cast<std::size_t>(type));
  }
  [[nodiscard]] bool has_any_ended() const { return has_ended_.front() || has_ended_.back(); }
  void ended(CopyType type) { has_ended_.at(static_cast<std::size_t>(type)) = true; }

 private:
  bool is_dynamic_ = false;
  std::int32_t staged_ = 0;
  std::array<bool, 2> has_ended_{};  ///< by CopyType
};

/// The copies of one stage of an operation: into the buffer, or out of it. Each call returns the
/// copies that are to begin now.
///
/// The dynamic policy (002 section 5.2.2). The first two copies are one of each type, or all are of
/// one type if no copy of the other one has ended since the operation began, though some have. With
/// the end of a copy, d being how many copies of its type have ended in this stage, less those of
/// the other type: the type may begin 2^d more if d > 0, else one more. When one copy alone is left
/// under way, and none of its type has ever ended, it is done again by the other type. A stage with
/// one copy has nothing to compare: it is mapped.
///
/// Invariant: while a copy waits, one is under way.
class CopyStage {
 public:
  struct Assignment {
    std::int32_t copy = 0;
    CopyType type = CopyType::mapped;
    bool is_again = false;  ///< beside one of the other type that is under way
    friend bool operator==(const Assignment&, const Assignment&) = default;
  };
  using Assignments = std::vector<Assignment>;

  enum class Repeats : std::uint8_t { never, last_slow_one };
  /// `policy` outlives it.
  CopyStage(CopyPolicy& policy, std::int32_t copies, Repeats repeats);

  /// The copy's rank is ready. Not `may_map`: it can only be staged.
  [[nodiscard]] Assignments arrived(std::int32_t copy, bool may_map = true);
  /// The copy's rank has been told its type.
  void begun(std::int32_t copy);
  /// Of a copy that was done again, the first end counts; the other one is told as well, here or
  /// to the policy.
  [[nodiscard]] Assignments ended(std::int32_t copy, CopyType type);
  /// The system refuses a mapped copy's mapping: it is staged, unless it was done again.
  [[nodiscard]] Assignments refused(std::int32_t copy);

  [[nodiscard]] bool is_over() const { return left_ == 0; }
  [[nodiscard]] CopyState state(std::int32_t copy) const { return at(copy).state; }

 private:
  struct Copy {
    CopyState state = CopyState::initial;
    bool may_map = true;
    bool is_again = false;
  };
  [[nodiscard]] const Copy& at(std::int32_t copy) const {
    return copies_[static_cast<std::size_t>(copy)];
  }
  [[nodiscard]] Copy& at(std::int32_t copy) { return copies_[static_cast<std::size_t>(copy)]; }
  [[nodiscard]] Assignment assign(std::int32_t copy, CopyType type);
  [[nodiscard]] Assignments assign_waiting();
  void repeat_last(Assignments& made);

  CopyPolicy& policy_;
  std::vector<Copy> copies_;
  Repeats repeats_;
  bool has_one_type_ = false;         ///< then all copies are of it
  CopyType type_ = CopyType::mapped;  ///< that one
  std::deque<CopyType> granted_;      ///< of copies that may begin
  std::deque<std::int32_t> waiting_;
  std::array<std::int32_t, 2> ended_{};  ///< by CopyType, in this stage
  std::int32_t assigned_ = 0;
  std::int32_t left_;
};

}  // namespace heddle::collectives
