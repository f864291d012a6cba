#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/index.hpp"

namespace heddle::replay {

/// A way for bytes: what the first one takes, and how many follow in a second.
struct Way {
  double latency_s = 0;
  double bytes_per_s = 1e9;
};

/// Between times that a worker steps aside for the threads that share its core, at least; as the
/// runtime's workers do (threads/cpu_worker.cpp).
inline constexpr std::int64_t step_aside_ns = 100'000;

/// What it took until workers began a task that had waited so long or longer, and less than what
/// the next one says: who has just begun to wait still looks, later its core is asleep, then
/// deeply.
struct WakingTimes {
  double waited_s = 0;
  std::vector<double> seconds;
};

/// A machine that a program is walked on in virtual time: nodes that are alike. What the runtime
/// itself costs there is part of it.
struct SimulatedMachine {
  std::string name;
  std::int32_t nodes = 1;
  std::int32_t nodes_per_host = 1;  ///< neighbours exchange messages by memory, not by the network
  [[nodiscard]] bool are_neighbours(NodeId a, NodeId b) const {
    return a.value() / nodes_per_host == b.value() / nodes_per_host;
  }
  std::int32_t cpu_workers = 1;  ///< of each node
  [[nodiscard]] std::int32_t workers_on_host() const {
    return cpu_workers * std::min(nodes, nodes_per_host);
  }
  std::int32_t devices = 0;  ///< of each node
  std::int32_t cores = 0;    ///< of a host, for all its nodes' threads; 0: one for each
  /// The progress threads have the cores of their workers: they act when a worker steps aside
  /// between two tasks, or has none (decision 009).
  [[nodiscard]] bool shares_cores() const {
    const std::int32_t busy = cpu_workers + devices + (nodes > 1 ? 1 : 0);
    return cores > 0 && nodes > 1 && std::min(nodes, nodes_per_host) * busy > cores;
  }
  /// More workers of a host than it has cores: each is simulated as if it had one.
  [[nodiscard]] bool lacks_cores_for_workers() const {
    return cores > 0 && workers_on_host() > cores;
  }
  /// By node, then worker, what it takes for a kernel over what that is said to take; empty: just
  /// that. Workers of a run whose cores others' programs have disturbed, say.
  std::vector<double> worker_paces;
  [[nodiscard]] double pace(NodeId node, std::int32_t worker) const {
    const std::int32_t number = node.value() * cpu_workers + worker;
    return worker_paces.empty() ? 1 : worker_paces[static_cast<std::size_t>(number)];
  }
  /// What a worker's first, second, ... task of a job takes over what later ones do: its core has
  /// had nothing to do before, and knows nothing of the tiles. Empty: no more.
  std::vector<double> first_tasks;
  [[nodiscard]] double start_pace(std::int64_t tasks_before) const {
    return tasks_before < std::ssize(first_tasks)
               ? first_tasks[static_cast<std::size_t>(tasks_before)]
               : 1;
  }
  std::int32_t device_streams = 2;  ///< of each device, with kernels side by side
  std::int32_t stream_depth = 3;    ///< kernels that a stream has been given at a time

  std::uint64_t device_memory_bytes = 0;  ///< of each; 0: as much as is of use

  Way to_device{10e-6, 12e9};
  Way to_host{10e-6, 12e9};
  Way to_peer{10e-6, 12e9};  ///< between two devices of a node
  Way network{2e-6, 10e9};   ///< each node's interface, in each direction
  Way memory{1e-6, 5e9};     ///< between nodes of one host: what the receiver's thread reads
  [[nodiscard]] const Way& way(NodeId from, NodeId to) const {
    return are_neighbours(from, to) ? memory : network;
  }
  /// Between places of a node.
  [[nodiscard]] const Way& way(PlaceId from, PlaceId to) const {
    if (from == host_place) return to_device;
    return to == host_place ? to_host : to_peer;
  }

  // ---- what the runtime's threads take ---------------------------------------------------------
  double append_s = 0.5e-6;  ///< of the generation thread, for an item
  double task_s = 1e-6;      ///< of a worker, between two tasks
  double wake_s = 5e-6;      ///< until a worker that waits begins a task
  std::vector<WakingTimes>
      wakings;              ///< instead, in the order of `waited_s`; empty: always `wake_s`
  double refill_s = 0;      ///< of the generation thread, from when a full window has room again
  double launch_s = 5e-6;   ///< of a device's manager, for a kernel
  double notice_s = 5e-6;   ///< until the manager knows that a kernel is over
  double message_s = 1e-6;  ///< of the progress thread, at each end of a message or a grant
  double read_s = 0;        ///< of the progress thread, for each tile of a neighbour that it reads,
                            ///< beside the reading: the call, and waking who waits for the tile
  double pause_s = 0;       ///< of the progress thread between looks, while all workers compute; 0:
                            ///< it looks without rest, where it has a core of its own
  double look_s = 13e-6;    ///< of a worker's core that it shares, each time that it steps aside,
                            ///< beside messages
  double job_s = 0;         ///< of a job, before its first task and behind its last one
  /// Of a worker that has waited so long; `drawn` says which one of those that may be.
  [[nodiscard]] double waking_s(double waited_s, std::uint64_t drawn) const {
    double seconds = wake_s;
    for (const WakingTimes& one : wakings) {
      if (one.waited_s > waited_s) break;
      if (!one.seconds.empty()) seconds = one.seconds[drawn % one.seconds.size()];
    }
    return seconds;
  }
  /// Of the progress thread, for a tile of a neighbour.
  [[nodiscard]] double reading_s(double bytes) const {
    return bytes > 0 ? bytes / memory.bytes_per_s + read_s : 0;
  }
};

}  // namespace heddle::replay
