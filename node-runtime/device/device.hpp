#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "kernels/byte_kernel.hpp"
#include "kernels/kernel.hpp"

/// The Device interface (DESIGN D5): memory, in-order streams, events, peer copies, and sharing of
/// memory and events between processes. All backends pass the same tests (tests/device).
///
/// Lifetimes: a Device outlives its streams, events and memory; a Notifier outlives its streams.
/// Threads: every function may be called by any thread. Calls on one Stream from several threads
/// are executed in the order in which they returned; one Event is recorded by one thread at a time.
/// Errors: wrong arguments (memory of no device, overlapping copy, a kernel without a definition)
/// throw Error(internal) at once and nothing is queued. Later failures are asynchronous, see
/// Stream. A failure to share between processes is Error(communication).
namespace heddle {

enum class DeviceBackend : std::uint8_t { none, emulated, cuda, automatic };

/// As in the configuration: "none", "emulated", "cuda", "auto".
[[nodiscard]] std::string_view name_of(DeviceBackend backend);

/// Identity of a device among all processes of a machine.
struct DeviceUuid {
  std::array<std::uint8_t, 16> bytes{};
  friend bool operator==(const DeviceUuid&, const DeviceUuid&) = default;
};

/// 32 hexadecimal digits.
[[nodiscard]] std::string to_string(const DeviceUuid& uuid);

/// Where a device is that is on no bus.
struct DeclaredPlace {
  std::int32_t socket = 0;
  std::int32_t pci_switch = 0;
};

struct DeviceInfo {
  std::string name;
  std::string kind;  ///< the GPU's name or "emulated"; equal for equal devices
  DeviceBackend backend = DeviceBackend::none;
  std::int32_t index = 0;          ///< among the devices of this process
  std::uint64_t memory_bytes = 0;  ///< the whole pool
  DeviceUuid uuid;
  /// Streams call their Notifier. False: the owner polls events with Event::query().
  bool notifies = false;
  std::string pci_address;                ///< "0000:3b:00.0"; empty: it is on no bus
  std::optional<DeclaredPlace> declared;  ///< of an emulated device among those of its host
};

/// A range of device memory; owns nothing. Only operations on streams of the device may dereference
/// `address`; the host and other devices' kernels may not, even where a backend would allow it.
struct DeviceMemory {
  std::byte* address = nullptr;  ///< aligned to 256 bytes when it comes from allocate()
  std::size_t bytes = 0;
};

/// Backend-specific part of a handle.
using IpcToken = std::array<std::byte, 96>;

/// Names a range of device memory for another process of the same machine.
struct IpcMemoryHandle {
  DeviceUuid device;
  /// Unique per allocation of a device, even at a reused address, so importers may cache mappings
  /// by (device, allocation).
  std::uint64_t allocation = 0;
  std::uint64_t offset = 0;  ///< of the exported address in its allocation
  std::uint64_t bytes = 0;   ///< from the exported address to the allocation's end
  IpcToken token{};
};

/// Position of an address in an allocation of a device.
struct MemoryPlace {
  std::uint64_t allocation = 0;  ///< as in IpcMemoryHandle
  std::uint64_t offset = 0;      ///< of the address
  std::uint64_t bytes = 0;       ///< from the address to the allocation's end
};

/// Names an event for another process of the same machine.
struct IpcEventHandle {
  DeviceUuid device;
  IpcToken token{};
};

static_assert(std::is_trivially_copyable_v<IpcMemoryHandle> && sizeof(IpcMemoryHandle) == 136);
static_assert(std::is_trivially_copyable_v<IpcEventHandle> && sizeof(IpcEventHandle) == 112);

class Device;

/// Destination of a copy. `device == nullptr`: host memory. Memory that a device has opened from
/// another process counts as that device's.
struct Destination {
  void* address = nullptr;
  const Device* device = nullptr;
};

/// Source of a copy; as Destination.
struct Source {
  const void* address = nullptr;
  const Device* device = nullptr;
};

/// Memory that a byte kernel reads or writes. `device == nullptr`: host memory allocated or
/// registered by the stream's device, accessed in place (000 section 4.4.1, "zero copy"). Otherwise
/// as Destination, including memory of a peer.
struct KernelMemory {
  const void* address = nullptr;
  std::size_t bytes = 0;
  const Device* device = nullptr;
  bool is_written = false;  ///< not only read: which way emulated devices' links are used
};

/// A column-major block in bytes: `columns` columns of `column_bytes`, with `*_leading` >=
/// `column_bytes` bytes from one column to the next.
struct CopyShape {
  std::size_t column_bytes = 0;
  std::size_t columns = 0;
  std::size_t destination_leading = 0;
  std::size_t source_leading = 0;
};

/// Called by a stream when a recorded event completes, so that its owner need not poll.
class Notifier {
 public:
  Notifier() = default;
  Notifier(const Notifier&) = delete;
  Notifier& operator=(const Notifier&) = delete;
  virtual ~Notifier() = default;

