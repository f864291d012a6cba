#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kernels/case_key.hpp"
#include "node-runtime/device/device.hpp"
#include "node-runtime/memory/tile_store.hpp"
#include "node-runtime/placement/lending_choice.hpp"
#include "node-runtime/placement/placement_policy.hpp"
#include "node-runtime/protocol/ready_queue.hpp"
#include "node-runtime/threads/fine_graphs.hpp"
#include "node-runtime/threads/path_priorities.hpp"

namespace heddle {

struct LendingOptions {
  std::shared_ptr<const PlacementPolicy> policy;
  TaskCosts costs;
};

/// Whether workers will probably run tasks of these devices, so that host memory should be behind
/// all of their tiles beforehand: some device lacks a kernel that workers can divide, or products
/// would come to them, were devices twice as slow as is known.
[[nodiscard]] bool is_likely_to_lend(const LendingOptions& options,
                                     std::span<Device* const> devices, std::int32_t workers);

/// Which ready tasks of devices' places the CPU workers, or devices that have none, run instead
/// (000 section 3.6). Tiles keep their homes, and the protocol knows nothing of it: a task that is
/// lent to the host uses its blocks there (DeviceCache::request_host), and what it writes stays
/// there until the device needs it; one that visits another device has its blocks pinned in its own
/// device's memory meanwhile (threads/visits.hpp).
///
/// A worker that looks for work lends while the host has less to do than `ahead` tasks for each
/// worker, so that tiles come while others compute: the least urgent of a device's ready tasks,
/// which has the most time, and of some of those the one whose tiles are on the host already; if
/// the policy finds that the host would be done with it before the device came to its end.
///
/// Why that cannot deadlock: a task that is lent to the host waits only for write-backs of its own
/// tiles, which end (Residency); workers do not wait for it. A visit begins only when all of its
/// tiles are where it needs them, and then waits for nothing.
///
/// Not thread-safe: the engine's lock serialises. A task that becomes ready and ends costs some
/// 100 ns where any may come to the host, and nothing where none may; one that is lent a few
/// microseconds.
class Lending final : private LendableTasks {
 public:
  /// `devices[d]` is place d + 1.
  Lending(LendingOptions options, TileStore& store, std::span<Device* const> devices,
          std::int32_t workers, FineGraphs& graphs);

  /// Tasks of that case and place may come to the host, and be divided there, were devices twice as
  /// slow as is known: what has to be ready for that.
  [[nodiscard]] bool may_lend(const KernelCase& what, PlaceId place) const;

  /// A job begins, and the node has no other one: decides whether loads are kept for it.
  void begin_work();
  /// Who tells of tasks says what time it is.
  [[nodiscard]] bool keeps_loads() const { return choice_.keeps_loads(); }

  /// A task has been inserted: it keeps from now on what is known of its kernel on such tiles.
  void inserted(protocol::Task& task);
  /// A task is in its place's queue. True: its device cannot run it, and it is lent at once
  /// (LendingChoice::became_ready).
  bool became_ready(protocol::Task& task, LendingChoice::Queues ready, std::int64_t now_ns);
  /// It has run. To be called before the protocol hears of it: its blocks are let go.
  void finished(protocol::Task& task, std::int64_t now_ns);

  /// A worker that looks may find a task to lend (LendingChoice::may_find_for_host).
  [[nodiscard]] bool may_lend(LendingChoice::Queues ready) {
    return !host_is_full_ && choice_.may_find_for_host(ready);
  }
  /// Takes a task from a device's queue and asks for its tiles, if the policy wants that. False: no
  /// task is to be lent now.
  bool lend(LendingChoice::Queues ready, std::int64_t now_ns);
  /// Lent tasks whose tiles have come go to the host's queue; how many.
  std::size_t take_arrived(ReadyQueue& host);

  /// Takes a task from another device's queue for one that has nothing to do, if the policy wants
  /// that; its blocks are acquired in its own device's memory. Null: there is none.
  [[nodiscard]] protocol::Task* visit(LendingChoice::Queues ready,
                                      const LendingChoice::Visited& visited, std::int64_t now_ns) {
    return choice_.take_for_device(ready, visited, now_ns);
  }
  /// Devices that have nothing to do may find such tasks.
  [[nodiscard]] bool has_surplus(LendingChoice::Queues ready) const {
    return choice_.has_surplus(ready);
  }

  /// Tasks lent so far, to the host and to other devices.
  [[nodiscard]] std::int64_t lent() const { return choice_.lent(); }
  [[nodiscard]] std::int64_t visits() const { return choice_.visits(); }

 private:
  [[nodiscard]] const Kind& kind(const protocol::Task& task) override { return known_of(task); }
  [[nodiscard]] std::int32_t width(const protocol::Task& task) override;
  [[nodiscard]] Lacking lacking(const protocol::Task& task) const override;
  [[nodiscard]] Visit visit(const protocol::Task& task) const override;
  [[nodiscard]] bool may_move(const protocol::Task& task) const override;
  [[nodiscard]] bool is_dividable(const protocol::Task& task) const override;
  [[nodiscard]] bool may_visit(const protocol::Task& task, PlaceId device) override;
  [[nodiscard]] bool back(const protocol::Task& task) override;
  [[nodiscard]] bool claim(const protocol::Task& task) override;
  [[nodiscard]] Device& device_of(PlaceId place) const {
    return *devices_[static_cast<std::size_t>(place.value()) - 1];
  }

  struct Known : Kind {
    std::int32_t width = 0;  ///< 0: nobody has asked for it
  };

  [[nodiscard]] Costs costs_of(const KernelCase& what) const;
  [[nodiscard]] std::int32_t kind_of(const protocol::Task& task);
  [[nodiscard]] Known& known_of(const protocol::Task& task);
  /// Asks for the tiles of a task that has been taken for the host.
  void ask_for_tiles(protocol::Task& task);

  TaskCosts task_costs_;
  TileStore& store_;
  std::vector<Device*> devices_;
  std::vector<bool> reach_;  ///< by device, and each other one: it has a way to that one's memory
  FineGraphs& graphs_;
  /// Of kernels on tiles of some shapes, divided or whole: a handful for a job. Tasks keep their
  /// number (Task::cost_kind) from when they are inserted. Without kernels' parameters: those say
  /// where a tile or strip lies, for a kernel that fills a matrix one by one, and little of times.
  std::vector<Known> known_;
  std::unordered_map<CutCase, std::int32_t, CutCase::Hash> kinds_;
  /// By kernel: thousands of tasks are alike, and most follow such a one.
  std::array<std::pair<CutCase, std::int32_t>, 16> last_{};
  LendingChoice choice_;
  bool devices_lack_kernels_ = false;  ///< which workers can divide
  /// There was no memory for tiles of a task that would have come; until the next work.
  bool host_is_full_ = false;
  std::int64_t works_begun_ = 0;
  /// Of devices' tasks that they can run themselves, together; of earlier works half as much each.
  Costs lately_;
  std::int64_t arriving_ = 0;  ///< lent tasks whose tiles are on their way
};

}  // namespace heddle
