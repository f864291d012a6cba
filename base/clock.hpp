#pragma once

#include <cstdint>
#include <ctime>

namespace heddle {

/// CLOCK_MONOTONIC in nanoseconds, the clock of all times that are compared with others. Any
/// thread; cannot fail.
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

}  // namespace heddle
