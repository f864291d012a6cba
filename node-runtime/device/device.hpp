#pragma once

#include <array>
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

/// The Device interface (DESIGN D5): memory, in-order streams, events, peer copies and the sharing
/// of memory and events between processes. One contract, the same for every backend; one test suite
/// (tests/device) is instantiated for each.
///
/// Lifetimes: a Device outlives its streams, events and memory; a Notifier outlives its streams.
/// Threads: every function may be called by any thread. Calls on one Stream from several threads
/// are executed in the order in which they returned; one Event is recorded by one thread at a time.
/// Errors: a call that is wrong by its arguments (memory of nobody, overlapping copy, a kernel
/// without a definition) throws Error(internal) at once and nothing is queued. What fails later is
/// an asynchronous error, see Stream. A refused sharing between processes is Error(communication).
namespace heddle {

enum class DeviceBackend : std::uint8_t { none, emulated, cuda, automatic };

/// As the configuration writes it: "none", "emulated", "cuda", "auto".
[[nodiscard]] std::string_view name_of(DeviceBackend backend);

/// Identity of a device among all processes of a machine.
struct DeviceUuid {
  std::array<std::uint8_t, 16> bytes{};
  friend bool operator==(const DeviceUuid&, const DeviceUuid&) = default;
};

/// 32 hexadecimal digits.
[[nodiscard]] std::string to_string(const DeviceUuid& uuid);

struct DeviceInfo {
  std::string name;
  std::string kind;  ///< the same for devices that are alike: the GPU's name, "emulated"
  DeviceBackend backend = DeviceBackend::none;
  std::int32_t index = 0;          ///< among the devices of this process
  std::uint64_t memory_bytes = 0;  ///< all of it, allocated or not
  DeviceUuid uuid;
  /// Streams call their Notifier. False: the owner polls its events with Event::query().
  bool notifies = false;
};

/// A piece of device memory; a plain value that owns nothing. Only operations on streams of the
/// device may dereference `address`; the host, and other devices' kernels, may not, even where a
/// backend would let them.
struct DeviceMemory {
  std::byte* address = nullptr;  ///< aligned to 256 bytes when it comes from allocate()
  std::size_t bytes = 0;
};

/// What a backend adds to a handle for its own use.
using IpcToken = std::array<std::byte, 96>;

/// Names a piece of a device's memory in a message to another process of the same machine.
struct IpcMemoryHandle {
  DeviceUuid device;
  /// Identity of the allocation: no two allocations of one device ever share it, even at the same
  /// address. (device, allocation) is therefore the key under which an importer may keep a mapping.
  std::uint64_t allocation = 0;
  std::uint64_t offset = 0;  ///< of the exported address in its allocation
  std::uint64_t bytes = 0;   ///< from the exported address to the allocation's end
  IpcToken token{};
};

/// Where an address lies in an allocation of a device.
struct MemoryPlace {
  std::uint64_t allocation = 0;  ///< see IpcMemoryHandle
  std::uint64_t offset = 0;      ///< of the address in it
  std::uint64_t bytes = 0;       ///< from the address to its end
};

/// Names an event in a message to another process of the same machine.
struct IpcEventHandle {
  DeviceUuid device;
  IpcToken token{};
};

static_assert(std::is_trivially_copyable_v<IpcMemoryHandle> && sizeof(IpcMemoryHandle) == 136);
static_assert(std::is_trivially_copyable_v<IpcEventHandle> && sizeof(IpcEventHandle) == 112);

class Device;

/// Where a copy writes. `device == nullptr`: host memory. Memory that a device opened from another
/// process counts as that device's.
struct Destination {
  void* address = nullptr;
  const Device* device = nullptr;
};

/// Where a copy reads; as Destination.
struct Source {
  const void* address = nullptr;
  const Device* device = nullptr;
};

/// Memory that a byte kernel reads or writes. `device == nullptr`: host memory that the stream's
/// device allocated or registered, which its kernels reach in place (000 section 4.4.1, "zero
/// copy"). Otherwise as in Destination, a peer's memory included.
struct KernelMemory {
  const void* address = nullptr;
  std::size_t bytes = 0;
  const Device* device = nullptr;
};

/// A column-major block in bytes: `columns` columns of `column_bytes`, one column starting
/// `*_leading` bytes after the one before. Both leadings are at least `column_bytes`.
struct CopyShape {
  std::size_t column_bytes = 0;
  std::size_t columns = 0;
  std::size_t destination_leading = 0;
  std::size_t source_leading = 0;
};

/// Told by a stream that a recorded event is complete, so that its owner need not poll.
class Notifier {
 public:
  Notifier() = default;
  Notifier(const Notifier&) = delete;
  Notifier& operator=(const Notifier&) = delete;
  virtual ~Notifier() = default;

