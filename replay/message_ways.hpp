#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "replay/run.hpp"
#include "replay/simulation/simulated_machine.hpp"

/// What a run's trace tells about its messages.
namespace heddle::replay {

struct MessageWays {
  std::optional<Way> memory;   ///< between nodes of a host
  std::optional<Way> network;  ///< between hosts
};

/// Of the job's messages, by where they went: `machine` says which nodes are neighbours, whether
/// cores are shared, what progress threads take, and the latency where all messages are of one
/// size. Nothing where there were none.
///
/// A message counts from when both of its ends are ready: its grant given, its sender about to
/// send, its receiver not in the middle of a task that has the progress thread's core, and not busy
/// with the message before. To the end at the receiver. The waits before that are the simulator's
/// own.
///
/// Where a progress thread has a core of its own it may have paused for a time that nobody has
/// recorded, which the simulator has too: there the line below which a tenth of the messages lie.
/// Otherwise the line with as many of them above as below.
[[nodiscard]] MessageWays message_ways(const RunTrace& run, std::int32_t job,
                                       const SimulatedMachine& machine);

struct Transfer {
  double bytes = 0;
  double seconds = 0;
};
/// The latency and rate, neither negative, below which lies that share of the transfers (regression
/// of a quantile, so that a few long ones do not count for more than others). Where all sizes are
/// alike the latency is `latency_s` as far as that leaves half of the time to the rate. Nothing of
/// nothing.
[[nodiscard]] std::optional<Way> fit_way(const std::vector<Transfer>& transfers, double quantile,
                                         double latency_s);

}  // namespace heddle::replay
