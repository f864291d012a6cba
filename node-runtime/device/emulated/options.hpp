#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "kernels/kernel.hpp"

namespace heddle {

/// Injected faults of an emulated device. Copies and launches are numbered from 1 in the order in
/// which they are queued on the device; 0: none.
struct FaultPlan {
  /// allocate() fails above this total, as if others used the rest.
  std::optional<std::uint64_t> allocation_bytes_max;
  /// An allocation of more than this throws Error(usage), though memory_available() promises it: as
  /// if another process had taken the memory since the device was opened.
  std::optional<std::uint64_t> taken_beyond;
  std::uint64_t fail_copy = 0;    ///< this copy fails
  std::uint64_t fail_kernel = 0;  ///< this launch fails
  std::uint64_t slow_copy = 0;    ///< this copy starts `slow_copy_us` late
  std::uint64_t slow_copy_us = 0;
  bool refuse_mappings = false;  ///< open_memory() and open_event() fail
  bool refuse_peers = false;     ///< can_access_peer() is false
  bool refuse_sharing = false;   ///< export_memory() of adopted memory fails
  bool stall_mappings = false;   ///< copies of opened memory hang until abandoned
  /// Each copy and launch is delayed by a random time in [0, delay_us_max] drawn from `seed`, so
  /// that missing dependencies show.
  std::uint64_t delay_us_max = 0;
  std::uint64_t seed = 0;
};

/// Where emulated GPUs of a host are: GPU g on PCI switch g / devices_per_switch, and that one on
/// socket switch / switches_per_socket. 0: all are on one.
struct EmulatedPlaces {
  std::int32_t devices_per_switch = 0;
  std::int32_t switches_per_socket = 0;

  [[nodiscard]] std::int32_t pci_switch(std::int32_t gpu) const {
    return devices_per_switch == 0 ? 0 : gpu / devices_per_switch;
  }
  [[nodiscard]] std::int32_t socket(std::int32_t gpu) const {
    return switches_per_socket == 0 ? 0 : pci_switch(gpu) / switches_per_socket;
  }
};

/// Hardware that an emulated device models. Rates are in bytes per second; 0: as fast as memcpy.
/// Copies in one direction share a link.
struct EmulatedOptions {
  std::uint64_t memory_bytes = std::uint64_t{1} << 30;
  double host_to_device_rate = 0;
  double device_to_host_rate = 0;
  double peer_rate = 0;        ///< of each one's lane, out and in: to other devices and the host
  double peer_latency_us = 0;  ///< per copy between devices, beside latency_us
  /// What the devices of a PCI switch share towards other switches, each way.
  double switch_rate = 0;
  double local_rate = 0;  ///< within the device
  double latency_us = 0;  ///< per copy and launch
  EmulatedPlaces places = {};
  /// Until a GPU that processes share turns from one's work to another one's; 0: they work side by
  /// side, as with the Multi-Process Service.
  double turn_us = 0;
  double kernel_slowdown = 1;  ///< duration of a kernel / its computing time
  /// If set: tile kernels compute nothing, run one after the other, and last this many seconds
  /// each; models a device faster than the cores that emulate it. Called by any thread.
  std::function<double(const Kernel&, const KernelArguments&)> kernel_seconds = {};
  /// If set: the tile kernels that the device runs. Called by any thread.
  std::function<bool(const Kernel&)> kernel_is_run = {};
  std::uint32_t concurrent_kernels = 0;  ///< over all streams; 0: no limit
  std::uint32_t queue_capacity = 1024;   ///< unfinished operations of one stream
  std::uint32_t stream_capacity = 64;    ///< streams (a thread each)
  std::uint32_t event_capacity = 4096;   ///< events
  std::uint64_t foreign_bytes = 0;       ///< for allocate_foreign(), in addition to `memory_bytes`
  /// Fills new memory with bytes 0xFF (NaN in every double), which exposes reads of unwritten
  /// memory. Touches all of the memory.
  bool fill_allocations = false;
  FaultPlan faults;
};

}  // namespace heddle
