#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "node-runtime/device/block_allocator.hpp"
#include "node-runtime/device/device.hpp"

namespace heddle {

/// Owner of the memory of an operation, from the view of its stream's device.
enum class MemoryOrigin : std::uint8_t {
  host,
  own,     ///< allocated by the device
  opened,  ///< of another process, opened by the device
  peer     ///< of another device, allocated or opened there
};

struct CopyEnds {
  MemoryOrigin to = MemoryOrigin::host;
  MemoryOrigin from = MemoryOrigin::host;
};

/// Common base of the Device backends: a device whose memory is handed out in pieces of segments,
/// each of which the backend allocates as a whole when it is first needed and keeps. Keeps the
/// books of the segments, opened memory, host memory, streams and events, and checks the arguments
/// of stream operations. A backend implements the hooks below.
class PooledDevice : public Device {
 public:
  PooledDevice(const PooledDevice&) = delete;
  PooledDevice& operator=(const PooledDevice&) = delete;
  ~PooledDevice() override = default;

  [[nodiscard]] const DeviceInfo& info() const final { return info_; }
  [[nodiscard]] std::uint64_t memory_available() const final;
  [[nodiscard]] DeviceMemory allocate(std::size_t bytes) override;
  void free(const DeviceMemory& memory) final;
  [[nodiscard]] void* allocate_host(std::size_t bytes) final;
  void free_host(void* address) final;
  void register_host(void* address, std::size_t bytes) final;
  void unregister_host(void* address) final;
  [[nodiscard]] bool owns(const void* address) const final { return is_own(address); }
  [[nodiscard]] bool adopt(const void* address) final;
  void disown(const void* address) final;
  [[nodiscard]] bool reaches_host(const void* address, std::size_t bytes) const final;
  [[nodiscard]] MemoryPlace locate(const void* address) const final;
  void close_memory(const DeviceMemory& memory) final;

  // ---- for the backend's streams and events ---------------------------------------------------
  /// The device's name in messages.
  [[nodiscard]] virtual std::string label() const = 0;
  /// Name of stream number `stream` in messages.
  [[nodiscard]] std::string place(std::uint64_t stream) const;
  /// `own` or `opened`; nullopt unless the range lies within one allocation of this device or one
  /// mapping that it opened.
  [[nodiscard]] std::optional<MemoryOrigin> origin_of(const void* address, std::size_t bytes) const;
  /// The ends of a copy on stream number `stream`. Throws Error(internal) if it is not possible.
  [[nodiscard]] CopyEnds check_copy(const Destination& to, const Source& from,
                                    const CopyShape& shape, std::uint64_t stream) const;
  /// Throws Error(internal) unless `tiles` lie in this device's memory, allocated or opened.
  void check_tiles(const Kernel& kernel, std::span<const TileView> tiles,
                   std::uint64_t stream) const;

  /// Throws Error(internal) unless `kernel` on stream number `stream` can access `memory`.
  void check_memory(const ByteKernel& kernel, std::span<const KernelMemory> memory,
                    std::uint64_t stream) const;

  /// `event` as the backend's, to be recorded by stream number `stream`. Throws Error(internal) if
  /// it belongs to another device.
  template <class BackendEvent>
  [[nodiscard]] BackendEvent& recorded(Event& event, std::uint64_t stream) const {
    auto* own = dynamic_cast<BackendEvent*>(&event);
    if (own == nullptr || &own->device() != this) refuse_record(event, stream);
    return *own;
  }
  /// `event` as the backend's, awaited by stream number `stream`. Throws Error(internal) if it
  /// belongs to another backend.
  template <class BackendEvent>
  [[nodiscard]] const BackendEvent& awaited(const Event& event, std::uint64_t stream) const {
    const auto* known = dynamic_cast<const BackendEvent*>(&event);
    if (known == nullptr) refuse_wait(event, stream);
    return *known;
  }

  // Relaxed: the counters order no other memory.
  void stream_destroyed() { streams_.fetch_sub(1, std::memory_order_relaxed); }
  [[nodiscard]] std::uint32_t streams() const { return streams_.load(std::memory_order_relaxed); }
  void event_created() { events_.fetch_add(1, std::memory_order_relaxed); }
  void event_destroyed() { events_.fetch_sub(1, std::memory_order_relaxed); }

 protected:
  PooledDevice();

  // ---- for the backend's constructor and destructor -------------------------------------------
  /// The device has `bytes` of memory, of which at most `used_bytes_max` are handed out.
  void set_memory(std::uint64_t bytes, std::uint64_t used_bytes_max);
  /// [address, address + bytes) becomes a segment. Under `mutex_`, or in a constructor.
  void add_segment(std::byte* address, std::uint64_t bytes);
  /// Checks Device's conditions for destruction; call it first in the backend's destructor.
  void check_unused() const;
  /// Frees or unregisters the remaining host memory.
  void give_back_host();

