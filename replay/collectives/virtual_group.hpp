#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "node-runtime/collectives/schedule/choice.hpp"
#include "node-runtime/collectives/schedule/levels.hpp"
#include "node-runtime/collectives/schedule/places.hpp"
#include "replay/collectives/collective_machine.hpp"

namespace heddle::replay {

/// An operation that all ranks of a group call at once. Rank 0 is the root.
struct VirtualOperation {
  collectives::CollectiveKind kind = collectives::CollectiveKind::barrier;
  std::int64_t count = 0;  ///< elements of the message, or of a block for each rank; at least 1
  std::int64_t element_bytes = 8;
  collectives::CollectiveOverrides overrides{};
};

struct VirtualOutcome {
  double seconds = 0;  ///< until the last rank's part has ended
  collectives::CollectiveChoice choice;
  std::int64_t messages = 0;
  std::string busiest;       ///< "card of host 3, out"; empty: no message shared a link
  double busiest_share = 0;  ///< of the time in which it was in use
};

/// A group on a machine that is not there: its operations are chosen, and their schedules made, as
/// on nodes, and run in virtual time.
class VirtualGroup {
 public:
  /// `slots`: of rank 0, 1, ..., each once. The machine outlives it.
  VirtualGroup(const CollectiveMachine& machine, const std::vector<std::int32_t>& slots);

  /// Throws Error(usage) for what is too large to be simulated (VirtualSchedules, VirtualRun).
  [[nodiscard]] VirtualOutcome run(const VirtualOperation& operation) const;
  [[nodiscard]] std::int32_t size() const { return places_.size(); }

 private:
  const CollectiveMachine& machine_;
  collectives::Places places_;
  collectives::Levels levels_;
};

}  // namespace heddle::replay