  /// Called once for each Stream::record(), after Event::query() has stopped saying `pending`, on a
  /// thread of the backend. Wakes whoever waits and returns: it does not block, throw, or call the
  /// device.
  virtual void notify() noexcept = 0;
};

enum class EventState : std::uint8_t { pending, done, failed };

/// Whether an event knows when it was complete. One that does is complete some time later: on an
/// H200 1.8 us, of the 9.6 us that the shortest operation takes.
enum class EventTiming : std::uint8_t { on, off };

/// A point in a stream. It refers to its most recent record; never recorded, it is done.
///
/// It may be recorded again at any time on the same stream, and on another one when the record
/// before is complete (otherwise Stream::record throws). It is destroyed only when its last record
/// is complete (not checked while an exception unwinds); waits that streams have not executed yet
/// are no obstacle.
class Event {
 public:
  Event() = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  virtual ~Event() = default;

  /// State of the most recent record. Never blocks. After `done` or `failed` the caller sees
  /// everything that the stream wrote before the record, kernels' `info` included.
  [[nodiscard]] virtual EventState query() const = 0;

  /// When the most recent record completed, in ns of CLOCK_MONOTONIC, once query() has said so: for
  /// what a trace tells of work that was found to be over some time later. Not of an event with
  /// EventTiming::off. Of a GPU's clock only so much is known: to some microseconds.
  [[nodiscard]] virtual std::int64_t completed_ns() const = 0;

  /// Blocks until the most recent record is complete. Throws when it failed: Error(communication)
  /// when the process that exported the event has ended, otherwise Error(internal).
  virtual void synchronize() const = 0;

  /// What failed, when query() says `failed`: operation, device, stream, kernel or copy.
  [[nodiscard]] virtual std::string failure() const = 0;

  /// The device that created or opened it.
  [[nodiscard]] virtual const Device& device() const = 0;
};

enum class StreamPriority : std::uint8_t { normal, high };

/// An in-order queue of operations of one device. Each call queues an operation and returns; the
/// memory it names must stay valid until an event recorded behind it is complete, and pointed-to
/// arguments other than memory (the span of tiles, the parameters) only until the call returns.
///
/// Bounded: a stream holds a fixed number of unfinished operations; when it is full, the caller
/// blocks until one has finished. This cannot deadlock: an operation depends only on operations
/// that were queued before it (record() precedes the wait() that sees it), so the oldest unfinished
/// operation of all streams can always run, and no operation needs the blocked caller.
///
/// Asynchronous errors: an operation that fails makes its stream fail for good. Operations behind
/// it do not run; events recorded behind it, and streams that wait for those events, fail too, with
/// the text of the first failure. The contents of the memory that skipped operations should have
/// written are unspecified, `info` included. No failure is lost: destroying a failed stream
/// whose failure neither an event nor failure() nor synchronize() has passed on is a defect.
///
/// Destruction: all operations have finished, otherwise it is a defect (HEDDLE_CHECK). While an
/// exception unwinds, or after abandon(), what is pending is dropped instead.
class Stream {
 public:
  Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  virtual ~Stream() = default;

  /// Copies `bytes`, as one of: host to device, device to host, within the device, to or from a
  /// peer (Device::can_access_peer). At least one end is this stream's device; ends on one device
  /// do not overlap. The source is read, and the destination written, at any time between the
  /// start of the operation and its end.
  void copy(Destination to, Source from, std::size_t bytes) {
    copy_strided(to, from, {bytes, 1, bytes, bytes});
  }

  /// Copies a block column by column; bytes between the columns stay untouched.
  virtual void copy_strided(Destination to, Source from, const CopyShape& shape) = 0;

  /// Makes now what the first kernels would make when they are launched (a GPU's library handles
  /// and scratch memory); waits for the stream. Throws Error where there is no memory for it.
  virtual void prepare_kernels() {}

  /// Runs `kernel` on `tiles` in memory of this device, allocated or opened. `info` (host memory,
  /// may be null) receives the kernel's result before an event recorded behind the launch is
  /// complete; a positive one is a numerical outcome, not a failure of the stream. What a kernel
  /// throws is none either, where `info` can tell: it becomes `kernel_threw`, and
  /// take_kernel_error() has the text. A GPU's kernel throws from launch() itself.
  virtual void launch(const Kernel& kernel, std::span<const TileView> tiles,
                      const KernelParameters& parameters, std::int64_t* info) = 0;

  static constexpr std::int64_t kernel_threw = -1;
  /// What the oldest kernel threw whose `info` was kernel_threw, and whose text was not taken yet.
  [[nodiscard]] virtual std::string take_kernel_error() { return {}; }

  /// Runs `kernel`, which may touch `memory` and nothing else: each range lies within one
  /// allocation, one mapping, or one piece of host memory. Empty ranges are left out.
  virtual void launch(const ByteKernel& kernel, const ByteParameters& parameters,
                      std::span<const KernelMemory> memory) = 0;

  /// Makes `event`, created by this device, complete when everything queued before has finished.
  virtual void record(Event& event) = 0;

  /// Operations queued from now on start only when the most recent record of `event` (as of this
  /// call; of any device of the same backend, or opened from another process) is complete.
  virtual void wait(const Event& event) = 0;

  /// Blocks until the stream is empty. Throws Error when it has failed.
  virtual void synchronize() = 0;

