#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/futex.hpp"

namespace heddle {

/// Threads to be woken once the engine's lock is free.
struct Wakes {
  std::size_t cpu = 0;        ///< tasks that became ready for the CPU workers
  std::uint64_t devices = 0;  ///< bit d: device d has a task
  bool generation = false;    ///< a program may walk on
  bool copy = false;
  bool message = false;

  Wakes& operator|=(const Wakes& other) {
    cpu += other.cpu;
    devices |= other.devices;
    generation |= other.generation;
    copy |= other.copy;
    message |= other.message;
    return *this;
  }
};

/// The doorbells of a node's threads. Thread: any.
struct Bells {
  explicit Bells(std::size_t device_count) {
    for (std::size_t d = 0; d < device_count; ++d) devices.push_back(std::make_unique<Doorbell>());
  }

  Doorbell cpu;         ///< ready tasks for the CPU workers
  Doorbell generation;  ///< room in a window, or a new job
  Doorbell room;        ///< the same, for users' threads that insert
  Doorbell copy;
  Doorbell message;
  std::vector<std::unique_ptr<Doorbell>> devices;

  void ring(const Wakes& wakes) {
    wake_workers(wakes.cpu);
    for (std::size_t d = 0; d < devices.size(); ++d) {
      if ((wakes.devices >> d & 1) != 0) devices[d]->ring();
    }
    if (wakes.generation) {
      generation.ring();
      room.ring_all();
    }
    if (wakes.copy) copy.ring();
    if (wakes.message) message.ring();
  }
  void ring_all() {
    for (Doorbell* bell : {&cpu, &generation, &room, &copy, &message}) bell->ring_all();
    for (const auto& bell : devices) bell->ring_all();
  }

  /// Wakes sleeping workers for `tasks` ready tasks, two at most: each of them wakes others for
  /// what it leaves. Waking takes microseconds for each sleeper, during which the caller, whose
  /// next task others wait for, would run nothing.
  void wake_workers(std::size_t tasks) {
    constexpr std::size_t at_once = 2;
    if (tasks > 0) cpu.ring(static_cast<int>(std::min(tasks, at_once)));
  }
};

}  // namespace heddle
