#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/clock.hpp"
#include "base/median.hpp"
#include "node-runtime/transport/probe/probed_place.hpp"

namespace heddle {

/// One transfer there and back of a probe.
struct ProbeRound {
  std::size_t bytes = 0;
  bool is_checked = false;  ///< random bytes are compared; otherwise it is timed
};

/// What every way is tried with: both sizes checked first, then timed.
[[nodiscard]] inline std::vector<ProbeRound> probe_rounds(const ProbeOptions& options) {
  constexpr std::size_t short_bytes = 8;
  std::vector<ProbeRound> rounds{{short_bytes, true}, {options.checked_bytes, true}};
  for (std::int32_t r = 0; r < options.repeats; ++r) rounds.push_back({short_bytes, false});
  for (std::int32_t r = 0; r < options.long_repeats; ++r)
    rounds.push_back({options.timed_bytes, false});
  return rounds;
}

/// Collects the times of the timed rounds.
class Stopwatch {
 public:
  void start() { begin_ns_ = now_ns(); }
  /// The time since start() of `legs` transfers of the round's bytes.
  void stop(const ProbeRound& round, std::int32_t legs) {
    const std::int64_t ns = std::max<std::int64_t>(1, now_ns() - begin_ns_);
    if (round.is_checked) return;
    if (bytes_min_ == 0) bytes_min_ = round.bytes;
    (round.bytes == bytes_min_ ? short_ns_ : long_ns_).push_back(static_cast<double>(ns) / legs);
    bytes_max_ = round.bytes;
  }
  [[nodiscard]] double latency_us() const { return median(short_ns_) * 1e-3; }
  /// 10^9 bytes per second.
  [[nodiscard]] double rate() const {
    const double ns = median(long_ns_);
    return ns == 0 ? 0 : static_cast<double>(bytes_max_) / ns;
  }

 private:
  std::int64_t begin_ns_ = 0;
  std::size_t bytes_min_ = 0;
  std::size_t bytes_max_ = 0;
  std::vector<double> short_ns_;
  std::vector<double> long_ns_;
};

}  // namespace heddle
