#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "node-runtime/device/device.hpp"
#include "node-runtime/scheduling/reader_tree.hpp"
#include "node-runtime/threads/host_executor.hpp"
#include "node-runtime/threads/lending.hpp"
#include "node-runtime/threads/path_priorities.hpp"

namespace heddle {

enum class WaitPolicy : std::uint8_t { adaptive, spin, park };

/// For tests: each message waits a random time, up to `delay_us_max`, before it is posted.
struct MessageFaults {
  std::uint64_t delay_us_max = 0;
  std::uint64_t seed = 0;
};

struct EngineOptions {
  NodeId node;
  std::int32_t node_count = 1;
  std::int32_t cpu_workers = 1;
  /// How far the caches of two CPU workers are from each other, cpu_workers numbers for each;
  /// empty: all alike.
  std::vector<std::uint8_t> worker_distances;
  std::vector<Device*> devices;
  std::int32_t window = 8192;  ///< items of one job
  /// Most blocks of a job's pool beyond the planned minimum; no limit by default.
  std::int32_t extra_blocks_max = std::numeric_limits<std::int32_t>::max();
  WaitPolicy wait = WaitPolicy::adaptive;
  /// Fewer usable cores than computing threads on this host: waiting threads go to sleep at once.
  bool oversubscribed = false;
  /// This node's threads have cores that no other node on the host uses: what an idle worker leaves
  /// is free for others.
  bool has_own_cores = false;
  double watchdog_seconds = 60;
  double silence_seconds = 8;  ///< after which another node is lost
  /// What a CPU worker computes in a second, measured when it is asked for: the watchdog's measure
  /// of kernels that do not end (KernelWatch). Empty: it lets them run.
  std::function<double()> flops_per_second;
  /// Compute streams of each device, beside the one for urgent kernels.
  std::int32_t device_streams = 2;
  /// The host of each node, by a number from 0.
  std::vector<std::int32_t> hosts{0};
  ReaderWay readers = ReaderWay::automatic;
  /// Set: tasks have priorities by the longest way to the job's end (path_priorities.hpp), instead
  /// of those that programs give.
  std::optional<TaskCosts> path_costs;
  /// Set: CPU workers run tasks of devices' places that they would finish first.
  std::optional<LendingOptions> lending;
  MessageFaults faults;
  HostExecutor::WorkerSeconds worker_seconds;
};

}  // namespace heddle
