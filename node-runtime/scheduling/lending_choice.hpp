#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/assert.hpp"
#include "base/index.hpp"
#include "node-runtime/scheduling/placement_policy.hpp"
#include "node-runtime/scheduling/ready_queue.hpp"

namespace heddle {

/// What a node knows of its ready tasks; the caller of LendingChoice implements it.
class LendableTasks {
 public:
  /// What tasks of one kernel on tiles of the same shapes have in common.
  struct Kind {
    TaskSeconds seconds;
    std::uint64_t devices = 0;    ///< that have the kernel: bit d for place d + 1
    bool runs_on_workers = true;  ///< the kernel has a host form
    bool is_dividable = false;    ///< the kernel has a fine-grain form
    bool may_be_lent = false;     ///< PlacementPolicy::may_lend()
    [[nodiscard]] bool runs_on(PlaceId device) const {
      HEDDLE_DEBUG(device.value() >= 1 && device.value() <= 64, "place {}", device.value());
      return (devices >> (device.value() - 1) & 1) != 0;
    }
  };

  LendableTasks() = default;
  LendableTasks(const LendableTasks&) = delete;
  LendableTasks& operator=(const LendableTasks&) = delete;
  virtual ~LendableTasks() = default;

  [[nodiscard]] virtual const Kind& kind(const protocol::Task& task) = 0;
  /// Workers that the task keeps busy; the same whenever it is asked for.
  [[nodiscard]] virtual std::int32_t width(const protocol::Task& task) = 0;
  /// Bytes of the task's tiles that host memory lacks.
  [[nodiscard]] virtual std::uint64_t missing_on_host(const protocol::Task& task) const = 0;
  /// The task's job was cancelled: its kernel does not run, wherever it is.
  [[nodiscard]] virtual bool is_cancelled(const protocol::Task& task) const = 0;
};

/// Which ready tasks of devices' places the CPU workers of a node run (threads/lending.hpp, and the
/// simulation).
///
/// Workers pull: as long as the host has fewer than `ahead` tasks for each worker, it takes one of
/// the least urgent tasks of the device with the most tasks, if the policy finds that the host
/// would finish it before the device did. A task that its device cannot run, and that workers can
/// divide, is lent as soon as it is ready.
///
/// What is compared are the numbers of tasks and times that are known before the node's first task:
/// nothing is measured.
///
/// Invariant (`is_valid()`), over the tasks t that are ready or run:
///   host_width_    = sum of width(t) over tasks of the host's place and lent tasks
///   at_device_[d]  = number of tasks of place d + 1 that are not lent
///   lent_         >= number of lent tasks
///
/// Pure. Not thread-safe: the caller serialises.
class LendingChoice {
 public:
  /// Seconds until that many bytes are at another place; empty: no time.
  using Transfer = std::function<double(Location from, Location to, std::uint64_t bytes)>;
  using Queues = std::span<const std::unique_ptr<ReadyQueue>>;  ///< of all places

  /// `tasks` outlives it. Places 1 to `devices` are the devices'.
  LendingChoice(std::shared_ptr<const PlacementPolicy> policy, Transfer transfer,
                LendableTasks& tasks, std::int32_t devices, std::int32_t workers);

  /// Whether the host may run tasks that take so long; decided once for each kind. Any thread.
  [[nodiscard]] bool may_lend(const TaskSeconds& seconds) const {
    return policy_->may_lend(seconds.device / devices_, seconds.worker / workers_);
  }

  /// A task is in its place's queue. True: the host takes it at once, and it is in no queue.
  [[nodiscard]] bool became_ready(protocol::Task& task, Queues ready);
  /// A task that became_ready() was called with has run.
  void finished(const protocol::Task& task);

  /// Whether take_for_host() might find a task. A worker that is woken in vain costs the thread
  /// that wakes it some microseconds, and this 100 ns.
  [[nodiscard]] bool may_find_for_host(Queues ready);
  /// Takes a task out of a device's queue for the host, and marks it (Task::is_lent). Null: the
  /// host takes none now.
  [[nodiscard]] protocol::Task* take_for_host(Queues ready);

  /// Tasks lent so far.
  [[nodiscard]] std::int64_t lent() const { return lent_; }
  /// The sums are possible.
  [[nodiscard]] bool is_valid() const;
  /// The invariant for `live`, the tasks that became ready and have not finished; for tests.
  [[nodiscard]] bool is_valid(std::span<const protocol::Task* const> live);

 private:
  [[nodiscard]] std::int32_t width_of(const protocol::Task& task);
  [[nodiscard]] std::int64_t& at_device(PlaceId place) {
    HEDDLE_DEBUG(place.value() >= 1 && place.value() <= devices_, "place {} of {} devices",
                 place.value(), devices_);
    return at_device_[static_cast<std::size_t>(place.value()) - 1];
  }
  [[nodiscard]] bool host_is_sooner(const protocol::Task& task, std::uint64_t missing_bytes);
  [[nodiscard]] bool may_lend(const protocol::Task& task);
  [[nodiscard]] ReadyQueue& fullest(Queues ready) const;
  void lend(protocol::Task& task, ReadyQueue& from);

  std::shared_ptr<const PlacementPolicy> policy_;
  Transfer transfer_;
  LendableTasks& tasks_;
  std::int32_t devices_;
  std::int32_t workers_;
  std::vector<std::int64_t> at_device_;
  std::int64_t host_width_ = 0;
  std::int64_t lent_ = 0;
};

}  // namespace heddle
