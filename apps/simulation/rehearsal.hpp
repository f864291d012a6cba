#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "apps/simulation/fitted_times.hpp"
#include "apps/simulation/rehearsal_plan.hpp"
#include "apps/simulation/rehearsed_turn.hpp"
#include "apps/tuning/cpu.hpp"
#include "kernels/case_key.hpp"

namespace heddle {

/// Which tasks run where: of each process of a host, a node's.
struct RehearsalCast {
  std::vector<RehearsalPlan> plans;
  std::vector<tuning::Workers> processes;  ///< as many
  bool copies_have_cores = true;           ///< one more of each process
};

/// A factorization's tasks, as nodes of one host run them, but that no node waits for another one:
/// each node is a process, its workers take the tasks in the order of its plan, on tiles that lie
/// as the node's do, and are idle for as long as they have nothing to do there, while one more
/// thread brings what other nodes have written. So tasks find in the caches what they would find
/// there, have beside them what they would have, and what moves through the memory moves. The
/// numbers are no matrix's.
///
/// The processes are copies of this one, which shall have no threads but the caller's.
class Rehearsal {
 public:
  explicit Rehearsal(RehearsalCast cast);
  Rehearsal(const Rehearsal&) = delete;
  Rehearsal& operator=(const Rehearsal&) = delete;
  ~Rehearsal();

  /// Runs on for `seconds` at least, where the last turn ended. By worker and kinds(). Throws
  /// Error(internal) when a process dies or is silent.
  [[nodiscard]] RehearsedTurn turn(double seconds);
  /// Kinds of all processes' tasks.
  [[nodiscard]] const std::vector<CaseKey>& kinds() const;
  /// What each worker does until all tiles of its node have been used, of the node with the most.
  struct Pass {
    double tasks = 0;
    double idle_s = 0;
  };
  [[nodiscard]] Pass pass() const;
  /// The largest absolute value on this process's tiles; infinity: one of them is NaN. Repeated
  /// tasks must keep values in the range with which processors compute at full speed.
  [[nodiscard]] double largest_number() const;

 private:
  class Parts;
  std::unique_ptr<Parts> parts_;
};

/// What tasks take in a factorization that is rehearsed: its turns say how fast the machine is, and
/// what kinds of tasks differ by besides, all of them together. Some seconds at most, and as much
/// memory as the matrix, at most 1 GiB.
class RehearsedTimes {
 public:
  RehearsedTimes() = default;  ///< of nothing
  explicit RehearsedTimes(RehearsalCast cast);

  /// Seconds of a task; 0: no task like it was rehearsed.
  [[nodiscard]] double seconds(const KernelCase& what) const { return pace_ * cost(what); }
  /// By turn, what each worker took over what all took on average (worker_paces()).
  [[nodiscard]] const std::vector<std::vector<double>>& paces() const { return worker_paces_; }

 private:
  friend class RehearsedRatios;
  using Turns = std::vector<RehearsedTurn>;

  RehearsedTimes(std::vector<CaseKey> kinds, const Turns& turns);
  [[nodiscard]] double cost(const KernelCase& what) const;

  std::vector<CaseKey> kinds_;
  FittedTimes fitted_;  ///< groups are turns
  double pace_ = 0;     ///< of the turn in the middle
  std::vector<std::vector<double>> worker_paces_;
};

/// What tasks take in one factorization over what they take in another one, both rehearsed by
/// turns, in pairs as tuning::ratio_by_turns has them.
class RehearsedRatios {
 public:
  RehearsedRatios(RehearsalCast now, RehearsalCast then);

  /// 0: one of them has no such task, nor one like it.
  [[nodiscard]] double ratio(const KernelCase& now, const KernelCase& then) const;
  [[nodiscard]] const RehearsedTimes& now() const { return now_; }
  [[nodiscard]] const RehearsedTimes& then() const { return then_; }

 private:
  RehearsedTimes now_;
  RehearsedTimes then_;
};

}  // namespace heddle