  /// Called once per Stream::record() on a backend thread, after Event::query() no longer returns
  /// `pending`. Wakes waiters; does not block, throw, or call the device.
  virtual void notify() noexcept = 0;
};

enum class EventState : std::uint8_t { pending, done, failed };

/// Whether an event records its completion time. Timing delays completion: on an H200 by 1.8 us of
/// the 9.6 us that the shortest operation takes.
enum class EventTiming : std::uint8_t { on, off };

/// A point in a stream: its most recent record. An event never recorded is `done`.
///
/// May be recorded again at any time on the same stream, on another one only after the previous
/// record has completed (otherwise Stream::record throws). Destroy it after its last record has
/// completed (not checked while an exception unwinds); queued waits for it may still be pending.
class Event {
 public:
  Event() = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  virtual ~Event() = default;

  /// State of the most recent record. Never blocks. After `done` or `failed` the caller sees all
  /// writes of the stream before the record, kernels' `info` included.
  [[nodiscard]] virtual EventState query() const = 0;

  /// Completion time of the most recent record in ns of CLOCK_MONOTONIC, once query() has reported
  /// it; for traces. Not with EventTiming::off. Accurate to a few microseconds on a GPU.
  [[nodiscard]] virtual std::int64_t completed_ns() const = 0;

  /// Blocks until the most recent record completes. Throws if it failed: Error(communication) if
  /// the exporting process has ended, otherwise Error(internal).
  virtual void synchronize() const = 0;

  /// Description of the failure after query() == `failed`: operation, device, stream, kernel or
  /// copy.
  [[nodiscard]] virtual std::string failure() const = 0;

  /// The device that created or opened the event.
  [[nodiscard]] virtual const Device& device() const = 0;
};

enum class StreamPriority : std::uint8_t { normal, high };

/// An in-order queue of operations of one device. Calls queue an operation and return. Memory named
/// by a call must stay valid until an event recorded behind it completes; other pointed-to
/// arguments (the span of tiles, the parameters) only until the call returns.
///
/// Bounded: a full stream blocks the caller until an operation finishes. No deadlock: an operation
/// depends only on operations queued before it (record() precedes the wait() that sees it), so the
/// oldest unfinished operation of all streams can always run without the blocked caller.
///
/// Asynchronous errors: a failed operation fails its stream for good. Later operations do not run;
/// events recorded later, and streams that wait for them, fail with the text of the first failure.
/// Memory that skipped operations should have written is unspecified, `info` included. Destroying a
/// failed stream whose failure was reported by no event, failure() or synchronize() is a defect.
///
/// Destruction requires that all operations have finished (HEDDLE_CHECK). While an exception
/// unwinds, or after abandon(), pending operations are dropped.
class Stream {
 public:
  Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  virtual ~Stream() = default;

  /// Copies `bytes` host to device, device to host, within the device, or to or from a peer
  /// (Device::can_access_peer). At least one end is on this stream's device; ends on one device do
  /// not overlap. The copy may read and write at any time between its start and its end. Behind a
  /// wait for a word, host memory that the device neither allocated nor registered makes the caller
  /// wait until the words of all streams are raised.
  void copy(Destination to, Source from, std::size_t bytes) {
    copy_strided(to, from, {bytes, 1, bytes, bytes});
  }

  /// Copies a block column by column; bytes between columns are not touched.
  virtual void copy_strided(Destination to, Source from, const CopyShape& shape) = 0;

