#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "replay/simulation/job_layer.hpp"

namespace heddle::replay {

/// How tasks of a kind differ: what they take of their kind's time, 1 on average.
struct Spread {
  double variation = 0;       ///< standard deviation, log-normal
  std::vector<float> shares;  ///< one of these, where there are any
};

/// A job whose tasks take what is drawn for them: by the seed and the task alone, so that the same
/// task takes the same on any machine, under any policy, and whatever happens before it.
class NoisyJob final : public JobLayer {
 public:
  /// `spreads` are those of the job's kinds, all of which have been met; both outlive it.
  NoisyJob(SimulatedJob& job, const std::vector<Spread>& spreads, std::uint64_t seed)
      : JobLayer(job), spreads_(spreads), seed_(seed) {}

  [[nodiscard]] double share(TaskKindId kind, NodeId node, std::int64_t order) const override;

 private:
  const std::vector<Spread>& spreads_;
  std::uint64_t seed_;
};

/// Of workers of these paces: what one does in the time of one of pace 1, on average.
[[nodiscard]] double mean_rate(std::span<const double> paces);
/// The same paces, of another mean rate.
[[nodiscard]] std::vector<double> paces_of_rate(std::span<const double> paces, double rate);

/// A pace for each of so many workers (SimulatedMachine::worker_paces), of those that some workers
/// were seen to have: each of these as often as any other, or once more, in an order that follows
/// from the seed, and scaled so that a worker is as fast as one of those on average. Workers
/// differ for as long as a run lasts, by what else their cores do; a node with slow ones is what
/// others wait for. At least one pace, all above 0.
[[nodiscard]] std::vector<double> dealt_paces(std::span<const double> seen, std::int32_t workers,
                                              std::uint64_t seed);

}  // namespace heddle::replay
