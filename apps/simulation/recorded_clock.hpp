#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "apps/simulation/kernel_clock.hpp"
#include "apps/simulation/simulated_program.hpp"
#include "kernels/case_key.hpp"
#include "replay/run.hpp"
#include "replay/runtime_costs.hpp"
#include "replay/simulation/course.hpp"

namespace heddle {

/// What a run's kernels took, by case.
class RecordedTimes {
 public:
  /// The run's job was `what`: its tasks are told apart by walking that again; `lends`: workers may
  /// have run devices' tasks; `costs`: whose wakings and refills course() is to know. Throws
  /// Error(usage) when the run's tasks are not those of the program.
  RecordedTimes(const replay::RunTrace& run, std::int32_t job, const SimulatedFactorization& what,
                bool lends, const replay::RuntimeCosts& costs = {});

  struct Times {
    CaseKey key;
    Runner runner = Runner::worker;
    std::vector<float> seconds{};  ///< of each task (own_seconds)
    /// Seconds of a task on a worker of pace 1 after the worker's first tasks. No plain mean: slow
    /// workers may have run most of a kernel's tasks, and a job's first tasks are slow.
    double usual = 0;
    double usual_tasks = 0;  ///< of which all together take as long

    /// What counts of a task that took longer: what others have had of a worker's core is its
    /// pace, and no kernel's time.
    [[nodiscard]] double longest() const;
  };
  /// Null where the run had none.
  [[nodiscard]] const Times* find(const KernelCase& what, Runner runner) const;
  /// That of the same kernel which computes as much, or nearly; null where the kernel did not run
  /// there.
  [[nodiscard]] const Times* nearest(const KernelCase& what, Runner runner) const;
  /// That of the same kernel which took longest in all; null likewise.
  [[nodiscard]] const Times* main_case(const Kernel& kernel, Runner runner) const;
  /// The part of what all workers' kernels took that was this one's, 0..1.
  [[nodiscard]] double share_of(const Kernel& kernel) const;
  /// Operations a second of a worker.
  struct Rates {
    double as_they_were = 0;
    double otherwise = 0;
  };
  /// FLOP/s of workers' tasks of `kernel` (null: of all kernels): as they were, and if each took
  /// what `seconds` says for its case. Cases with 0 seconds do not count. Zeros: no task counts.
  [[nodiscard]] Rates rates(const Kernel* kernel,
                            const std::function<double(const KernelCase&)>& seconds) const;
  /// Those that workers ran, each once, the one with the largest share first.
  [[nodiscard]] std::vector<const Kernel*> kernels() const;
  /// Recorded whole tasks on workers, each relative to its node's pace, and recorded messages.
  [[nodiscard]] const std::shared_ptr<const replay::Course>& course() const { return course_; }
  /// A task that a worker ran.
  struct OfWorker {
    std::size_t task = 0;    ///< of the run
    std::size_t times = 0;   ///< which of the recorded times it is of
    std::size_t number = 0;  ///< there
    std::size_t worker = 0;  ///< of all nodes'
    std::size_t before = 0;  ///< tasks of the worker's
  };
  /// What a worker's first, second, ... task took over what is usual, beside the worker's pace;
  /// empty: no worker had enough tasks to tell.
  [[nodiscard]] const std::vector<double>& first_tasks() const { return first_tasks_; }
  /// By node, what its workers took over what they would have with what is usual on all nodes: what
  /// a repeated run's tasks have beside their own shares.
  [[nodiscard]] const std::vector<double>& node_paces() const { return node_paces_; }
  /// By node, then worker, likewise, beside first_tasks(); as many as the trace has rows of
  /// workers.
  [[nodiscard]] const std::vector<double>& worker_paces() const { return worker_paces_; }

 private:
  class Collector;
  void fit(const std::vector<OfWorker>& tasks, std::size_t workers);
  /// For how many usual tasks that one counts.
  [[nodiscard]] double start_pace(const OfWorker& one) const;

  std::vector<Times> times_;
  std::vector<double> first_tasks_;
  std::vector<double> node_paces_;
  std::vector<double> worker_paces_;
  std::shared_ptr<const replay::Course> course_;
};

/// By what a ratio of two rehearsals is to be multiplied, the second of which has the run's own
/// conditions, so that the ratio is one of the run's times. 1 would be right if what a run has and
/// what its rehearsal has now differed by nothing but how fast the machine is; but a worker whose
/// core others use, too, has chances of its own each time, and a ratio has those of three timings
/// in it. How much chance to expect, the run's workers show: v, twice (a run and a rehearsal) the
/// squared standard error of the mean of (the logarithms of) their paces. Of a difference d the
/// share v / (v + d^2) is taken for chance, and the first rehearsal counts as it is so far: nearly
/// all of a small one, next to nothing of one that is far beyond. Rates are operations a second; 1
/// where the run has less than three workers, or a rate is 0.
[[nodiscard]] double chance_in_ratio(double rate_rehearsed, double rate_recorded,
                                     std::span<const double> worker_paces);

/// Times of kernels as a run's trace has them: what is usual for one case, which, with the paces of
/// workers, is what a factorization's time adds up from.
///
/// What is different now, ratios of times say. A case of the run takes what it took; where another
/// number of workers is beside it, times what the main case of its kernel takes now of its time
/// then. A case that the run has not met takes as long as the run's nearest case of that kernel,
/// times what it takes now of that case's time then; where nobody knows, by its operations.
class RecordedClock final : public KernelClock {
 public:
  /// What a case takes now over what another one took then.
  struct KnownRatio {
    double ratio = 0;           ///< 0: nobody knows
    bool is_rehearsed = false;  ///< beside what is beside it, not timed by itself
  };
  using Ratio =
      std::function<KnownRatio(const KernelCase& now, const KernelCase& then, Runner runner)>;
  /// As worker_paces(), once all ratios have been asked for.
  using Paces = std::function<std::vector<std::vector<double>>()>;

  /// `now`: of kernels that the run has not met at all.
  RecordedClock(std::shared_ptr<const RecordedTimes> recorded, std::shared_ptr<KernelClock> now,
                Ratio ratio, bool is_other_crowd, Paces paces = {})
      : recorded_(std::move(recorded)),
        now_(std::move(now)),
        ratio_(std::move(ratio)),
        is_other_crowd_(is_other_crowd),
        paces_(std::move(paces)) {}

  [[nodiscard]] double seconds(const KernelCase& what, Runner runner) override;
  /// A case that the run has not met differs as its nearest one.
  [[nodiscard]] std::vector<float> spread(const KernelCase& what, Runner runner) const override;
  [[nodiscard]] std::vector<std::vector<double>> worker_paces() const override {
    return paces_ ? paces_() : std::vector<std::vector<double>>();
  }
  [[nodiscard]] std::string source() const override;

 private:
  [[nodiscard]] double crowding(const Kernel& kernel, Runner runner);
  [[nodiscard]] KnownRatio ratio_of_main_case(const Kernel& kernel);

  std::shared_ptr<const RecordedTimes> recorded_;
  std::shared_ptr<KernelClock> now_;
  Ratio ratio_;
  bool is_other_crowd_ = false;
  Paces paces_;
  std::map<const Kernel*, KnownRatio> main_ratios_;
  std::int64_t estimated_ = 0;                ///< cases that the run had not
  std::map<const Kernel*, double> crowding_;  ///< of workers' kernels
};

}  // namespace heddle
