#pragma once

#include <cstdint>
#include <ctime>

namespace heddle {

/// CLOCK_MONOTONIC in nanoseconds; all times that are compared with others use it. Any thread;
/// cannot fail.
///
/// Read through the vDSO, without a system call, in about 20 ns. The time stamp counter would save
/// half of that but needs checks that it is constant and synchronous, a calibration, and a
/// conversion; a task takes 10 us or more. Loops that pass from one activity to the next read the
/// clock once, as the end of one and the start of the other.
[[nodiscard]] inline std::int64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

}  // namespace heddle
