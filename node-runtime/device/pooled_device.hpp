#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "node-runtime/device/block_allocator.hpp"
#include "node-runtime/device/device.hpp"

namespace heddle {

/// Whose memory an operation names, as its stream's device sees it.
enum class MemoryOrigin : std::uint8_t {
  host,
  own,     ///< allocated by the device
  opened,  ///< another process's, opened by the device
  peer     ///< another device's, allocated or opened there
};

struct CopyEnds {
  MemoryOrigin to = MemoryOrigin::host;
  MemoryOrigin from = MemoryOrigin::host;
};

/// What the backends of the Device interface share: a device whose memory is one pool, taken once.
/// It keeps the books of the pool, of memory opened from other processes, of host memory, streams
/// and events, and judges the arguments of what streams are asked to do by them. A backend takes
/// the pool and does the rest: it says how host memory is taken and how a mapping ends in the hooks
/// below.
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
  /// The device in messages.
  [[nodiscard]] virtual std::string label() const = 0;
  /// Stream number `stream` of the device in messages.
  [[nodiscard]] std::string place(std::uint64_t stream) const;
  /// `own` or `opened`; nullopt unless the range lies within one allocation of this device or one
  /// mapping that it opened.
  [[nodiscard]] std::optional<MemoryOrigin> origin_of(const void* address, std::size_t bytes) const;
  /// The ends of a copy on stream number `stream`. Throws Error(internal) when it cannot be done.
  [[nodiscard]] CopyEnds check_copy(const Destination& to, const Source& from,
                                    const CopyShape& shape, std::uint64_t stream) const;
  /// Throws Error(internal) unless `tiles` are this device's memory, allocated or opened.
  void check_tiles(const Kernel& kernel, std::span<const TileView> tiles,
                   std::uint64_t stream) const;

  /// Throws Error(internal) unless stream number `stream` can let `kernel` touch `memory`.
  void check_memory(const ByteKernel& kernel, std::span<const KernelMemory> memory,
                    std::uint64_t stream) const;

  /// `event` as the backend's, which stream number `stream` is to record. Throws Error(internal)
  /// when it is another device's.
  template <class BackendEvent>
  [[nodiscard]] BackendEvent& recorded(Event& event, std::uint64_t stream) const {
    auto* own = dynamic_cast<BackendEvent*>(&event);
    if (own == nullptr || &own->device() != this) refuse_record(event, stream);
    return *own;
  }
  /// `event` as the backend's, which stream number `stream` is to wait for. Throws Error(internal)
  /// when it is another backend's.
  template <class BackendEvent>
  [[nodiscard]] const BackendEvent& awaited(const Event& event, std::uint64_t stream) const {
    const auto* known = dynamic_cast<const BackendEvent*>(&event);
    if (known == nullptr) refuse_wait(event, stream);
    return *known;
  }

  // Relaxed: the counters order nothing.
  void stream_destroyed() { streams_.fetch_sub(1, std::memory_order_relaxed); }
  void event_created() { events_.fetch_add(1, std::memory_order_relaxed); }
  void event_destroyed() { events_.fetch_sub(1, std::memory_order_relaxed); }

 protected:
  PooledDevice();

  // ---- for the backend's constructor and destructor -------------------------------------------
  /// The pool is [address, address + bytes); not more than `used_bytes_max` of it are handed out.
  void set_pool(std::byte* address, std::uint64_t bytes, std::uint64_t used_bytes_max);
  /// What Device says of destruction, before the backend takes anything down.
  void check_unused() const;
  /// Gives back the host memory that is allocated or registered still.
  void give_back_host();

