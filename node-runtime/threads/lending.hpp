#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kernels/case_key.hpp"
#include "node-runtime/device/device.hpp"
#include "node-runtime/memory/tile_store.hpp"
#include "node-runtime/scheduling/lending_choice.hpp"
#include "node-runtime/scheduling/placement_policy.hpp"
#include "node-runtime/scheduling/ready_queue.hpp"
#include "node-runtime/threads/fine_graphs.hpp"
#include "node-runtime/threads/path_priorities.hpp"

namespace heddle {

struct LendingOptions {
  std::shared_ptr<const PlacementPolicy> policy;
  TaskCosts costs;
};

/// Whether a node lends at all, decided when it starts: a device lacks a kernel that workers can
/// divide, or the policy lends products of the usual size. Otherwise the node works as with static
/// placement.
[[nodiscard]] bool is_worth_lending(const LendingOptions& options, std::span<Device* const> devices,
                                    std::int32_t workers);

/// Tasks of devices' places that the CPU workers run instead (LendingChoice; 000 section 3.6).
/// Tiles keep their homes, and the protocol knows nothing of it: a lent task uses its blocks in
/// host memory (DeviceCache::request_host), and what it writes stays there until the device needs
/// it.
///
/// Why lent tasks cannot deadlock: one waits only for write-backs of its own tiles, which end
/// (Residency), and no worker waits for it.
///
/// Not thread-safe: the engine's lock serialises.
class Lending final : private LendableTasks {
 public:
  /// `devices[d]` is place d + 1; at least one. What all of them hold has host memory behind it.
  Lending(LendingOptions options, TileStore& store, std::span<Device* const> devices,
          std::int32_t workers, FineGraphs& graphs);

  /// Whether the host may run tasks of that case and place. Any thread.
  [[nodiscard]] bool may_lend(const KernelCase& what, PlaceId place) const;

  /// A task is in its place's queue. True: the host takes it at once, and it is in no queue.
  bool became_ready(protocol::Task& task, LendingChoice::Queues ready);
  /// A task has run. To be called before the protocol hears of it, while its blocks are its own.
  void finished(protocol::Task& task);

  /// Whether lend() might find a task.
  [[nodiscard]] bool may_find(LendingChoice::Queues ready) {
    return choice_.may_find_for_host(ready);
  }
  /// Takes a task from a device's queue and asks for its tiles. False: the host takes none now.
  bool lend(LendingChoice::Queues ready);
  /// Lent tasks whose tiles have come go to the host's queue; how many.
  std::size_t take_arrived(ReadyQueue& host);

  /// Tasks lent so far.
  [[nodiscard]] std::int64_t lent() const { return choice_.lent(); }

 private:
  struct Known : Kind {
    std::int32_t width = 0;  ///< 0: not asked for yet
  };

  [[nodiscard]] const Kind& kind(const protocol::Task& task) override { return known_of(task); }
  [[nodiscard]] std::int32_t width(const protocol::Task& task) override;
  [[nodiscard]] std::uint64_t missing_on_host(const protocol::Task& task) const override;
  [[nodiscard]] bool is_cancelled(const protocol::Task& task) const override;

  [[nodiscard]] Known& known_of(const protocol::Task& task);
  [[nodiscard]] Known make_known(const protocol::Task& task) const;
  void ask_for_tiles(protocol::Task& task);

  TaskCosts costs_;
  TileStore& store_;
  std::vector<Device*> devices_;
  FineGraphs& graphs_;
  /// By kernel and tile shapes, divided or whole; a job has a handful. Kernel parameters are not
  /// part of the key: they change from tile to tile and hardly affect the time.
  std::unordered_map<CutCase, Known, CutCase::Hash> kinds_;
  /// By kernel, the kind that was asked for last: most tasks follow one of their kind.
  std::array<std::pair<CutCase, Known*>, 16> last_{};
  LendingChoice choice_;
  std::int64_t arriving_ = 0;  ///< lent tasks whose tiles are on their way
};

}  // namespace heddle
