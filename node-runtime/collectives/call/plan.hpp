#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "node-runtime/collectives/call/call.hpp"
#include "node-runtime/collectives/execution/execution.hpp"
#include "node-runtime/collectives/schedule/choice.hpp"
#include "node-runtime/collectives/schedule/levels.hpp"
#include "node-runtime/collectives/schedule/places.hpp"
#include "node-runtime/transport/p2p/shape_cache.hpp"

namespace heddle::collectives {

/// A number for what must be the same on all ranks of operation `number`, beside the elements.
[[nodiscard]] std::uint64_t seal_of(const Call& call, std::int64_t number);

/// Turns calls on one rank of a group into tasks, and keeps what several of them need: schedules,
/// and the shapes of types.
///
/// Thread: any.
class Planner {
 public:
  /// `rates` are the same on all ranks.
  Planner(Rank own, Places places, const CollectiveRates& rates);

  struct Planned {
    Task task;
    CollectiveChoice choice;
  };
  /// The call has been checked. `number`: of the operation; ranks whose calls differ, or have
  /// another number, seal their messages differently. Packs inputs that do not lie in one piece.
  /// Throws Error(usage) for an algorithm that there is not.
  [[nodiscard]] Planned plan(const Call& call, std::int64_t number);

  /// What plan() chooses for a call that has been checked; throws likewise.
  [[nodiscard]] CollectiveChoice choose(const Call& call) const;

  [[nodiscard]] const CollectiveRates& rates() const { return rates_; }
  /// Before the first call.
  void set_rates(const CollectiveRates& rates) { rates_ = rates; }
  [[nodiscard]] const Places& places() const { return places_; }
  [[nodiscard]] const Levels& levels() const { return levels_; }
  [[nodiscard]] Rank own() const { return own_; }

 private:
  /// What a schedule depends on beside the group.
  struct Key {
    CollectiveKind kind;
    std::int32_t root;
    LevelTrees trees;
    AllReduce all_reduce;
    AllToAll all_to_all;
    Order order;
    bool is_direct;
    friend auto operator<=>(const Key&, const Key&) = default;
  };

  [[nodiscard]] CollectiveQuery query_of(const Call& call) const;
  [[nodiscard]] CollectiveChoice choose(const Call& call, const CollectiveQuery& query) const;
  [[nodiscard]] std::shared_ptr<const CompiledSchedule> schedule_of(const Key& key);
  [[nodiscard]] Schedule make(const Key& key) const;
  void set_places(const Call& call, const Key& key, Task& task);

  Rank own_;
  Places places_;
  Levels levels_;
  /// One flat level, for operations in which only sender and receiver know the size of a block.
  Levels direct_;
  std::array<ValuesSent, 2> values_;  ///< by Order
  CollectiveRates rates_;
  p2p::ShapeCache inputs_{false};
  p2p::ShapeCache outputs_{true};
  std::mutex mutex_;
  std::map<Key, std::shared_ptr<const CompiledSchedule>> schedules_;  ///< under the mutex
};

}  // namespace heddle::collectives
