#pragma once

#include <cstdint>
#include <utility>
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

}  // namespace heddle::replay