  /// What made the stream fail; nullopt when it has not failed so far.
  [[nodiscard]] virtual std::optional<std::string> failure() = 0;

  /// Makes the stream fail with `reason` without waiting for a dependency that will not come (a
  /// peer died, the run is cancelled). An operation that is running ends; others may be dropped.
  virtual void abandon(const std::string& reason) = 0;

  [[nodiscard]] virtual Device& device() const = 0;
};

/// One accelerator of this process.
///
/// Destruction: streams and events are gone and memory is freed and closed, otherwise it is a
/// defect (HEDDLE_CHECK; memory is not checked while an exception unwinds).
class Device {
 public:
  Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  virtual ~Device() = default;

  [[nodiscard]] virtual const DeviceInfo& info() const = 0;

  /// Streams of this device can launch it. Otherwise it runs on the host, on copies of its tiles.
  [[nodiscard]] virtual bool runs(const Kernel& kernel) const = 0;
  [[nodiscard]] virtual bool runs(const ByteKernel& kernel) const = 0;

  /// Largest allocation that would succeed now, other processes' use of the device considered.
  [[nodiscard]] virtual std::uint64_t memory_available() const = 0;

  /// `bytes` > 0 of device memory, aligned to 256 bytes, contents unspecified. Throws
  /// Error(internal) that says how much was asked for and how much there is. Slow on real devices:
  /// take pools once.
  [[nodiscard]] virtual DeviceMemory allocate(std::size_t bytes) = 0;

  /// Gives back what allocate() returned. No unfinished operation uses it and no other process has
  /// it open.
  virtual void free(const DeviceMemory& memory) = 0;

  /// Host memory that copies are fastest with (page-locked where that matters), page-aligned. Byte
  /// kernels reach it in place.
  [[nodiscard]] virtual void* allocate_host(std::size_t bytes) = 0;
  virtual void free_host(void* address) = 0;

  /// Makes host memory of the caller, whole pages of it, as good for copies and byte kernels as
  /// allocate_host() does; until unregister_host() with the same address. Throws Error(internal)
  /// when the system refuses: copies work all the same, slower.
  virtual void register_host(void* address, std::size_t bytes) = 0;
  virtual void unregister_host(void* address) = 0;

  /// The address is in this device's own memory, allocated now or not.
  [[nodiscard]] virtual bool owns(const void* address) const = 0;
  /// Memory of this device that somebody else in the process has allocated: a library, or the
  /// program itself. True if the address is in such memory: then, until disown(), that allocation
  /// is as one of this device's own for copies, kernels and export_memory(). Each call finds out
  /// anew what lies there, so that memory which was freed is not taken for what lay there before.
  [[nodiscard]] virtual bool adopt(const void* address) = 0;
  /// The end of that, before the allocation is freed; nothing for an address that was not adopted.
  virtual void disown(const void* address) = 0;
  /// The range lies in one piece of host memory that this device allocated or registered.
  [[nodiscard]] virtual bool reaches_host(const void* address, std::size_t bytes) const = 0;

  /// `notifier` (may be null) is told of every completed record, if info().notifies.
  [[nodiscard]] virtual std::unique_ptr<Stream> create_stream(
      StreamPriority priority = StreamPriority::normal, Notifier* notifier = nullptr) = 0;
  [[nodiscard]] virtual std::unique_ptr<Event> create_event(
      EventTiming timing = EventTiming::on) = 0;

  /// Streams of this device can copy to and from memory of `other`. Without it the owner stages
  /// through the host.
  [[nodiscard]] virtual bool can_access_peer(const Device& other) const = 0;

  /// Where an address is in an allocation of this device, or an adopted one. Throws Error(internal)
  /// where it is in none.
  [[nodiscard]] virtual MemoryPlace locate(const void* address) const = 0;
  /// A handle with which another process of this machine maps the memory from `address` (anywhere
  /// in an allocation of this device) to the allocation's end. Throws Error(communication) for
  /// adopted memory that cannot be shared.
  [[nodiscard]] virtual IpcMemoryHandle export_memory(const void* address) = 0;

  /// Maps memory that another process exported; it is then as this device's own for copies and
  /// kernels. Each call has its close_memory(), and the exporter frees after all have closed.
  /// Throws Error(communication) when the exporter has gone, is this very process, or the system
  /// refuses the mapping: the caller then copies through the host.
  [[nodiscard]] virtual DeviceMemory open_memory(const IpcMemoryHandle& handle) = 0;
  virtual void close_memory(const DeviceMemory& memory) = 0;

  /// A handle with which another process of this machine queries and waits for `event`, created
  /// here. The exporter keeps the event until the others have closed theirs.
  [[nodiscard]] virtual IpcEventHandle export_event(const Event& event) = 0;

  /// An event of another process: query(), synchronize() and Stream::wait() work on it, record()
  /// throws. When the exporter ends first, it fails, within a bounded time. Errors as open_memory.
  [[nodiscard]] virtual std::unique_ptr<Event> open_event(const IpcEventHandle& handle) = 0;
};

/// Device memory that is freed with its owner.
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
