#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "apps/tuning/operands.hpp"
#include "node-runtime/device/device.hpp"

namespace heddle::tuning {

/// A matrix in a device's memory, without gaps.
class DeviceTile {
 public:
  DeviceTile(Device& device, std::int64_t rows, std::int64_t columns)
      : memory_(device, static_cast<std::size_t>(rows * columns) * sizeof(double)),
        rows_(rows),
        columns_(columns) {}

  [[nodiscard]] TileView view() const {
    return {reinterpret_cast<double*>(memory_.address()), rows_, columns_, rows_};
  }
  [[nodiscard]] std::size_t bytes() const { return memory_.bytes(); }

 private:
  DeviceBuffer memory_;
  std::int64_t rows_;
  std::int64_t columns_;
};

/// Host memory that copies are fastest with.
class HostMemory {
 public:
  HostMemory(Device& device, std::size_t bytes)
      : device_(device), address_(device.allocate_host(bytes)) {}
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;
  ~HostMemory() { device_.free_host(address_); }

  [[nodiscard]] std::byte* bytes() const { return static_cast<std::byte*>(address_); }
  [[nodiscard]] double* doubles() const { return static_cast<double*>(address_); }

 private:
  Device& device_;
  void* address_;
};

/// What runs on the device: a kernel on tiles, some of which are copied anew from their partners
/// before each run; that is not timed.
struct DeviceCase {
  const Kernel* kernel = nullptr;
  KernelParameters parameters;
  std::vector<TileView> tiles;
  std::vector<std::pair<const DeviceTile*, const DeviceTile*>> restored;  ///< to, from
};

/// Times kernels on one device through the Device interface, of whatever backend. One thread.
class DeviceBench {
 public:
  static constexpr std::int32_t streams_max = 3;

  DeviceBench(Device& device, const NormalValues& normal);

  [[nodiscard]] Device& device() { return device_; }

  /// Fills the tile and waits.
  void fill_normal(const DeviceTile& tile);
  /// The same with a diagonal that makes its lower part a positive definite matrix.
  void fill_definite(const DeviceTile& tile);

  /// Runs the case once and waits. Throws Error(internal) if its info is not zero.
  void run(const DeviceCase& once);

  /// Median seconds of the case, with nothing else on the device: of runs for about `seconds`, at
  /// least three.
  [[nodiscard]] double seconds_of(const DeviceCase& timed, double seconds);

  /// Seconds of C := C - A B^T with square tiles, from one product's end on any of `streams`
  /// streams to the next one's. Runs for `seconds`, of which the second half counts: a long run
  /// meets the power limit.
  [[nodiscard]] double product_seconds(std::int64_t tile, std::int32_t streams, double seconds);

  /// Bytes of device memory that product_seconds() takes.
  [[nodiscard]] static std::uint64_t product_bytes(std::int64_t tile);

 private:
  struct Operands;
  struct Timed {
    std::unique_ptr<Event> begin;
    std::unique_ptr<Event> end;
  };

  void copy_within(const DeviceTile& to, const DeviceTile& from);
  void launch(std::size_t stream, const DeviceCase& once);
  void expect_success(const DeviceCase& once) const;

  Device& device_;
  HostMemory normal_;
  std::size_t normal_bytes_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<Timed> events_;
  std::array<std::int64_t, streams_max> infos_{};  ///< by stream: several run at a time
};

}  // namespace heddle::tuning
