#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <vector>

#include "replay/run.hpp"

namespace heddle::replay {

/// Before everything else.
inline constexpr std::int64_t long_ago = std::numeric_limits<std::int64_t>::min();

/// Tasks that a generation thread adds one after the other.
struct GenerationTurn {
  std::uint64_t before = 0;  ///< the last task of the turns before this one
  std::uint64_t last = 0;
  std::int64_t before_ns = 0;  ///< when the turn before it ended
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  bool waited = false;  ///< right before, for room in the window
};

/// When the nodes of a run had generated the tasks of one job, and how long they could not go on.
class Generation {
 public:
  Generation(const RunTrace& run, std::int32_t job);

  /// When that task was there at the latest; `long_ago` where nothing says (a user's thread
  /// inserted it, or the records are not there).
  [[nodiscard]] std::int64_t time_of(NodeId node, std::uint64_t order) const;
  /// Of a node in order; the first one, whose begin nobody knows, is not among them.
  [[nodiscard]] std::vector<GenerationTurn> turns_of(NodeId node) const;
  /// The parts of that time in order, each with whether the node's generation waited in it because
  /// the window was full.
  void for_each_part(NodeId node, Interval time,
                     const std::function<void(Interval part, bool is_full)>& use) const;

 private:
  struct Step {
    std::uint64_t order = 0;  ///< the tasks up to this one were there
    std::int64_t time_ns = 0;
  };
  std::map<NodeId, std::vector<Step>> steps_;       ///< both grow
  std::map<NodeId, std::vector<Interval>> pauses_;  ///< in order, apart from each other
};

}  // namespace heddle::replay
