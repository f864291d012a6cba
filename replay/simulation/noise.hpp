#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "replay/simulation/job_layer.hpp"

namespace heddle::replay {

/// Distribution of a kind's task times relative to their mean, with mean 1.
struct Spread {
  double variation = 0;       ///< standard deviation, log-normal
  std::vector<float> shares;  ///< if not empty: one of these
};

/// A job with random task times. They depend only on the seed and the task, so a task takes the
/// same time on any machine and under any policy.
class NoisyJob final : public JobLayer {
 public:
  /// `spreads`: by kind, all of which have been met; both must outlive it.
  NoisyJob(SimulatedJob& job, const std::vector<Spread>& spreads, std::uint64_t seed)
      : JobLayer(job), spreads_(spreads), seed_(seed) {}

  [[nodiscard]] double share(TaskKindId kind, NodeId node, std::int64_t order) const override;

 private:
  const std::vector<Spread>& spreads_;
  std::uint64_t seed_;
};

/// Mean speed of workers with these paces, relative to pace 1.
[[nodiscard]] double mean_rate(std::span<const double> paces);
/// The same paces, scaled to a mean rate.
[[nodiscard]] std::vector<double> paces_of_rate(std::span<const double> paces, double rate);

/// Paces (SimulatedMachine::worker_paces) for this many workers, drawn from observed ones: each is
/// used equally often, up to one, in an order that depends on the seed, and scaled to keep the mean
/// speed. Workers differ persistently by other load on their cores, and nodes with slow ones delay
/// the others. At least one pace, all > 0.
[[nodiscard]] std::vector<double> dealt_paces(std::span<const double> seen, std::int32_t workers,
                                              std::uint64_t seed);

}  // namespace heddle::replay
