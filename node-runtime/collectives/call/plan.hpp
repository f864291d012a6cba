#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include "node-runtime/collectives/call/call.hpp"
#include "node-runtime/collectives/call/direct_call.hpp"
#include "node-runtime/collectives/call/memory.hpp"
#include "node-runtime/collectives/execution/execution.hpp"
#include "node-runtime/collectives/schedule/choice.hpp"
#include "node-runtime/collectives/schedule/device_ways.hpp"
#include "node-runtime/collectives/schedule/levels.hpp"
#include "node-runtime/collectives/schedule/make_schedule.hpp"
#include "node-runtime/collectives/schedule/places.hpp"
#include "node-runtime/transport/p2p/shape_cache.hpp"

namespace heddle::collectives {

/// A number for what must be the same on all ranks of operation `number`, beside the elements.
[[nodiscard]] std::uint64_t seal_of(const Call& call, std::int64_t number);

/// Bytes of a fragment of the gsb way, for an operation on `bytes`: as the call wants, at least.
[[nodiscard]] std::int64_t buffer_fragment(const Call& call, std::int64_t bytes);

/// Turns calls on one rank of a group into tasks, and keeps what several of them need: schedules,
/// and the shapes of types.
///
/// Thread: any.
class Planner {
 public:
  /// `rates` are the same on all ranks. `devices` of this rank's node outlive it; null: none.
  Planner(Rank own, Places places, const CollectiveRates& rates, RankDevices* devices = nullptr);

  struct Planned {
    Task task;
    CollectiveChoice choice;
  };
  /// The call has been checked. `number`: of the operation; ranks whose calls differ, or have
  /// another number, seal their messages differently. Packs inputs that do not lie in one piece, or
  /// lets the task do it: where devices are needed for it, and where it is `gated`, begun before
  /// the input is there. Throws Error(usage) for an algorithm that there is not, and Device's
  /// errors.
  [[nodiscard]] Planned plan(const Call& call, std::int64_t number, bool is_gated = false);
  /// Where a call's elements are while its steps run: on the device of one of its buffers, if one
  /// has it, unless a reduction has no form for devices.
  [[nodiscard]] Home home_of(const Call& call) const;

  /// What plan() chooses for a call that has been checked; throws likewise.
  [[nodiscard]] CollectiveChoice choose(const Call& call) const;

  /// Before the first call, where all ranks are on one host and have devices: operations on large
  /// memory of devices go the direct way.
  void set_direct(DirectRank rank) { direct_rank_ = std::move(rank); }
  /// Whether it is so.
  [[nodiscard]] bool may_share_devices() const { return direct_rank_.has_value(); }
  /// Between two calls, then.
  void set_copy_table(std::shared_ptr<const CopyTable> copies) {
    direct_rank_->copies = std::move(copies);
  }
  [[nodiscard]] const CollectiveRates& rates() const { return rates_; }
  /// Before the first call.
  [[nodiscard]] const Places& places() const { return places_; }
  [[nodiscard]] const Levels& levels() const { return levels_; }
  [[nodiscard]] Rank own() const { return own_; }

 private:
  struct Key {
    ScheduleKey schedule;
    bool is_direct;  ///< by `direct_`
    friend auto operator<=>(const Key&, const Key&) = default;
  };

  [[nodiscard]] CollectiveQuery query_of(const Call& call) const;
  /// What the choice of a way for memory of devices follows from, beside places and rates.
  struct WayKey {
    CollectiveKind kind;
    std::int32_t root;
    bool is_in_place;
    Order order;
    bool has_orders;
    bool is_exact;
    double bytes;
    std::int64_t fragment_bytes;
    friend auto operator<=>(const WayKey&, const WayKey&) = default;
  };
  struct Chosen {
    CollectiveChoice choice;
    bool tries_direct = false;
  };
  /// With the ways for memory of devices, where there are such and the caller has not chosen.
  [[nodiscard]] Chosen choose_way(const Call& call, const CollectiveQuery& query) const;
  [[nodiscard]] Chosen make_choice(const Call& call, CollectiveQuery query,
                                   const OrderQuery& order) const;
  [[nodiscard]] OrderQuery order_of(const Call& call) const;
  /// Whether a rank whose memory is on a device keeps fragments in host memory on their way between
  /// hosts; tells what was considered.
  [[nodiscard]] HostCache choose_host_cache(const CollectiveQuery& query,
                                            CollectiveChoice& choice) const;
  /// Without room for its slots there is none.
  void set_host_cache(Key key, CollectiveChoice& choice, Task& task);
  [[nodiscard]] CollectiveChoice choose(const Call& call, const CollectiveQuery& query,
                                        const CollectiveRates& rates) const;
  [[nodiscard]] std::shared_ptr<const CompiledSchedule> schedule_of(const Key& key);
  struct Wanted {
    Home home;
    bool is_gated = false;
    bool may_go_direct = false;
    bool must_go_direct = false;
    std::optional<DeviceWay> by_buffers{};
    std::int64_t number = 0;
  };
  void set_places(const Call& call, const ScheduleKey& key, const Wanted& wanted, Task& task);
  void set_ways(const Call& call, const Wanted& wanted, DirectMemory memory, Task& task);
  /// The call asks for the direct way. Throws Error(usage) where it cannot be taken.
  [[nodiscard]] bool must_go_direct(const Call& call, const CollectiveQuery& query) const;
  /// The way by buffers that the call asks for, if its operation has it. Throws likewise.
  [[nodiscard]] std::optional<DeviceWay> way_by_buffers(const Call& call,
                                                        const CollectiveQuery& query) const;
  /// Why one device cannot do the operation for all; empty: it can.
  [[nodiscard]] std::string_view why_not_on_one_device(const Call& call,
                                                       const CollectiveQuery& query) const;

  Rank own_;
  Places places_;
  Levels levels_;
  bool spans_hosts_ = false;
  /// One flat level, for operations in which only sender and receiver know the size of a block.
  Levels direct_;
  std::array<ValuesSent, 2> values_;  ///< by Order
  CollectiveRates rates_;
  RankDevices* devices_;
  std::optional<DirectRank> direct_rank_;
  p2p::ShapeCache inputs_{false};
  p2p::ShapeCache outputs_{true};
  mutable std::mutex mutex_;
  mutable std::map<WayKey, Chosen> ways_;                             ///< under the mutex
  std::map<Key, std::shared_ptr<const CompiledSchedule>> schedules_;  ///< under the mutex
};

}  // namespace heddle::collectives
