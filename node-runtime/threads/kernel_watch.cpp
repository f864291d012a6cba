#include "node-runtime/threads/kernel_watch.hpp"

#include <array>
#include <fmt/core.h>

#include "node-runtime/protocol/types.hpp"

namespace heddle {

std::optional<KernelWatch::Stuck> KernelWatch::stuck(
    std::int64_t now_ns, double seconds_least, const std::function<double()>& flops_per_second) {
  for (std::size_t runner = 0; runner < runs_.size(); ++runner) {
    const Run& run = runs_[runner];
    // Acquire pairs with the release in begin().
    const std::int64_t since_ns = run.since_ns.load(std::memory_order_acquire);
    Seen& seen = seen_[runner];
    if (since_ns == 0 || seen.since_ns != since_ns) {
      seen = {since_ns, now_ns};
      continue;
    }
    const Kernel* const kernel = run.kernel.load(std::memory_order_relaxed);
    const OperandShape output{run.rows.load(std::memory_order_relaxed),
                              run.columns.load(std::memory_order_relaxed)};
    // The same run still: what was read is of it.
    if (run.since_ns.load(std::memory_order_acquire) != since_ns) continue;
    std::array<OperandShape, protocol::accesses_max> operands;
    operands.fill(output);
    const double flops = flops_of({kernel, {}, operands});
    if (flops <= 0) continue;
    const double seconds = static_cast<double>(now_ns - seen.first_ns) * 1e-9;
    if (seconds <= seconds_least) continue;
    const double expected = flops / flops_per_second();
    if (seconds > factor * expected) {
      return Stuck{runner, kernel, output, seconds, expected};
    }
  }
  return std::nullopt;
}

std::string describe(const KernelWatch::Stuck& stuck, std::size_t workers) {
  const bool is_worker = stuck.runner < workers;
  return fmt::format(
      "{} {} has run {} on a tile of {} x {} for {:.3g} s, where {:.2g} s are expected",
      is_worker ? "worker" : "device", is_worker ? stuck.runner : stuck.runner - workers,
      stuck.kernel->name, stuck.output.rows, stuck.output.columns, stuck.seconds, stuck.expected);
}

}  // namespace heddle
