#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "apps/simulation/case_key.hpp"
#include "apps/simulation/rehearsal_plan.hpp"
#include "apps/tuning/cpu.hpp"

namespace heddle {

/// Whether a kernel can be rehearsed: an update, which can be run again and again on any numbers.
[[nodiscard]] bool can_be_rehearsed(const Kernel& kernel);

/// What tasks of a kind took.
struct RehearsedTime {
  double seconds = 0;
  std::int64_t count = 0;
  void add(const RehearsedTime& other) {
    seconds += other.seconds;
    count += other.count;
  }
};

/// Which tasks run where: of each process of a host, a node's.
struct RehearsalCast {
  std::vector<RehearsalPlan> plans;
  std::vector<tuning::Workers> processes;  ///< as many
  bool copies_have_cores = true;           ///< one more of each process
};

/// A kernel's tasks of a factorization, as nodes of one host run them, without the other kernels:
/// each node is a process, its workers take the tasks in the order of its plan, on tiles that lie
/// as the node's do, and one more thread brings what other nodes have written. So tasks
/// find in the caches what they would find there, and what moves through the memory moves.
///
/// The processes are copies of this one, which shall have no threads but the caller's.
class Rehearsal {
 public:
  explicit Rehearsal(RehearsalCast cast);
  Rehearsal(const Rehearsal&) = delete;
  Rehearsal& operator=(const Rehearsal&) = delete;
  ~Rehearsal();

  /// Runs on for `seconds` at least, where the last turn ended. By kinds(). Throws Error(internal)
  /// when a process dies or is silent.
  [[nodiscard]] std::vector<RehearsedTime> turn(double seconds);
  /// Of all processes' tasks.
  [[nodiscard]] const std::vector<CaseKey>& kinds() const;

 private:
  class Parts;
  std::unique_ptr<Parts> parts_;
};

/// What a kernel's tasks take in one factorization over what they take in another one: both
/// rehearsed by turns (tuning::ratio_by_turns), which says how long an operation takes in one over
/// what it takes in the other; what kinds of tasks differ by besides, all turns say together. A
/// second or two, and as much memory as both matrices, at most 2 GiB.
class RehearsedRatios {
 public:
  RehearsedRatios(RehearsalCast now, RehearsalCast then);

  /// 0: one of them has no such task.
  [[nodiscard]] double ratio(const KernelCase& now, const KernelCase& then) const;
  /// What a worker reached in each, operations a second: of the turn in the middle.
  [[nodiscard]] double rate_now() const { return rate_now_; }
  [[nodiscard]] double rate_then() const { return rate_then_; }

 private:
  struct Costs {
    std::vector<CaseKey> kinds;
    std::vector<double> costs;  ///< in operations of usual pace
  };
  double pace_ = 1;
  double rate_now_ = 0;
  double rate_then_ = 0;
  Costs now_;
  Costs then_;
};

}  // namespace heddle
