#pragma once

#include <cstdint>
#include <ctime>
#include <span>

namespace heddle::trace {

/// The one clock of all traces: CLOCK_MONOTONIC in nanoseconds. Any thread; cannot fail.
///
/// Read through the vDSO, so without a system call. Reading the processor's time stamp counter
/// directly would save about half of the 20 ns, but would need checks that the counter is constant
/// and synchronous on every machine, a calibration of its own, and a conversion before times could
/// be compared with those of other threads, nodes and tools. A task takes 10 us or more; the 10 ns
/// are not worth that. A loop that goes from one activity to the next reads the clock once and uses
/// the value as the end of one and the start of the other.
[[nodiscard]] inline std::int64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

/// One comparison of this node's clock with node 0's: at `local_ns` of this node, node 0's clock
/// showed `local_ns + offset_ns`.
struct ClockOffset {
  std::int64_t local_ns = 0;
  std::int64_t offset_ns = 0;
  friend bool operator==(const ClockOffset&, const ClockOffset&) = default;
};

/// The time of node 0's clock when this node's showed `local_ns`. `offsets` are ordered by time;
/// between two of them the offset is interpolated, before the first and after the last it is
/// theirs; none at all means that the clocks agree.
[[nodiscard]] std::int64_t to_node0_ns(std::span<const ClockOffset> offsets, std::int64_t local_ns);

}  // namespace heddle::trace
