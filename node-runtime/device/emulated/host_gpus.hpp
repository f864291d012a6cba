#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "node-runtime/device/emulated/hardware_model.hpp"
#include "node-runtime/device/emulated/options.hpp"
#include "node-runtime/device/emulated/shared_arena.hpp"

namespace heddle {

/// Names a process's emulated device for others of its host.
struct EmulatedPresence {
  std::int64_t process = 0;
  std::int64_t fd = -1;  ///< of the device's arena, in that process
  DeviceUuid uuid;       ///< of the arena
  std::int64_t gpu = 0;  ///< its number among the GPUs of the host

  static constexpr std::size_t words = 5;
  [[nodiscard]] std::array<std::uint64_t, words> to_words() const;
  [[nodiscard]] static EmulatedPresence from_words(std::span<const std::uint64_t, words> from);
};

/// The emulated GPUs of a host with the words that their processes share. Devices of one GPU have
/// the identity and the words of the first one.
///
/// Immutable; any thread.
class HostGpus {
 public:
  struct Gpu {
    std::int32_t number = 0;
    DeviceUuid uuid;
    GpuWords* words = nullptr;
    std::int32_t sharers = 1;
  };

  /// Maps the words of all GPUs. `of_host`: all devices of the host, the same order in all its
  /// processes. Throws Error(communication) where the system refuses.
  HostGpus(std::span<const EmulatedPresence> of_host, const EmulatedPlaces& places);

  /// Null: none.
  [[nodiscard]] const Gpu* find(std::int64_t number) const;
  [[nodiscard]] const Gpu* find(const DeviceUuid& uuid) const;
  /// The GPU whose words are those of the same switch.
  [[nodiscard]] const Gpu& first_of_switch(const Gpu& gpu) const;

 private:
  EmulatedPlaces places_;
  std::vector<std::unique_ptr<Mapping>> mappings_;
  std::vector<Gpu> gpus_;
};

}  // namespace heddle
