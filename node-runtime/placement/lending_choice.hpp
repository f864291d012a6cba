#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/index.hpp"
#include "node-runtime/placement/place_loads.hpp"
#include "node-runtime/placement/placement_policy.hpp"
#include "node-runtime/protocol/ready_queue.hpp"

namespace heddle {

/// What is known of ready tasks, for who chooses which of them are lent.
class LendableTasks {
 public:
  struct Costs {
    double worker = 0;  ///< seconds on one worker
    double device = 0;  ///< seconds on its device; no matter where it lives on the host
  };
  /// What tasks of one kernel on tiles of some shapes have in common.
  struct Kind {
    Costs costs;
    std::uint64_t devices = 0;  ///< that can run it, bit d the one of place d + 1
    [[nodiscard]] bool runs_on(PlaceId device) const {
      return (devices >> (device.value() - 1) & 1) != 0;
    }
  };
  /// Bytes of its tiles that have to come first.
  struct Lacking {
    std::uint64_t device = 0;
    std::uint64_t host = 0;
  };
  /// Bytes that move when another device runs it: what it reads goes there, what it writes back.
  struct Visit {
    std::uint64_t there = 0;
    std::uint64_t back = 0;
    std::uint64_t largest = 0;  ///< of its tiles
  };

  LendableTasks() = default;
  LendableTasks(const LendableTasks&) = delete;
  LendableTasks& operator=(const LendableTasks&) = delete;
  virtual ~LendableTasks() = default;

  [[nodiscard]] virtual const Kind& kind(const protocol::Task& task) = 0;
  /// Workers that it keeps busy on the host; asked for only of tasks that may come there.
  [[nodiscard]] virtual std::int32_t width(const protocol::Task& task) = 0;
  [[nodiscard]] virtual Lacking lacking(const protocol::Task& task) const = 0;
  [[nodiscard]] virtual Visit visit(const protocol::Task& task) const = 0;
  /// A worker can run it.
  [[nodiscard]] virtual bool may_move(const protocol::Task& task) const = 0;
  /// Its kernel has a fine-grain form, whether this job divides tasks or not.
  [[nodiscard]] virtual bool is_dividable(const protocol::Task& task) const = 0;
  /// Another device can, and reaches its tiles.
  [[nodiscard]] virtual bool may_visit(const protocol::Task& task, PlaceId device) = 0;
  /// Host memory is behind its tiles from now on, where a worker can use them. False: the host has
  /// none left.
  [[nodiscard]] virtual bool back(const protocol::Task& task) = 0;
  /// Keeps its tiles where they are for another device to read and write, until it has run. False:
  /// some are not at its place now.
  [[nodiscard]] virtual bool claim(const protocol::Task& task) = 0;
};

/// Whether a policy can ever have tasks of such costs run by workers rather than devices, however
/// much these have to do, if they are so many times as slow as is known. Any thread.
[[nodiscard]] bool may_lend(const PlacementPolicy& policy, const LendableTasks::Costs& costs,
                            double slower, std::int32_t devices, std::int32_t workers);

/// Which ready tasks of devices' places other places of the node run instead: its CPU workers, or a
/// device that has none of its own (threads/lending.hpp, and the simulation). The loads of all
/// places, and the choice.
///
/// Loads are there for what may come to the host, and need not be kept where nothing may: then a
/// task that becomes ready or ends costs nothing. Which device has much to do for another one its
/// queue says, when that one looks.
///
/// Pure: who calls says what time it is. Not thread-safe: the caller serialises.
class LendingChoice {
 public:
  /// Seconds until so many bytes are at another place; empty: no time.
  using Transfer = std::function<double(Location from, Location to, std::uint64_t bytes)>;
  /// Of all places.
  using Queues = std::span<const std::unique_ptr<ReadyQueue>>;

  /// Ready tasks that a device keeps at least, beside those that its streams have: before another
  /// one had their tiles it would have come to them itself.
  static constexpr std::size_t kept_by_device = 8;

  /// `tasks` outlives it. Places 1 to `devices` are the devices'.
  LendingChoice(std::shared_ptr<const PlacementPolicy> policy, Transfer transfer,
                LendableTasks& tasks, std::int32_t devices, std::int32_t workers);

  /// heddle::may_lend() here. Any thread.
  [[nodiscard]] bool may_lend(const LendableTasks::Costs& costs, double slower) const {
    return heddle::may_lend(*policy_, costs, slower, devices_, workers_);
  }
  /// Whether anything of such costs can be lent to the host, as slow as devices have shown
  /// themselves at best.
  [[nodiscard]] bool may_come_to_host(const LendableTasks::Costs& costs) const;
  /// Some device has run enough for that.
  [[nodiscard]] bool has_shown() const;
  /// They may need more by now.
  void forget_shown();
  /// Keeps loads from now on, of tasks that become ready; nothing is lent to the host without.
  void keep_loads() { keeps_loads_ = true; }
  [[nodiscard]] bool keeps_loads() const { return keeps_loads_; }
  /// The node has had no task for a while, and gets some: loads are kept, or not until
  /// keep_loads().
  void begin_work(bool keeps_loads);