  // ---- for the backend's functions ------------------------------------------------------------
  [[nodiscard]] std::byte* pool() const { return pool_; }
  /// Counts a stream; returns how many there are with it.
  std::uint32_t stream_created() { return streams_.fetch_add(1, std::memory_order_relaxed) + 1; }
  /// From 1.
  [[nodiscard]] std::uint64_t next_stream() {
    return streams_created_.fetch_add(1, std::memory_order_relaxed) + 1;
  }
  /// From the pool's begin, of an address in it.
  [[nodiscard]] std::uint64_t offset_of(const void* address) const {
    // As numbers: pointers into different mappings have no difference, and no order.
    return reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(pool_);
  }
  /// A handle without its token. Throws Error(internal) when `address` is not allocated here.
  [[nodiscard]] IpcMemoryHandle handle_of(const void* address) const;
  /// `event` as the backend's, to be exported. Throws Error(internal) when it was not created here.
  template <class BackendEvent>
  [[nodiscard]] const BackendEvent& exported(const Event& event) const {
    const auto* own = dynamic_cast<const BackendEvent*>(&event);
    if (own == nullptr || &own->device() != this || own->is_opened()) refuse_export();
    return *own;
  }
  /// The beginning of messages about a handle that is opened.
  [[nodiscard]] std::string opening(const IpcMemoryHandle& handle) const;
  [[nodiscard]] std::string opening(const IpcEventHandle& handle) const;
  /// Enters a mapping into the books, until close_memory(). Under `mutex_`.
  [[nodiscard]] DeviceMemory add_opened(std::byte* address, std::uint64_t bytes);

  /// An allocation of somebody else's on this device.
  struct Foreign {
    const std::byte* base = nullptr;
    std::uint64_t bytes = 0;
    std::uint64_t identity = 0;  ///< not used again by another one; the highest bit is 0
  };
  /// What was adopted and holds the address.
  [[nodiscard]] std::optional<Foreign> adopted(const void* address) const;

  // ---- hooks ----------------------------------------------------------------------------------
  /// What somebody else has allocated on this device, and holds the address, now.
  [[nodiscard]] virtual std::optional<Foreign> find_foreign(const void*) const {
    return std::nullopt;
  }
  /// The contents of an allocation are needed no more. Under `mutex_`, before the memory can be
  /// allocated again.
  virtual void discard(const DeviceMemory&) {}
  /// Ends a mapping, once for each add_opened(). Under `mutex_`.
  virtual void unmap(const std::byte* address) = 0;
  /// Page-aligned host memory; throws Error(internal) when there is none.
  [[nodiscard]] virtual void* take_host(std::size_t bytes) = 0;
  virtual void return_host(void* address) = 0;
  /// What makes host memory good for copies; throws Error(internal) when the system refuses. As
  /// they are here, for backends to which all host memory is alike.
  virtual void pin(void*, std::size_t) {}
  virtual void unpin(void*) {}

  DeviceInfo info_;           ///< the constructor's to fill in; set_pool() does `memory_bytes`
  mutable std::mutex mutex_;  ///< of the books below, and of those that a backend keeps with them

 private:
  struct Opened {
    std::uint64_t bytes = 0;
    std::uint32_t count = 0;  ///< times that this very address is open
  };

  /// Pieces of host memory: address and bytes.
  using HostBooks = std::map<std::byte*, std::size_t, std::less<>>;

  /// Under `mutex_`.
  [[nodiscard]] const Foreign* find_adopted(const void* address) const;
  /// Why a kernel cannot touch the range; empty where it can.
  [[nodiscard]] std::string refusal_of(const KernelMemory& range) const;
  /// The address is in the pool, allocated or not.
  [[nodiscard]] bool is_own(const void* address) const {
    return offset_of(address) < info_.memory_bytes;
  }
  /// Under `mutex_`.
  [[nodiscard]] std::uint64_t available() const;
  [[noreturn]] void refuse_record(const Event& event, std::uint64_t stream) const;
  [[noreturn]] void refuse_wait(const Event& event, std::uint64_t stream) const;
  [[noreturn]] void refuse_export() const;

  const int exceptions_at_start_;
  std::byte* pool_ = nullptr;
  std::uint64_t used_bytes_max_ = 0;
  std::atomic<std::uint64_t> streams_created_{0};
  std::atomic<std::uint32_t> streams_{0};  ///< alive
  std::atomic<std::uint32_t> events_{0};   ///< alive, created or opened

  BlockAllocator allocator_{0};
  std::map<const std::byte*, Opened> opened_;    ///< by address
  std::map<const std::byte*, Foreign> adopted_;  ///< likewise
  HostBooks host_;                               ///< by allocate_host()
  HostBooks registered_;                         ///< by register_host()
};

}  // namespace heddle
