#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "node-runtime/collectives/schedule/schedule.hpp"

namespace heddle::collectives {

/// A schedule as it is run: which steps follow each, and which make up a message. Made once for any
/// number of operations. O(steps).
class CompiledSchedule {
 public:
  explicit CompiledSchedule(Schedule schedule);

  [[nodiscard]] const Schedule& schedule() const { return schedule_; }
  [[nodiscard]] const Step& step(std::int32_t index) const {
    return schedule_.steps[static_cast<std::size_t>(index)];
  }
  [[nodiscard]] std::int32_t steps() const {
    return static_cast<std::int32_t>(schedule_.steps.size());
  }

  /// What is done at once: a copy, a reduction, or a message with all of its steps.
  struct Deed {
    std::int32_t first = 0;  ///< steps [first, end)
    std::int32_t end = 0;
    std::int32_t befores = 0;  ///< deeds that it comes after, each once
    /// How many messages the schedule has to, or from, the same peer before this one, and in all:
    /// the same on both sides.
    std::int32_t number = 0;
    std::int32_t messages = 0;
  };
  [[nodiscard]] std::span<const Deed> deeds() const { return deeds_; }
  /// Deeds that come after one.
  [[nodiscard]] std::span<const std::int32_t> followers(std::int32_t deed) const;

 private:
  Schedule schedule_;
  std::vector<Deed> deeds_;
  std::vector<std::int32_t> followers_;  ///< of all deeds, one behind the other
  std::vector<std::int32_t> begins_;     ///< of a deed's followers; then the end
};

}  // namespace heddle::collectives
