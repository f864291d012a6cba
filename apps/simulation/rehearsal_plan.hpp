#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "apps/simulation/case_key.hpp"
#include "apps/simulation/simulated_program.hpp"

namespace heddle {

/// Of the tasks of a node in the order in which they begin: numbers of items of its walk, from 1
/// on.
using BeginOrder = std::vector<std::int64_t>;

/// The tasks of one kernel that a node's workers run in a factorization, in the order in which they
/// begin, and the memory that they use: the node's own tiles, and copies of other nodes', which
/// come while tasks run and whose blocks are used again.
struct RehearsalPlan {
  struct Task {
    std::int32_t kind = 0;    ///< of `kinds`
    std::int32_t copies = 0;  ///< that are there when it begins
    /// The last task before it that changes what it uses, or uses what it changes; -1: none does.
    std::int32_t behind = -1;
    std::array<std::int64_t, protocol::accesses_max> at{};  ///< of each operand's first element
  };
  /// Of a tile's version that another node wrote.
  struct Copy {
    std::int64_t at = 0;  ///< its first element
    std::int64_t elements = 0;
    /// The last task that uses the block's former content; -1: nobody has used it. Tasks before
    /// this one's first reader need no later copies: so whoever waits for it is waited for by
    /// nobody whom it waits for.
    std::int32_t behind = -1;
  };

  std::vector<CaseKey> kinds;
  std::vector<Task> tasks;
  std::vector<Copy> copies;  ///< in the order in which they are needed
  std::int64_t elements = 0;
};

/// Of more tasks than that the first ones stand for all.
inline constexpr std::int32_t rehearsed_tasks_max = 50'000;

/// Tasks that are not in `order` begin after the others, as the walk meets them. `elements_max` of
/// the node's own tiles: more of them lie upon each other.
[[nodiscard]] RehearsalPlan plan_rehearsal(const SimulatedFactorization& what, const Kernel& kernel,
                                           NodeId node, const BeginOrder& order,
                                           std::int64_t elements_max);

}  // namespace heddle
