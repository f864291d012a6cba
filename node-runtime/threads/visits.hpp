#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "node-runtime/threads/engine.hpp"

namespace heddle {

/// Tasks of other devices' places that a device runs while it has none of its own (000
/// section 3.6).
///
/// A visiting task's tiles stay in its own device's memory, pinned; what it reads is copied into
/// room that this device has left, the kernel runs there, and what it writes is copied back, all in
/// one stream. So the task has run when its event is recorded, and nobody but the two devices knows
/// that it was elsewhere.
///
/// Room: `tasks_max` times accesses_max spare blocks (DeviceCache::PoolKind), as large as the
/// largest tile so far. They are taken where the device's memory has a gap for them, and never
/// waited for: without one, no task comes. So a visit holds what it has for as long as its stream
/// works, and nothing waits for it in turn.
///
/// Nobody calls a device that might be visited: it looks by itself, at first 100 us after it has
/// looked in vain, and later each millisecond. Waking it would take microseconds of who has work.
///
/// Thread: the device's manager.
class Visits {
 public:
  static constexpr std::size_t tasks_max = 2;  ///< at a time: one runs, the tiles of one come

  Visits(Engine& engine, PlaceId place);
  Visits(const Visits&) = delete;
  Visits& operator=(const Visits&) = delete;
  ~Visits();

  /// A task to run, with its tiles and room for them, for a device that has had none of its own
  /// since then; null if none is to come now.
  [[nodiscard]] protocol::Task* take(std::int64_t idle_since_ns);
  static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
  /// When take() looks again, after it has found none; `never` before a visit has ended, or where
  /// devices are not visited.
  [[nodiscard]] std::int64_t look_again_ns() const { return is_full() ? never : look_again_ns_; }
  /// Queues the copies and the kernel. `info` as Stream::launch has it.
  void start(Stream& stream, const protocol::Task& task, std::int64_t* info);
  /// Its event has been recorded, and start() was called unless its job was cancelled.
  void finish(const protocol::Task& task);
  [[nodiscard]] std::size_t count() const;

 private:
  using Blocks = std::array<ResidentBlock, protocol::accesses_max>;
  struct Visit {
    const protocol::Task* task = nullptr;  ///< null: nobody is there
    std::array<DeviceCache::Use, protocol::accesses_max> uses;
    std::size_t count = 0;
    [[nodiscard]] std::span<const DeviceCache::Use> span() const { return {uses.data(), count}; }
  };

  static constexpr std::int64_t pause_least_ns = 100'000;
  static constexpr std::int64_t pause_most_ns = 1'000'000;

  [[nodiscard]] bool is_full() const { return count() == visits_.size(); }
  [[nodiscard]] protocol::Task* look(std::int64_t idle_since_ns);
  [[nodiscard]] Visit& visit_of(const protocol::Task& task);
  [[nodiscard]] bool provide_room(std::size_t bytes);
  void give_room_back();

  Engine& engine_;
  Device& device_;
  DeviceCache& cache_;
  PlaceId place_;
  std::array<Visit, tasks_max> visits_;
  std::array<Blocks, tasks_max> room_{};
  std::size_t room_bytes_ = 0;  ///< of each block; 0: there are none
  std::int64_t look_again_ns_ = 0;
  std::int64_t pause_ns_ = pause_least_ns;  ///< until the look after the next one in vain
  std::int64_t idle_since_ns_ = 0;          ///< when it looked last
};

}  // namespace heddle