  /// Does the first kernels' setup now (library handles and scratch memory of a GPU); waits for the
  /// stream. Throws Error if memory is short.
  virtual void prepare_kernels() {}

  /// Runs `kernel` on `tiles` in memory of this device, allocated or opened. `info` (host memory or
  /// null) receives the result before an event recorded behind the launch completes; a positive one
  /// is a numerical result, not a failure of the stream. With `info`, an exception of the kernel is
  /// no failure of the stream either: `info` becomes kernel_threw, and take_kernel_error() returns
  /// the text. A GPU's kernel throws from launch() itself.
  virtual void launch(const Kernel& kernel, std::span<const TileView> tiles,
                      const KernelParameters& parameters, std::int64_t* info) = 0;

  static constexpr std::int64_t kernel_threw = -1;
  /// Takes the text of the oldest kernel whose `info` is kernel_threw.
  [[nodiscard]] virtual std::string take_kernel_error() { return {}; }

  /// Runs `kernel`, which may access only `memory`: each range lies within one allocation, one
  /// mapping, or one piece of host memory. Empty ranges are skipped.
  virtual void launch(const ByteKernel& kernel, const ByteParameters& parameters,
                      std::span<const KernelMemory> memory) = 0;

  /// `event`, created by this device, completes when all operations queued before it have finished.
  virtual void record(Event& event) = 0;

  /// Operations queued from now on start after the most recent record of `event` as of this call.
  /// `event` belongs to a device of the same backend or was opened from another process.
  virtual void wait(const Event& event) = 0;

  /// Operations queued from now on start when `word` is at least `value`. The word is host memory
  /// that this device allocated or registered; whoever raises it, by a store with release order,
  /// does so without waiting for this stream. Nothing is started to look at it: on a GPU the stream
  /// itself waits, with the hardware queue that it shares with other streams. A full stream blocks
  /// its caller until the word is raised. Throws Error(usage) where streams of this process may
  /// have to share queues, since the one that is behind such a wait could be the one that it waits
  /// for, and where CUDA may load kernels meanwhile.
  virtual void await_word(const std::atomic<std::uint64_t>& word, std::uint64_t value) = 0;

  /// Blocks until the stream is empty. Throws Error if it has failed.
  virtual void synchronize() = 0;

  /// The cause of the stream's failure; nullopt if it has not failed.
  [[nodiscard]] virtual std::optional<std::string> failure() = 0;

  /// Fails the stream with `reason`, without waiting for a dependency that will not complete (a
  /// dead peer, a cancelled run). A running operation finishes; others may be dropped.
  virtual void abandon(const std::string& reason) = 0;

  [[nodiscard]] virtual Device& device() const = 0;
};

/// One accelerator of this process.
///
/// Destruction requires that streams and events are destroyed and memory is freed and closed
/// (HEDDLE_CHECK; memory is not checked while an exception unwinds).
class Device {
 public:
  Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  virtual ~Device() = default;

  [[nodiscard]] virtual const DeviceInfo& info() const = 0;

  /// Whether streams of this device can launch the kernel. Otherwise it runs on the host, on copies
  /// of its tiles.
  [[nodiscard]] virtual bool runs(const Kernel& kernel) const = 0;
  [[nodiscard]] virtual bool runs(const ByteKernel& kernel) const = 0;

  /// Largest allocation that would succeed now, considering other processes.
  [[nodiscard]] virtual std::uint64_t memory_available() const = 0;

  /// Allocates `bytes` > 0, aligned to 256 bytes, contents unspecified. Throws Error(internal) with
  /// the bytes requested and available. Slow on real devices: allocate pools once.
  [[nodiscard]] virtual DeviceMemory allocate(std::size_t bytes) = 0;

  /// Frees memory of allocate(), which no unfinished operation uses and no other process has open.
  virtual void free(const DeviceMemory& memory) = 0;

  /// Page-aligned host memory for the fastest copies (page-locked where that matters). Byte kernels
  /// access it in place.
  [[nodiscard]] virtual void* allocate_host(std::size_t bytes) = 0;
  virtual void free_host(void* address) = 0;

