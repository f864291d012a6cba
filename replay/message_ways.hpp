#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "replay/run.hpp"
#include "replay/simulation/simulated_machine.hpp"

/// Latency and rate of messages from a run's trace.
namespace heddle::replay {

struct MessageWays {
  std::optional<Way> memory;   ///< between nodes of a host
  std::optional<Way> network;  ///< between hosts
};

/// Latency and rate of the job's messages by path. `machine` says which nodes share a host, whether
/// cores are shared, the costs of progress threads, and the latency to assume if all messages have
/// one size. Nothing without messages.
///
/// A message counts from when both ends are ready (granted, sender and receiver free: no task on
/// the progress thread's core, no earlier message) to its end at the receiver. The simulator models
/// earlier waits itself.
///
/// A progress thread with its own core may have paused for an unrecorded time, which the simulator
/// models too: so the 10 % quantile is fitted. Otherwise the median.
[[nodiscard]] MessageWays message_ways(const RunTrace& run, std::int32_t job,
                                       const SimulatedMachine& machine);

struct Transfer {
  double bytes = 0;
  double seconds = 0;
};
/// Latency and rate >= 0 of the line that has a fraction `quantile` of the transfers below it
/// (quantile regression, robust against outliers). If all sizes are equal the latency is
/// `latency_s`, at most half of the time. Nothing without transfers.
[[nodiscard]] std::optional<Way> fit_way(const std::vector<Transfer>& transfers, double quantile,
                                         double latency_s);

}  // namespace heddle::replay
