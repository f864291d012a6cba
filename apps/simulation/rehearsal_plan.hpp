#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "apps/simulation/simulated_program.hpp"
#include "kernels/case_key.hpp"
#include "replay/run.hpp"

namespace heddle {

/// A task of a node that begins.
struct Beginning {
  std::int64_t item = 0;  ///< of the node's walk, from 1 on
  /// That its worker has had nothing to do before it, up to rehearsed_idle_max_s.
  float idle_s = 0;
};
/// A core sleeps no deeper than after that, and a rehearsal would have nothing else to time.
inline constexpr double rehearsed_idle_max_s = 0.02;

/// A node's tasks in the order in which they begin.
using BeginOrder = std::vector<Beginning>;

/// The order of a job's tasks on each node of the run.
[[nodiscard]] std::vector<BeginOrder> begin_orders(const replay::RunTrace& run, std::int32_t job);

/// The tasks that a node's workers run whole in a factorization, in the order in which they begin,
/// and the memory that they use: the node's own tiles, and copies of other nodes', which come while
/// tasks run and whose blocks are used again.
struct RehearsalPlan {
  struct Task {
    std::int32_t kind = 0;    ///< of `kinds`
    std::int32_t copies = 0;  ///< that are there when it begins
    float idle_s = 0;         ///< its worker has nothing to do before it
    /// [first, last) of `before`: tasks before it that change what it uses, or use what it
    /// changes, and have no such task between them and it.
    std::int32_t before_first = 0;
    std::int32_t before_last = 0;
    std::array<std::int64_t, protocol::accesses_max> at{};  ///< of each operand's first element
  };
  /// Elements of a tile that are 1 where the others are small: a triangle's diagonal, by which
  /// tasks divide.
  struct Ones {
    std::int64_t first = 0;
    std::int64_t step = 0;
    std::int64_t count = 0;
  };
  /// A copy of a tile's version that another node wrote.
  struct Copy {
    std::int64_t at = 0;  ///< its first element
    std::int64_t elements = 0;
    Ones ones;
    /// The last task that uses the block's former content; -1: nobody has used it. Tasks before
    /// this one's first reader need no later copies: so whoever waits for it is waited for by
    /// nobody whom it waits for.
    std::int32_t behind = -1;
  };

  std::vector<CaseKey> kinds;
  std::vector<Task> tasks;
  std::vector<std::int32_t> before;
  std::vector<Copy> copies;  ///< in the order in which they are needed
  std::int64_t elements = 0;
  /// Number of first tasks that together use each of the node's own tiles at least once.
  std::int32_t pass = 0;
};

/// Most tasks of a node that are rehearsed: the first ones, which stand for the others.
inline constexpr std::int32_t rehearsed_tasks_max = 50'000;

/// The diagonal of the block that a task factors, or by which it divides, of its operand
/// `operand`; `count` 0: it does neither.
[[nodiscard]] RehearsalPlan::Ones ones_of(const CaseKey& kind, std::size_t operand);

/// Tasks that are not in `order` begin after the others, as the walk meets them. Where the node's
/// own tiles have more than `elements_max` elements, of the updates alone, which may compute with
/// any numbers: then tiles lie upon each other.
[[nodiscard]] RehearsalPlan plan_rehearsal(const SimulatedFactorization& what, NodeId node,
                                           const BeginOrder& order, std::int64_t elements_max);

}  // namespace heddle