  /// Prepares whole pages of the caller's host memory as allocate_host() does, until
  /// unregister_host() with the same address. Throws Error(internal) if the system refuses: copies
  /// still work, slower.
  virtual void register_host(void* address, std::size_t bytes) = 0;
  virtual void unregister_host(void* address) = 0;

  /// Whether the address lies in this device's pool, allocated or not.
  [[nodiscard]] virtual bool owns(const void* address) const = 0;
  /// Registers memory of this device that a library or the program has allocated. Returns true if
  /// the address lies in such memory: until disown(), copies, kernels and export_memory() accept
  /// that allocation. Each call looks the allocation up again, so freed memory is not mistaken for
  /// its successor.
  [[nodiscard]] virtual bool adopt(const void* address) = 0;
  /// Ends adopt(); call it before the allocation is freed. No effect for other addresses.
  virtual void disown(const void* address) = 0;
  /// Whether the range lies in one piece of host memory that this device allocated or registered.
  [[nodiscard]] virtual bool reaches_host(const void* address, std::size_t bytes) const = 0;

  /// `notifier` (or null) is called for each completed record, if info().notifies.
  [[nodiscard]] virtual std::unique_ptr<Stream> create_stream(
      StreamPriority priority = StreamPriority::normal, Notifier* notifier = nullptr) = 0;
  [[nodiscard]] virtual std::unique_ptr<Event> create_event(
      EventTiming timing = EventTiming::on) = 0;
  /// The program's own stream on this device (a cudaStream_t) as one of ours. It stays the
  /// program's, which destroys it later than the result; then it need not have finished. Throws
  /// Error(usage) where the backend has no native streams, or the stream is of another device.
  [[nodiscard]] virtual std::unique_ptr<Stream> adopt_stream(void* native) = 0;

  /// Whether streams of this device can copy to and from memory of `other`; otherwise the owner
  /// stages through the host.
  [[nodiscard]] virtual bool can_access_peer(const Device& other) const = 0;

  /// Position of an address in an allocation of this device, or in an adopted one. Throws
  /// Error(internal) if it is in none.
  [[nodiscard]] virtual MemoryPlace locate(const void* address) const = 0;
  /// A handle with which another process of this machine maps the memory from `address`, anywhere
  /// in an allocation of this device, to the allocation's end. Throws Error(communication) for
  /// adopted memory that cannot be shared.
  [[nodiscard]] virtual IpcMemoryHandle export_memory(const void* address) = 0;

  /// Maps memory that another process exported, for copies and kernels of this device. Pair each
  /// call with close_memory(); the exporter frees after all importers have closed. Throws
  /// Error(communication) if the exporter has ended, is this process, or the system refuses the
  /// mapping: the caller then copies through the host.
  [[nodiscard]] virtual DeviceMemory open_memory(const IpcMemoryHandle& handle) = 0;
  virtual void close_memory(const DeviceMemory& memory) = 0;

  /// A handle with which another process of this machine queries and waits for `event`, created
  /// here. The exporter keeps the event until all importers have closed theirs.
  [[nodiscard]] virtual IpcEventHandle export_event(const Event& event) = 0;

  /// An event of another process: query(), synchronize() and Stream::wait() work, record() throws.
  /// It fails within a bounded time after the exporter ends. Errors as open_memory.
  [[nodiscard]] virtual std::unique_ptr<Event> open_event(const IpcEventHandle& handle) = 0;
};

/// RAII owner of device memory.
class DeviceBuffer {
 public:
  DeviceBuffer(Device& device, std::size_t bytes)
      : device_(&device), memory_(device.allocate(bytes)) {}
  DeviceBuffer(DeviceBuffer&& other) noexcept
      : device_(std::exchange(other.device_, nullptr)), memory_(other.memory_) {}
  DeviceBuffer& operator=(DeviceBuffer&&) = delete;
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  ~DeviceBuffer() {
    if (device_ != nullptr) device_->free(memory_);
  }

  [[nodiscard]] std::byte* address() const { return memory_.address; }
  [[nodiscard]] std::size_t bytes() const { return memory_.bytes; }
  [[nodiscard]] const DeviceMemory& memory() const { return memory_; }

 private:
  Device* device_;
  DeviceMemory memory_;
};

}  // namespace heddle
