#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "kernels/kernel.hpp"

namespace heddle {

/// What goes wrong on purpose on one emulated device. Copies and launches are numbered from 1 in
/// the order in which they are queued on the device; 0 names none.
struct FaultPlan {
  /// allocate() fails when more than this would be allocated, as if others used the rest.
  std::optional<std::uint64_t> allocation_bytes_max;
  std::uint64_t fail_copy = 0;    ///< this copy fails
  std::uint64_t fail_kernel = 0;  ///< this launch fails
  std::uint64_t slow_copy = 0;    ///< this copy starts `slow_copy_us` late
  std::uint64_t slow_copy_us = 0;
  bool refuse_mappings = false;  ///< open_memory() and open_event() are refused
  bool refuse_peers = false;     ///< can_access_peer() is false
  bool refuse_sharing = false;   ///< adopted memory is not exported
  bool stall_mappings = false;   ///< copies of opened memory do not start until they are abandoned
  /// Each copy and launch starts late by a random time from 0 to this, drawn from `seed`, so that
  /// streams drift against each other and orders that nothing enforces do not hold by luck.
  std::uint64_t delay_us_max = 0;
  std::uint64_t seed = 0;
};

/// The hardware that an emulated device stands for. Rates are bytes per second, 0: as fast as
/// memcpy. Copies of one direction share their link one after the other.
struct EmulatedOptions {
  std::uint64_t memory_bytes = std::uint64_t{1} << 30;
  double host_to_device_rate = 0;
  double device_to_host_rate = 0;
  double peer_rate = 0;
  double local_rate = 0;       ///< within the device
  double latency_us = 0;       ///< of each copy and launch
  double kernel_slowdown = 1;  ///< a kernel lasts this many times as long as it computes
  /// Set: tile kernels compute nothing, pass one after the other and last so many seconds each, for
  /// a device that is faster than the cores that emulate it. Any thread.
  std::function<double(const Kernel&, const KernelArguments&)> kernel_seconds = {};
  /// Set: of the tile kernels the device runs these alone. Any thread.
  std::function<bool(const Kernel&)> kernel_is_run = {};
  std::uint32_t concurrent_kernels = 0;  ///< over all streams; 0: as many as there are streams
  std::uint32_t queue_capacity = 1024;   ///< unfinished operations of one stream
  std::uint32_t stream_capacity = 64;    ///< streams, and so threads
  std::uint32_t event_capacity = 4096;   ///< events
  std::uint64_t foreign_bytes = 0;       ///< for allocate_foreign(), beside `memory_bytes`
  /// Fills new memory with bytes 0xFF (a NaN in every double), so that a kernel which reads what
  /// nobody wrote shows it. Touches all of the memory.
  bool fill_allocations = false;
  FaultPlan faults;
};

}  // namespace heddle
