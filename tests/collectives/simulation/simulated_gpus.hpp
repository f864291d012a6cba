#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "node-runtime/device/device.hpp"

namespace heddle::testing {

class SimulatedDevice;
class SimulatedStream;

/// Devices of simulated nodes, on one thread: operations of their streams run when a seed says so.
/// Those of one stream run in order, those of different streams in any order; a copy moves its
/// bytes in several steps, and a record is complete some steps before its owner hears of it.
///
/// The emulated backend cannot take this place: each of its streams is a thread, whose time the
/// system chooses.
///
/// Nodes may have devices of one identity, as if they shared a GPU. Memory that one node's device
/// has allocated is opened by another node's at the address that it has: they are one process.
///
/// Lifetime: outlives its devices. Thread: one.
class SimulatedGpus {
 public:
  struct Options {
    /// 1 of so many mappings of another node's memory is refused; 0: none.
    std::uint32_t refused_mappings = 0;
    /// Most steps leave out the streams of this device, by its number; -1: none.
    std::int32_t slow_device = -1;
  };
  SimulatedGpus(std::uint64_t seed, const Options& options);
  SimulatedGpus(const SimulatedGpus&) = delete;
  SimulatedGpus& operator=(const SimulatedGpus&) = delete;
  ~SimulatedGpus();

  /// Of `bytes` of memory, which is there when it is written to. `index`: among those of its node.
  [[nodiscard]] std::unique_ptr<Device> make_device(std::int32_t index, const DeviceUuid& uuid,
                                                    std::size_t bytes);

  /// An operation can go on.
  [[nodiscard]] bool can_step() const;
  /// One does, if there is one.
  void step();
  /// The next copy or kernel of `device` fails, and with it its stream.
  void fail_next(const Device& device) { failing_ = &device; }
  /// fail_next() has been called, and an operation has failed.
  [[nodiscard]] bool has_failed() const { return has_failed_; }
  /// From now on memory may be freed that others have open: their node is lost.
  void allow_open_memory() { may_free_open_ = true; }
  /// What was done wrong to the devices; empty: nothing.
  [[nodiscard]] const std::string& defects() const { return defects_; }

 private:
  friend class SimulatedDevice;
  friend class SimulatedEvent;
  friend class SimulatedStream;

  [[nodiscard]] std::size_t below(std::size_t bound) { return random_() % bound; }
  /// An owner asks for what is not there yet. Whoever asks again and again would do so until it is,
  /// on a thread that nothing else can run on: some time passes.
  void asked_in_vain();
  /// Whether the operation that `device` begins is the one to fail.
  [[nodiscard]] bool fails(const Device& device);
  /// The memory is freed.
  void freed(const DeviceMemory& memory);

  struct Opened {
    const std::byte* address = nullptr;
    std::size_t bytes = 0;
    const Device* by = nullptr;
  };

  std::mt19937_64 random_;
  const Options options_;
  std::vector<SimulatedDevice*> devices_;
  std::vector<SimulatedStream*> busy_;  ///< streams with operations
  std::vector<Opened> opened_;
  const Device* failing_ = nullptr;
  bool has_failed_ = false;
  bool may_free_open_ = false;
  std::int64_t questions_ = 0;  ///< asked in vain since the last step
  std::int32_t made_ = 0;       ///< devices
  std::string defects_;
};

}  // namespace heddle::testing
