#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <vector>

#include "replay/run.hpp"

namespace heddle::replay {

/// Before any time.
inline constexpr std::int64_t long_ago = std::numeric_limits<std::int64_t>::min();

/// Tasks that a generation thread appends in one turn.
struct GenerationTurn {
  std::uint64_t before = 0;  ///< last task of earlier turns
  std::uint64_t last = 0;
  std::int64_t before_ns = 0;  ///< end of the previous turn
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  bool waited = false;  ///< for room in the window, just before
};

/// When the nodes of a run generated the tasks of one job, and when they were blocked.
class Generation {
 public:
  Generation(const RunTrace& run, std::int32_t job);

  /// Latest time at which the task was generated; `long_ago` if unknown (inserted by a user's
  /// thread, or no records).
  [[nodiscard]] std::int64_t time_of(NodeId node, std::uint64_t order) const;
  /// Turns of a node in order, without the first, whose start is unknown.
  [[nodiscard]] std::vector<GenerationTurn> turns_of(NodeId node) const;
  /// Splits `time` into parts in order; `is_full`: the node's generation waited for room in the
  /// window.
  void for_each_part(NodeId node, Interval time,
                     const std::function<void(Interval part, bool is_full)>& use) const;

 private:
  struct Step {
    std::uint64_t order = 0;  ///< tasks up to this one were generated
    std::int64_t time_ns = 0;
  };
  std::map<NodeId, std::vector<Step>> steps_;       ///< both ascending
  std::map<NodeId, std::vector<Interval>> pauses_;  ///< in order, disjoint
};

}  // namespace heddle::replay
