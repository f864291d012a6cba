#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "node-runtime/device/block_allocator.hpp"
#include "node-runtime/device/device.hpp"
#include "node-runtime/device/emulated/hardware_model.hpp"
#include "node-runtime/device/emulated/options.hpp"
#include "node-runtime/device/emulated/shared_arena.hpp"

namespace heddle {

/// A device that is made of shared memory and threads (DESIGN D5). Addresses are real pointers into
/// its memory, but only operations on streams may follow them. Every kernel runs its `emulated`
/// definition on the thread of its stream.
class EmulatedDevice final : public Device {
 public:
  /// Throws Error(usage) when an option makes no sense, Error(internal) when the memory cannot be
  /// reserved. Pages are taken from the machine when they are first written.
  EmulatedDevice(std::int32_t index, const EmulatedOptions& options);
  EmulatedDevice(const EmulatedDevice&) = delete;
  EmulatedDevice& operator=(const EmulatedDevice&) = delete;
  ~EmulatedDevice() override;

  [[nodiscard]] const DeviceInfo& info() const override { return info_; }
  [[nodiscard]] bool runs(const Kernel& kernel) const override {
    return kernel.emulated != nullptr;
  }
  [[nodiscard]] std::uint64_t memory_available() const override;
  [[nodiscard]] DeviceMemory allocate(std::size_t bytes) override;
  void free(const DeviceMemory& memory) override;
  [[nodiscard]] void* allocate_host(std::size_t bytes) override;
  void free_host(void* address) override;
  void register_host(void* address, std::size_t bytes) override;
  void unregister_host(void* address) override;
  [[nodiscard]] std::unique_ptr<Stream> create_stream(
      StreamPriority priority = StreamPriority::normal, Notifier* notifier = nullptr) override;
  [[nodiscard]] std::unique_ptr<Event> create_event() override;
  [[nodiscard]] bool can_access_peer(const Device& other) const override;
  [[nodiscard]] IpcMemoryHandle export_memory(const void* address) override;
  [[nodiscard]] DeviceMemory open_memory(const IpcMemoryHandle& handle) override;
  void close_memory(const DeviceMemory& memory) override;
  [[nodiscard]] IpcEventHandle export_event(const Event& event) override;
  [[nodiscard]] std::unique_ptr<Event> open_event(const IpcEventHandle& handle) override;

  // For its streams and events.

  struct Route {
    Link* link = nullptr;
    std::string_view direction;
  };
  /// How a copy on stream number `stream` of this device goes. Throws Error(internal) when it
  /// cannot.
  [[nodiscard]] Route route(const Destination& to, const Source& from, const CopyShape& shape,
                            std::uint64_t stream);

  enum class MemoryOrigin : std::uint8_t { own, opened };
  /// Whose memory the range is; nullopt unless it lies within one allocation of this device or one
  /// mapping that it opened.
  [[nodiscard]] std::optional<MemoryOrigin> origin_of(const void* address, std::size_t bytes) const;

  [[nodiscard]] const EmulatedOptions& options() const { return options_; }
  [[nodiscard]] KernelGate& gate() { return gate_; }
  // Relaxed: the counters order nothing.
  [[nodiscard]] std::uint64_t next_copy() {
    return copies_.fetch_add(1, std::memory_order_relaxed) + 1;
  }
  [[nodiscard]] std::uint64_t next_launch() {
    return launches_.fetch_add(1, std::memory_order_relaxed) + 1;
  }
  void stream_destroyed() { streams_.fetch_sub(1, std::memory_order_relaxed); }
  void event_created() { events_.fetch_add(1, std::memory_order_relaxed); }
  void event_destroyed() { events_.fetch_sub(1, std::memory_order_relaxed); }

 private:
  struct Opened {
    Mapping mapping;
    std::size_t bytes;
  };

  [[nodiscard]] std::string label() const;
  /// The address is in this device's memory, allocated or not.
  [[nodiscard]] bool is_own(const void* address) const;

  const EmulatedOptions options_;
  DeviceInfo info_;
  const int exceptions_at_start_;
  std::shared_ptr<SharedArena> arena_;
  Link host_to_device_;
  Link device_to_host_;
  Link peer_;
  Link local_;
  KernelGate gate_;
  std::atomic<std::uint64_t> copies_{0};
  std::atomic<std::uint64_t> launches_{0};
  std::atomic<std::uint64_t> streams_created_{0};
  std::atomic<std::uint32_t> streams_{0};  ///< alive
  std::atomic<std::uint32_t> events_{0};   ///< alive, created or opened

  mutable std::mutex mutex_;  ///< of what follows
  BlockAllocator allocator_;
  std::map<const std::byte*, Opened> opened_;  ///< by address
  std::map<void*, std::size_t> host_;
  std::map<void*, std::size_t> registered_;  ///< by register_host()
};

}  // namespace heddle
