#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/cuda/product_choice.hpp"
#include "kernels/kernel.hpp"

namespace heddle {

/// How long one kernel takes on tiles of one shape.
struct KernelTime {
  const Kernel* kernel = nullptr;
  std::int64_t rows = 0;     ///< of the main output
  std::int64_t columns = 0;  ///< tile, or width of a panel
  std::int64_t inner = 0;    ///< QR: reflectors of a block; 0 for kernels without blocks
  double microseconds = 0;   ///< until the next one of its kind is done, on one place

  friend bool operator==(const KernelTime&, const KernelTime&) = default;
};
using KernelTimes = std::vector<KernelTime>;

/// On the workers of a node.
struct CpuMeasurement {
  std::int32_t workers = 1;
  KernelTimes one_worker;   ///< the others idle
  KernelTimes all_workers;  ///< each of them, all busy: what a factorization sees

  friend bool operator==(const CpuMeasurement&, const CpuMeasurement&) = default;
};

/// 10^9 bytes per second of large copies.
struct CopyRates {
  double to_device = 0;
  double to_host = 0;
  double both_ways = 0;              ///< the sum, both at once
  std::optional<double> to_peer{};   ///< between two devices that reach each other
  std::optional<double> within{};    ///< from the device's memory to its memory
  std::optional<double> packing{};   ///< of a part of a matrix, by the device, likewise
  std::optional<double> short_us{};  ///< a copy of some bytes, until the host has seen its end

  friend bool operator==(const CopyRates&, const CopyRates&) = default;
};

/// Copies between ranks of a host and a buffer that they share on one of their devices: how many
/// are best staged (decisions/037).
struct StagedCopies {
  std::string operation;    ///< broadcast, reduce, all_reduce
  std::int32_t ranks = 2;   ///< of which all but one copy
  std::int64_t bytes = 0;   ///< of a rank's elements
  std::int32_t staged = 0;  ///< copies in each direction

  friend bool operator==(const StagedCopies&, const StagedCopies&) = default;
};

/// On one kind of device, alone.
struct DeviceMeasurement {
  std::string backend;       ///< cuda, emulated
  std::string name;          ///< the GPU's; "emulated"
  std::string library;       ///< that products ran on, with its version; empty for emulated devices
  std::int32_t streams = 2;  ///< that held the highest rate of products, side by side
  KernelTimes kernels;       ///< products on that many streams
  kernel::cuda::ProductChoices products;  ///< empty: not measured
  CopyRates copies;
  std::vector<StagedCopies> group_copies{};  ///< empty: not measured

  friend bool operator==(const DeviceMeasurement&, const DeviceMeasurement&) = default;
};

/// Between two nodes, from host memory to host memory.
struct MessageMeasurement {
  double latency_us = 0;  ///< of a short message over MPI, one way
  double rate = 0;        ///< of long ones, one way, 10^9 bytes per second

  /// Between endpoints of one host that share memory; absent where they do not.
  struct Host {
    double note_us = 0;  ///< of a short message, one way
    double packing = 0;  ///< of a part of a matrix by a core, into memory that others read
    friend bool operator==(const Host&, const Host&) = default;
  };
  std::optional<Host> host{};
  /// A core's reading of another process's memory; absent where the system does not let it.
  struct Reading {
    double short_us = 0;
    double rate = 0;
    friend bool operator==(const Reading&, const Reading&) = default;
  };
  std::optional<Reading> reading{};

  friend bool operator==(const MessageMeasurement&, const MessageMeasurement&) = default;
};

/// What `heddle tune` found out; what it did not measure is absent.
struct Measurements {
  std::optional<CpuMeasurement> cpu;
  std::vector<DeviceMeasurement> devices;  ///< one for each kind
  std::optional<MessageMeasurement> messages;

  [[nodiscard]] bool empty() const { return !cpu && devices.empty() && !messages; }
  /// The measurement of that kind of device; null: the kind was not measured.
  [[nodiscard]] const DeviceMeasurement* device(const std::string& backend,
                                                const std::string& name) const;

  friend bool operator==(const Measurements&, const Measurements&) = default;
};

/// `newer`, and of `older` what `newer` lacks: another kind of device, copies of groups, messages.
[[nodiscard]] Measurements merge(Measurements newer, const Measurements& older);

}  // namespace heddle