  /// A task is in its place's queue. True: it has been taken out for the host, as its device cannot
  /// run it, its kernel is one that workers can divide, and the policy finds that better than
  /// staging it (000 section 3.2.2: there devices run products alone).
  [[nodiscard]] bool became_ready(protocol::Task& task, Queues ready, std::int64_t now_ns);
  /// It has run.
  void finished(protocol::Task& task, std::int64_t now_ns);

  /// The host can take more, and would be sooner with a device's least urgent task, were the tiles
  /// there already: take_for_host() may find one. Takes some 100 ns, where a worker that is woken
  /// to look for nothing takes microseconds of who wakes it.
  [[nodiscard]] bool may_find_for_host(Queues ready);
  /// Takes a task out of a device's queue for the host, and marks it so (Task::lent_to). Null: none
  /// is to be lent now.
  [[nodiscard]] protocol::Task* take_for_host(Queues ready, std::int64_t now_ns);
  /// A device without tasks of its own, which needs one.
  struct Visited {
    PlaceId device;
    std::uint64_t tile_bytes_max = 0;  ///< of tiles that it has room for
    std::int64_t idle_since_ns = 0;    ///< it has had none
  };
  /// The same for a device that has had nothing of its own to do, while others had too much, for as
  /// long as the visit takes; the task's tiles are claimed.
  [[nodiscard]] protocol::Task* take_for_device(Queues ready, const Visited& visited,
                                                std::int64_t now_ns);
  /// Some device has more than it keeps.
  [[nodiscard]] bool has_surplus(Queues ready) const;

  /// Tasks taken so far, for the host and for devices.
  [[nodiscard]] std::int64_t lent() const { return lent_; }
  [[nodiscard]] std::int64_t visits() const { return visits_; }

 private:
  using Costs = LendableTasks::Costs;
  using Kind = LendableTasks::Kind;
  /// What a device knows that looks for what might visit it.
  struct Idle {
    /// Its looks have found another one with more than it keeps.
    std::optional<std::int64_t> surplus_since_ns;
    std::int64_t visitors = 0;  ///< other devices' tasks that it has
  };
  [[nodiscard]] const Idle& idle(PlaceId device) const {
    return idle_[static_cast<std::size_t>(device.value()) - 1];
  }
  [[nodiscard]] Idle& idle(PlaceId device) {
    return idle_[static_cast<std::size_t>(device.value()) - 1];
  }
  /// Its place can run it: what it takes says something about the place. What a device cannot run
  /// is staged: a worker runs it whole, on copies of its tiles that come and go with it.
  [[nodiscard]] static bool counts(const protocol::Task& task, const Kind& kind) {
    return task.place == host_place || kind.runs_on(task.place);
  }
  void count(protocol::Task& task, const Kind& kind, PlaceId place, std::int64_t now_ns);
  /// It has fewer tasks at hand than its workers should have.
  [[nodiscard]] bool host_has_room() const;
  [[nodiscard]] PlaceLoads::Work work_at(const protocol::Task& task, const Kind& kind,
                                         PlaceId place);
  [[nodiscard]] std::int32_t width_of(const protocol::Task& task);
  [[nodiscard]] double transfer_seconds(PlaceId from, PlaceId to, std::uint64_t bytes) const;
  [[nodiscard]] bool host_is_sooner(const protocol::Task& task, const Kind& kind,
                                    const LendableTasks::Lacking& lacking);
  /// `at_home`: ready tasks that its device has, with it.
  [[nodiscard]] bool device_is_sooner(const protocol::Task& task, PlaceId device,
                                      const LendableTasks::Visit& bytes, std::size_t at_home);
  /// When it has had nothing of its own, and others too much, for as long as such a visit takes.
  [[nodiscard]] std::int64_t may_visit_from(const protocol::Task& task, const Visited& visited,
                                            const LendableTasks::Visit& bytes);
  /// The device that has most to do; the host if none has anything.
  [[nodiscard]] PlaceId busiest() const;
  /// The device that has most ready tasks.
  [[nodiscard]] static PlaceId fullest(Queues ready);
  void lend(protocol::Task& task, PlaceId to, Queues ready, std::int64_t now_ns);
  [[nodiscard]] bool take_instead_of_staging(protocol::Task& task, Queues ready,
                                             std::int64_t now_ns);

  std::shared_ptr<const PlacementPolicy> policy_;
  Transfer transfer_;
  LendableTasks& tasks_;
  std::int32_t devices_;
  std::int32_t workers_;
  PlaceLoads loads_;
  bool keeps_loads_ = true;
  std::vector<Idle> idle_;       ///< by device
  std::int64_t host_width_ = 0;  ///< workers that the host's tasks, ready or running, can keep busy
  std::int64_t lent_ = 0;
  std::int64_t visits_ = 0;
};

}  // namespace heddle