  // ---- for the backend's functions ------------------------------------------------------------
  /// A piece of memory that the device allocated as a whole.
  struct Segment {
    std::byte* address = nullptr;
    std::uint64_t bytes = 0;
    /// As integers: pointers into different mappings cannot be subtracted or ordered.
    [[nodiscard]] std::uint64_t offset_of(const void* place) const {
      return reinterpret_cast<std::uintptr_t>(place) - reinterpret_cast<std::uintptr_t>(address);
    }
    [[nodiscard]] bool contains(const void* place) const { return offset_of(place) < bytes; }
  };
  /// All so far; they stay. Any thread, without the lock.
  [[nodiscard]] std::span<const Segment> segments() const {
    // Acquire: pairs with the release of add_segment(), after the segment was written.
    return {segments_.data(), segment_count_.load(std::memory_order_acquire)};
  }
  /// The number of the segment that contains the address, allocated or not.
  [[nodiscard]] std::optional<std::size_t> segment_of(const void* address) const;
  /// Counts a new stream; returns the number of live ones.
  std::uint32_t stream_created() { return streams_.fetch_add(1, std::memory_order_relaxed) + 1; }
  /// Stream numbers start at 1.
  [[nodiscard]] std::uint64_t next_stream() {
    return streams_created_.fetch_add(1, std::memory_order_relaxed) + 1;
  }
  /// A handle without its token. Throws Error(internal) if `address` is not allocated here.
  [[nodiscard]] IpcMemoryHandle handle_of(const void* address) const;
  /// `event` as the backend's, to be exported. Throws Error(internal) if it was not created here.
  template <class BackendEvent>
  [[nodiscard]] const BackendEvent& exported(const Event& event) const {
    const auto* own = dynamic_cast<const BackendEvent*>(&event);
    if (own == nullptr || &own->device() != this || own->is_opened()) refuse_export();
    return *own;
  }
  /// First words of errors of open_memory() and open_event().
  [[nodiscard]] std::string opening(const IpcMemoryHandle& handle) const;
  [[nodiscard]] std::string opening(const IpcEventHandle& handle) const;
  /// Adds a mapping to the books until close_memory(). Under `mutex_`.
  [[nodiscard]] DeviceMemory add_opened(std::byte* address, std::uint64_t bytes);

  /// An allocation on this device that another library made.
  struct Foreign {
    const std::byte* base = nullptr;
    std::uint64_t bytes = 0;
    std::uint64_t identity = 0;  ///< unique; the highest bit is 0
  };
  /// The adopted allocation that contains the address.
  [[nodiscard]] std::optional<Foreign> adopted(const void* address) const;

  // ---- hooks ----------------------------------------------------------------------------------
  /// Another segment of at least `bytes`, a multiple of the alignment, and at most `bytes_max`; no
  /// address where the device has none. Throws Error(usage) when memory that should be there is
  /// refused. Under `mutex_`.
  [[nodiscard]] virtual Segment take_segment(std::uint64_t bytes, std::uint64_t bytes_max);
  /// The present allocation of another library on this device that contains the address.
  [[nodiscard]] virtual std::optional<Foreign> find_foreign(const void*) const {
    return std::nullopt;
  }
  /// Called under `mutex_` when an allocation is freed, before the memory can be reused.
  virtual void discard(const DeviceMemory&) {}
  /// Ends a mapping, once for each add_opened(). Under `mutex_`.
  virtual void unmap(const std::byte* address) = 0;
  /// Allocates page-aligned host memory; throws Error(internal) on failure.
  [[nodiscard]] virtual void* take_host(std::size_t bytes) = 0;
  virtual void return_host(void* address) = 0;
  /// Prepares host memory for fast copies; throws Error(internal) if the system refuses. No effect
  /// by default.
  virtual void pin(void*, std::size_t) {}
  virtual void unpin(void*) {}

  DeviceInfo info_;           ///< filled by the constructor; `memory_bytes` by set_memory()
  mutable std::mutex mutex_;  ///< protects the books below, and the backend's

 private:
  struct Opened {
    std::uint64_t bytes = 0;
    std::uint32_t count = 0;  ///< number of opens of this address
  };

  /// Pieces of host memory: address and bytes.
  using HostBooks = std::map<std::byte*, std::size_t, std::less<>>;

  /// Under `mutex_`.
  [[nodiscard]] const Foreign* find_adopted(const void* address) const;
  /// Reason why a kernel cannot access the range; empty if it can.
  [[nodiscard]] std::string refusal_of(const KernelMemory& range) const;
  /// Whether the address lies in a segment, allocated or not.
  [[nodiscard]] bool is_own(const void* address) const { return segment_of(address).has_value(); }
  /// Bytes that can still become segments. Under `mutex_`, as all that follow.
  [[nodiscard]] std::uint64_t bytes_left() const;
  [[nodiscard]] std::uint64_t used_bytes() const;
  [[nodiscard]] std::uint64_t used_count() const;
  [[nodiscard]] std::uint64_t available() const;
  [[nodiscard]] std::byte* allocate_from_segments(std::uint64_t bytes);
  /// The used block that contains the address; its id is unique on the device.
  [[nodiscard]] std::optional<BlockAllocator::Block> block_at(const void* address) const;
  [[noreturn]] void refuse_record(const Event& event, std::uint64_t stream) const;
  [[noreturn]] void refuse_wait(const Event& event, std::uint64_t stream) const;
  [[noreturn]] void refuse_export() const;

  static constexpr std::size_t segments_max = 256;

  const int exceptions_at_start_;
  std::uint64_t used_bytes_max_ = 0;
  std::array<Segment, segments_max> segments_;  ///< the first segment_count_ never change
  std::atomic<std::size_t> segment_count_{0};
  std::atomic<std::uint64_t> streams_created_{0};
  std::atomic<std::uint32_t> streams_{0};  ///< alive
  std::atomic<std::uint32_t> events_{0};   ///< alive, created or opened

  std::vector<BlockAllocator> allocators_;       ///< of each segment
  std::map<const std::byte*, Opened> opened_;    ///< by address
  std::map<const std::byte*, Foreign> adopted_;  ///< by address
  HostBooks host_;                               ///< from allocate_host()
  HostBooks registered_;                         ///< from register_host()
};

}  // namespace heddle
