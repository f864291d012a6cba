#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unistd.h>

#include "node-runtime/device/emulated/hardware_model.hpp"
#include "node-runtime/device/emulated/host_gpus.hpp"
#include "node-runtime/device/emulated/options.hpp"
#include "node-runtime/device/emulated/shared_arena.hpp"
#include "node-runtime/device/emulated/turns.hpp"
#include "node-runtime/device/pooled_device.hpp"

namespace heddle {

/// A device made of shared memory and threads (DESIGN D5). Addresses are real pointers, but only
/// operations on streams may dereference them. Each kernel runs its `emulated` definition on the
/// stream's thread.
class EmulatedDevice final : public PooledDevice {
 public:
  /// Throws Error(usage) for invalid options, Error(internal) if the memory cannot be reserved.
  /// Pages are allocated on first write.
  EmulatedDevice(std::int32_t index, const EmulatedOptions& options);
  EmulatedDevice(const EmulatedDevice&) = delete;
  EmulatedDevice& operator=(const EmulatedDevice&) = delete;
  ~EmulatedDevice() override;

  [[nodiscard]] bool runs(const Kernel& kernel) const override {
    return kernel.emulated != nullptr &&
           (!options().kernel_is_run || options().kernel_is_run(kernel));
  }
  [[nodiscard]] bool runs(const ByteKernel& kernel) const override {
    return kernel.emulated != nullptr;
  }
  [[nodiscard]] DeviceMemory allocate(std::size_t bytes) override;
  [[nodiscard]] std::unique_ptr<Stream> create_stream(
      StreamPriority priority = StreamPriority::normal, Notifier* notifier = nullptr) override;
  [[nodiscard]] std::unique_ptr<Event> create_event(EventTiming timing = EventTiming::on) override;
  [[nodiscard]] std::unique_ptr<Stream> adopt_stream(void* native) override;
  [[nodiscard]] bool can_access_peer(const Device& other) const override;
  [[nodiscard]] IpcMemoryHandle export_memory(const void* address) override;
  [[nodiscard]] DeviceMemory open_memory(const IpcMemoryHandle& handle) override;
  [[nodiscard]] IpcEventHandle export_event(const Event& event) override;
  [[nodiscard]] std::unique_ptr<Event> open_event(const IpcEventHandle& handle) override;

  /// Allocates device memory outside the pool, as another library would, until free_foreign().
  /// Throws Error(internal) when options().foreign_bytes are used up.
  [[nodiscard]] std::byte* allocate_foreign(std::size_t bytes);
  void free_foreign(const std::byte* address);

  /// How other processes of the host find this device. `gpu`: which of the host's GPUs it is.
  [[nodiscard]] EmulatedPresence presence(std::int32_t gpu) const;
  /// The device is GPU `gpu` of the host, whose links and turns it shares from now on, and has its
  /// identity. `sharer`: this device among those of the GPU, from 0. Before streams, events and
  /// handles.
  void join(std::shared_ptr<const HostGpus> host, std::int32_t gpu, std::int32_t sharer);

  // For its streams and events.

  struct Route {
    LinkPath links;
    std::string_view direction;
    bool is_mapped = false;  ///< one end is another process's memory
    bool is_between_devices = false;
  };
  /// Path of a copy on stream number `stream` of this device. Throws Error(internal) if it is not
  /// possible.
  [[nodiscard]] Route route(const Destination& to, const Source& from, const CopyShape& shape,
                            std::uint64_t stream);
  /// Path of what a kernel of this device reads or writes there.
  [[nodiscard]] LinkPath route(const KernelMemory& memory) const;

  [[nodiscard]] std::string label() const override;
  [[nodiscard]] const EmulatedOptions& options() const { return options_; }
  [[nodiscard]] KernelGate& gate() { return gate_; }
  /// Serialises kernels with simulated duration; a "byte" is a nanosecond.
  [[nodiscard]] const Link& kernel_turns() const { return kernel_turns_; }
  /// The turns of the processes that share the GPU.
  [[nodiscard]] EmulatedTurns& turns() { return turns_; }
  // Relaxed: the counters order no other memory.
  [[nodiscard]] std::uint64_t next_copy() {
    return copies_.fetch_add(1, std::memory_order_relaxed) + 1;
  }
  [[nodiscard]] std::uint64_t next_launch() {
    return launches_.fetch_add(1, std::memory_order_relaxed) + 1;
  }

 private:
  /// Offset of an address in the arena: the segment, and behind it memory of others.
  [[nodiscard]] std::uint64_t offset_of(const void* address) const {
    return Segment{arena_->data(), 0}.offset_of(address);
  }
  void discard(const DeviceMemory& memory) override;
  void unmap(const std::byte* address) override;
  [[nodiscard]] void* take_host(std::size_t bytes) override;
  void return_host(void* address) override;
  void pin(void* address, std::size_t bytes) override;
  [[nodiscard]] std::optional<Foreign> find_foreign(const void* address) const override;

  /// A GPU as copies see it; without words: it is not known which one it is.
  struct End {
    GpuWords* words = nullptr;
    GpuWords* switch_words = nullptr;
    std::int32_t pci_switch = 0;
    friend bool operator==(const End&, const End&) = default;
  };
  struct Opened {
    Mapping mapping;
    std::uint64_t bytes;
    End end;
  };
  [[nodiscard]] End end_of(const HostGpus::Gpu* gpu) const;
  /// The GPU that memory of `device` is on: its own, or one whose memory it has opened.
  [[nodiscard]] static End end_of(const Device& device, const void* address);
  [[nodiscard]] Link link(GpuWords& words, GpuWords::Line line) const;
  [[nodiscard]] LinkPath path_to_host(bool leaves) const;
  [[nodiscard]] LinkPath path_between(const End& from, const End& to) const;

  const EmulatedOptions options_;
  const std::int64_t process_ = ::getpid();
  std::shared_ptr<SharedArena> arena_;
  std::shared_ptr<const HostGpus> host_;  ///< null: it shares nothing
  End own_;
  KernelGate gate_;
  std::atomic<std::int64_t> kernels_end_ns_{0};
  Link kernel_turns_{1e9, kernels_end_ns_};
  EmulatedTurns turns_;
  std::atomic<std::uint64_t> copies_{0};
  std::atomic<std::uint64_t> launches_{0};
  std::map<const std::byte*, Opened> mappings_;  ///< by address; under `mutex_`
  BlockAllocator foreign_;                       ///< behind the pool; under `mutex_`
};

}  // namespace heddle
