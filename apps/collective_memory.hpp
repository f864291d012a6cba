#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "node-runtime/device/device.hpp"

/// Memory that the bench of collectives measures on.
namespace heddle {

/// Doubles that a program writes and checks on the host, and that operations find there or on a
/// device.
class CollectiveMemory {
 public:
  /// `image` outlives this object. `device`: null for the host.
  CollectiveMemory(std::span<double> image, Device* device);

  /// Where operations find them.
  [[nodiscard]] double* address() const;
  [[nodiscard]] bool is_on_device() const { return memory_.has_value(); }
  [[nodiscard]] std::span<double> image() const { return image_; }
  /// Brings the image there, and what is there into the image; blocking.
  void bring_in();
  void bring_back();

 private:
  void copy(Destination to, Source from);

  std::span<double> image_;
  Device* device_;
  std::optional<DeviceBuffer> memory_;
  std::unique_ptr<Stream> stream_;
};

/// How programs do collectives on a device's memory without heddle: from there to page-locked host
/// memory, MPI's operation on that, and back.
class StagedMemory {
 public:
  /// As many doubles of input and of output.
  StagedMemory(Device& device, std::size_t doubles);
  ~StagedMemory();
  StagedMemory(const StagedMemory&) = delete;
  StagedMemory& operator=(const StagedMemory&) = delete;

  [[nodiscard]] double* input() const { return locked_; }
  [[nodiscard]] double* output() const { return locked_ + doubles_; }
  /// The first doubles of the input come to the host, and of the output to the device; blocking.
  void bring_input(std::int64_t doubles);
  void bring_output(std::int64_t doubles);

 private:
  Device& device_;
  std::size_t doubles_;
  DeviceBuffer memory_;
  double* locked_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace heddle
