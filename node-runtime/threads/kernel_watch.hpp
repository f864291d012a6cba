#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/assert.hpp"
#include "base/futex.hpp"
#include "kernels/kernel_case.hpp"

namespace heddle {

/// Which kernel each worker and each device runs, and since when, so that the watchdog can tell a
/// kernel that takes long from one that does not end.
///
/// Threads: begin() and end() of one runner by one thread; stuck() by any other ones, one at a
/// time.
class KernelWatch {
 public:
  /// `runners`: CPU workers, then devices.
  explicit KernelWatch(std::size_t runners) : runs_(runners), seen_(runners) {}

  void begin(std::size_t runner, const Kernel& kernel, const OperandShape& output,
             std::int64_t since_ns) {
    HEDDLE_DEBUG(runner < runs_.size() && since_ns != 0, "runner {} of {}", runner, runs_.size());
    Run& run = runs_[runner];
    run.kernel.store(&kernel, std::memory_order_relaxed);
    run.rows.store(output.rows, std::memory_order_relaxed);
    run.columns.store(output.columns, std::memory_order_relaxed);
    // Release: stuck() that sees the time sees what it is of.
    run.since_ns.store(since_ns, std::memory_order_release);
  }
  void end(std::size_t runner) { runs_[runner].since_ns.store(0, std::memory_order_release); }

  struct Stuck {
    std::size_t runner = 0;
    const Kernel* kernel = nullptr;
    OperandShape output;
    double seconds = 0;   ///< that it has run
    double expected = 0;  ///< at `flops_per_second`
  };
  /// A kernel that has run since an earlier call, for longer than `seconds_least` and longer than
  /// `factor` times its operations take at `flops_per_second()`, which is called only for a kernel
  /// that has run for `seconds_least`. Kernels that count no operations are never stuck. `now_ns`
  /// is of a clock that stops while the process is stopped.
  [[nodiscard]] std::optional<Stuck> stuck(std::int64_t now_ns, double seconds_least,
                                           const std::function<double()>& flops_per_second);

  static constexpr double factor = 100;

 private:
  struct alignas(cache_line) Run {
    std::atomic<std::int64_t> since_ns{0};  ///< 0: nothing runs
    std::atomic<const Kernel*> kernel{nullptr};
    std::atomic<std::int64_t> rows{0};
    std::atomic<std::int64_t> columns{0};
  };
  /// What stuck() has seen of a run, by its beginning.
  struct Seen {
    std::int64_t since_ns = 0;
    std::int64_t first_ns = 0;  ///< when, by the clock of stuck()
  };

  std::vector<Run> runs_;
  std::vector<Seen> seen_;
};

/// "worker 3 has run potrf on a tile of 512 x 512 for 61 s, where 0.004 s are expected"
[[nodiscard]] std::string describe(const KernelWatch::Stuck& stuck, std::size_t workers);

}  // namespace heddle
