#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/index.hpp"

namespace heddle::replay {

/// A transfer path: latency and rate.
struct Way {
  double latency_s = 0;
  double bytes_per_s = 1e9;
};

/// Least time between two yields of a worker to the threads that share its core, as in the runtime
/// (threads/cpu_worker.cpp).
inline constexpr std::int64_t step_aside_ns = 100'000;

/// Wake-up time of workers that waited at least `waited_s`, up to the next entry: a worker first
/// spins, then its core sleeps, later deeply.
struct WakingTimes {
  double waited_s = 0;
  std::vector<double> seconds;
};

/// Which nodes are on which host.
enum class HostOrder : std::uint8_t {
  consecutive,  ///< node i on host i / nodes_per_host
  round,        ///< node i on host i % host_count()
  listed        ///< node i on hosts[i]
};

/// Who shares a network interface.
enum class InterfaceOwner : std::uint8_t { node, host };

/// A machine with equal nodes on which a program runs in virtual time, including the costs of the
/// runtime.
struct SimulatedMachine {
  std::string name;
  std::int32_t nodes = 1;
  std::int32_t nodes_per_host = 1;  ///< nodes of a host exchange messages through memory
  HostOrder host_order = HostOrder::consecutive;
  /// By node: 0 to host_count() - 1, each nodes_per_host times; empty unless they are listed.
  std::vector<std::int32_t> hosts;
  [[nodiscard]] std::int32_t host_count() const {
    return (nodes + nodes_per_host - 1) / nodes_per_host;
  }
  [[nodiscard]] std::int32_t host_of(NodeId node) const {
    switch (host_order) {
      case HostOrder::consecutive:
        break;
      case HostOrder::round:
        return node.value() % host_count();
      case HostOrder::listed:
        return hosts[static_cast<std::size_t>(node.value())];
    }
    return node.value() / nodes_per_host;
  }
  [[nodiscard]] bool are_neighbours(NodeId a, NodeId b) const { return host_of(a) == host_of(b); }
  InterfaceOwner interface_owner = InterfaceOwner::node;
  [[nodiscard]] std::int32_t interface_count() const {
    return interface_owner == InterfaceOwner::host ? host_count() : nodes;
  }
  /// The number of a node's network interface.
  [[nodiscard]] std::int32_t interface_of(NodeId node) const {
    return interface_owner == InterfaceOwner::host ? host_of(node) : node.value();
  }
  std::int32_t cpu_workers = 1;  ///< per node
  [[nodiscard]] std::int32_t workers_on_host() const {
    return cpu_workers * std::min(nodes, nodes_per_host);
  }
  std::int32_t devices = 0;  ///< per node
  std::int32_t cores = 0;    ///< of a host, for all threads of its nodes; 0: one per thread
  /// Progress threads share the workers' cores: they run when a worker yields between two tasks, or
  /// is idle (decision 009).
  [[nodiscard]] bool shares_cores() const {
    const std::int32_t busy = cpu_workers + devices + (nodes > 1 ? 1 : 0);
    return cores > 0 && nodes > 1 && std::min(nodes, nodes_per_host) * busy > cores;
  }
  /// More workers on a host than cores; each is simulated as if it had one.
  [[nodiscard]] bool lacks_cores_for_workers() const {
    return cores > 0 && workers_on_host() > cores;
  }
  /// By node, then worker: kernel time relative to the nominal time; empty: 1. For example, workers
  /// disturbed by other programs.
  std::vector<double> worker_paces;
  [[nodiscard]] double pace(NodeId node, std::int32_t worker) const {
    const std::int32_t number = node.value() * cpu_workers + worker;
    return worker_paces.empty() ? 1 : worker_paces[static_cast<std::size_t>(number)];
  }
  /// Extra factor of a worker's first, second, ... task of a job: idle core, cold caches. Empty: 1.
  std::vector<double> first_tasks;
  [[nodiscard]] double start_pace(std::int64_t tasks_before) const {
    return tasks_before < std::ssize(first_tasks)
               ? first_tasks[static_cast<std::size_t>(tasks_before)]
               : 1;
  }
  std::int32_t device_streams = 2;  ///< per device, with concurrent kernels
  std::int32_t stream_depth = 3;    ///< kernels queued in a stream

  std::uint64_t device_memory_bytes = 0;  ///< per device; 0: unlimited

  Way to_device{10e-6, 12e9};
  Way to_host{10e-6, 12e9};
  Way to_peer{10e-6, 12e9};  ///< between two devices of a host
  Way network{2e-6, 10e9};   ///< each network interface, in each direction
  Way memory{1e-6, 5e9};     ///< between nodes of a host: read by the receiver's thread, unless
                             ///< a device copies it (DirectCopies)
  [[nodiscard]] const Way& way(NodeId from, NodeId to) const {
    return are_neighbours(from, to) ? memory : network;
  }
  /// Between places of a node.
  [[nodiscard]] const Way& way(PlaceId from, PlaceId to) const {
    if (from == host_place) return to_device;
    return to == host_place ? to_host : to_peer;
  }

  /// Between any two places.
  [[nodiscard]] const Way& way(Location from, Location to) const {
    if (from.node == to.node) return way(from.place, to.place);
    const bool direct = from.place != host_place && to.place != host_place;
    return direct && are_neighbours(from.node, to.node) ? to_peer : way(from.node, to.node);
  }

  // ---- what the runtime's threads take ---------------------------------------------------------
  double append_s = 0.5e-6;  ///< generation thread, per item
  double task_s = 1e-6;      ///< worker, between two tasks
  double wake_s = 5e-6;      ///< until a waiting worker begins a task
  std::vector<WakingTimes>
      wakings;              ///< instead, in the order of `waited_s`; empty: always `wake_s`
  double refill_s = 0;      ///< generation thread, after a full window has room again
  double launch_s = 5e-6;   ///< device manager, per kernel
  double notice_s = 5e-6;   ///< until the manager notices a kernel's end
  double message_s = 1e-6;  ///< progress thread, at each end of a message or grant
  double read_s =
      0;  ///< progress thread, per tile read from a neighbour: call and wake-up, without the copy
  double pause_s = 0;     ///< progress thread, between polls while all workers compute; 0: polls
                          ///< continuously, on its own core
  double look_s = 13e-6;  ///< cost of a yield of a worker that shares its core, without messages
  double job_s = 0;       ///< per job, before its first and after its last task
  /// For a worker that waited this long; `drawn` selects one of the possible times.
  [[nodiscard]] double waking_s(double waited_s, std::uint64_t drawn) const {
    double seconds = wake_s;
    for (const WakingTimes& one : wakings) {
      if (one.waited_s > waited_s) break;
      if (!one.seconds.empty()) seconds = one.seconds[drawn % one.seconds.size()];
    }
    return seconds;
  }
  /// Progress thread, for a tile of a neighbour: where one side is a device's, no faster than its
  /// link.
  [[nodiscard]] double reading_s(double bytes, PlaceId from = host_place,
                                 PlaceId to = host_place) const {
    if (bytes <= 0) return 0;
    double rate = memory.bytes_per_s;
    if (from != to) rate = std::min(rate, way(from, to).bytes_per_s);
    return bytes / rate + read_s;
  }
};

}  // namespace heddle::replay
