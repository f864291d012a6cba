#include "node-runtime/device/emulated/emulated_device.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <fmt/format.h>
#include <iterator>
#include <limits>
#include <new>
#include <unistd.h>

#include "base/assert.hpp"
#include "base/error.hpp"
#include "base/units.hpp"
#include "node-runtime/device/backend_support.hpp"
#include "node-runtime/device/emulated/emulated_event.hpp"
#include "node-runtime/device/emulated/emulated_stream.hpp"

namespace heddle {
namespace {

constexpr std::align_val_t host_alignment{4096};

/// What the tokens of this backend's handles hold.
struct MemoryToken {
  std::int64_t pid;
  std::int64_t fd;
  std::uint64_t file_offset;
};
struct EventToken {
  std::int64_t pid;
  std::int64_t fd;
  std::uint32_t slot;
  std::uint32_t generation;
};

const EmulatedOptions& checked(const EmulatedOptions& o) {
  const auto require = [](bool holds, std::string_view what, const auto& value) {
    if (!holds) {
      throw Error(ErrorCode::usage, fmt::format("emulated device: {}, but it is {}", what, value));
    }
  };
  require(o.memory_bytes >= BlockAllocator::alignment && o.memory_bytes <= std::uint64_t{1} << 46,
          "memory must be between 256 B and 64 TiB", o.memory_bytes);
  for (const double rate :
       {o.host_to_device_rate, o.device_to_host_rate, o.peer_rate, o.local_rate}) {
    require(rate >= 0, "a copy rate must be 0 or more", rate);
  }
  require(o.latency_us >= 0, "latency_us must be 0 or more", o.latency_us);
  require(o.kernel_slowdown >= 1, "kernel_slowdown must be 1 or more", o.kernel_slowdown);
  require(o.queue_capacity >= 1, "queue_capacity must be 1 or more", o.queue_capacity);
  return o;
}

}  // namespace

EmulatedDevice::EmulatedDevice(std::int32_t index, const EmulatedOptions& options)
    : options_(checked(options)),
      exceptions_at_start_(std::uncaught_exceptions()),
      arena_(std::make_shared<SharedArena>(options.memory_bytes, options.event_capacity,
                                           fmt::format("heddle-emulated-{}", index))),
      host_to_device_(options.host_to_device_rate),
      device_to_host_(options.device_to_host_rate),
      peer_(options.peer_rate),
      local_(options.local_rate),
      gate_(options.concurrent_kernels),
      allocator_(options.memory_bytes) {
  info_.name = fmt::format("emulated {}", index);
  info_.kind = "emulated";
  info_.backend = DeviceBackend::emulated;
  info_.index = index;
  info_.memory_bytes = options.memory_bytes;
  info_.uuid = arena_->uuid();
  info_.notifies = true;
}

EmulatedDevice::~EmulatedDevice() {
  // Relaxed: who destroys the device has seen the end of everything on it.
  HEDDLE_CHECK(streams_.load(std::memory_order_relaxed) == 0, "{} is destroyed before {} streams",
               label(), streams_.load(std::memory_order_relaxed));
  HEDDLE_CHECK(events_.load(std::memory_order_relaxed) == 0, "{} is destroyed before {} events",
               label(), events_.load(std::memory_order_relaxed));
  if (std::uncaught_exceptions() == exceptions_at_start_) {
    HEDDLE_CHECK(allocator_.used_count() == 0 && opened_.empty() && host_.empty(),
                 "{} is destroyed with {} allocations ({}), {} opened mappings and {} host "
                 "allocations",
                 label(), allocator_.used_count(), format_bytes(allocator_.used_bytes()),
                 opened_.size(), host_.size());
  }
  for (const auto& [address, bytes] : host_) ::operator delete(address, host_alignment);
  arena_->close();
}

std::string EmulatedDevice::label() const {
  return fmt::format("emulated device {}", info_.index);
}

std::uint64_t EmulatedDevice::memory_available() const {
  const std::scoped_lock lock(mutex_);
  const std::uint64_t limit =
      options_.faults.allocation_bytes_max.value_or(std::numeric_limits<std::uint64_t>::max());
  const std::uint64_t used = allocator_.used_bytes();
  return used >= limit ? 0 : std::min(allocator_.largest_free(), limit - used);
}

DeviceMemory EmulatedDevice::allocate(std::size_t bytes) {
  HEDDLE_CHECK(bytes > 0);
  const std::uint64_t available = memory_available();
  std::optional<BlockAllocator::Block> block;
  if (bytes <= available) {
    const std::scoped_lock lock(mutex_);
    block = allocator_.allocate(bytes);
  }
  if (!block) {
    throw Error(ErrorCode::internal,
                fmt::format("{}: out of memory: {} asked for, largest free block {}, {} in all; "
                            "make the pool smaller or the device's memory larger",
                            label(), format_bytes(bytes), format_bytes(available),
                            format_bytes(info_.memory_bytes)));
  }
  std::byte* address = arena_->data() + block->begin;
  if (options_.fill_allocations) std::memset(address, 0xFF, bytes);
  return {address, bytes};
}

void EmulatedDevice::free(const DeviceMemory& memory) {
  const auto offset = static_cast<std::uint64_t>(memory.address - arena_->data());
  const std::scoped_lock lock(mutex_);
  const auto block = allocator_.find(offset);
  if (!block || block->begin != offset || block->bytes != memory.bytes) {
    throw Error(ErrorCode::internal,
                fmt::format("{}: {} at {} is freed, but was not allocated here, or is free already",
                            label(), format_bytes(memory.bytes), fmt::ptr(memory.address)));
  }
  // Before the block can be allocated again.
  arena_->discard(block->begin, block->bytes);
  HEDDLE_CHECK(allocator_.release(offset));
}

void* EmulatedDevice::allocate_host(std::size_t bytes) {
  HEDDLE_CHECK(bytes > 0);
  void* address = ::operator new(bytes, host_alignment, std::nothrow);
  if (address == nullptr) {
    throw Error(ErrorCode::internal,
                fmt::format("{}: no host memory: {} asked for", label(), format_bytes(bytes)));
  }
  const std::scoped_lock lock(mutex_);
  host_.emplace(address, bytes);
  return address;
}

void EmulatedDevice::free_host(void* address) {
  {
    const std::scoped_lock lock(mutex_);
    if (host_.erase(address) == 0) {
      throw Error(ErrorCode::internal,
                  fmt::format("{}: host memory at {} is freed, but was not allocated here", label(),
                              fmt::ptr(address)));
    }
  }
  ::operator delete(address, host_alignment);
}

/// All host memory is alike to it, but who registers twice or forgets is found out as on a GPU.
void EmulatedDevice::register_host(void* address, std::size_t bytes) {
  const std::scoped_lock lock(mutex_);
  if (!registered_.emplace(address, bytes).second) {
    throw Error(ErrorCode::internal, fmt::format("{}: host memory at {} is registered already",
                                                 label(), fmt::ptr(address)));
  }
}

void EmulatedDevice::unregister_host(void* address) {
  const std::scoped_lock lock(mutex_);
  if (registered_.erase(address) == 0) {
    throw Error(ErrorCode::internal, fmt::format("{}: host memory at {} was not registered here",
                                                 label(), fmt::ptr(address)));
  }
}

std::unique_ptr<Stream> EmulatedDevice::create_stream(StreamPriority priority, Notifier* notifier) {
  if (streams_.fetch_add(1, std::memory_order_relaxed) >= options_.stream_capacity) {
    streams_.fetch_sub(1, std::memory_order_relaxed);
    throw Error(ErrorCode::internal, fmt::format("{}: all {} streams are in use "
                                                 "(EmulatedOptions::stream_capacity)",
                                                 label(), options_.stream_capacity));
  }
  const std::uint64_t id = streams_created_.fetch_add(1, std::memory_order_relaxed) + 1;
  try {
    return std::make_unique<EmulatedStream>(*this, id, priority, notifier);
  } catch (const std::exception& e) {
    streams_.fetch_sub(1, std::memory_order_relaxed);
    throw Error(ErrorCode::internal,
                fmt::format("{}: no thread for stream {}: {}", label(), id, e.what()));
  }
}

std::unique_ptr<Event> EmulatedDevice::create_event() {
  return std::make_unique<EmulatedEvent>(*this, arena_);
}

bool EmulatedDevice::can_access_peer(const Device& other) const {
  const auto* peer = dynamic_cast<const EmulatedDevice*>(&other);
  return peer != nullptr && peer != this && !options_.faults.refuse_peers &&
         !peer->options_.faults.refuse_peers;
}

bool EmulatedDevice::is_own(const void* address) const {
  // Compared as numbers: pointers into different mappings have no order.
  const auto number = reinterpret_cast<std::uintptr_t>(address);
  const auto data = reinterpret_cast<std::uintptr_t>(arena_->data());
  return number >= data && number - data < arena_->data_bytes();
}

std::optional<EmulatedDevice::MemoryOrigin> EmulatedDevice::origin_of(const void* address,
                                                                      std::size_t bytes) const {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  const std::scoped_lock lock(mutex_);
  if (is_own(address)) {
    const std::uint64_t offset = begin - reinterpret_cast<std::uintptr_t>(arena_->data());
    const auto block = allocator_.find(offset);
    if (block && bytes <= block->bytes - (offset - block->begin)) return MemoryOrigin::own;
  } else {
    const auto after = opened_.upper_bound(static_cast<const std::byte*>(address));
    if (after != opened_.begin()) {
      const auto& [base, opened] = *std::prev(after);
      const std::uint64_t offset = begin - reinterpret_cast<std::uintptr_t>(base);
      if (offset < opened.bytes && bytes <= opened.bytes - offset) return MemoryOrigin::opened;
    }
  }
  return std::nullopt;
}

EmulatedDevice::Route EmulatedDevice::route(const Destination& to, const Source& from,
                                            const CopyShape& shape, std::uint64_t stream) {
  const auto refuse = [&](const std::string& reason) {
    throw Error(ErrorCode::internal,
                fmt::format("{}, stream {}: copy of {} columns of {}: {}", label(), stream,
                            shape.columns, format_bytes(shape.column_bytes), reason));
  };
  const auto to_bytes = extent(shape, shape.destination_leading);
  const auto from_bytes = extent(shape, shape.source_leading);
  if (!to_bytes || !from_bytes || shape.destination_leading < shape.column_bytes ||
      shape.source_leading < shape.column_bytes) {
    refuse(fmt::format("leading dimensions {} (to) and {} (from) do not fit",
                       shape.destination_leading, shape.source_leading));
  }
  if (to.device != this && from.device != this) {
    refuse("neither end is memory of this stream's device");
  }
  bool is_peer = false;
  const auto check = [&](const void* address, std::size_t bytes, const Device* device,
                         std::string_view end) {
    if (device == nullptr) {
      if (address == nullptr || is_own(address)) {
        refuse(fmt::format("the {} {} is said to be host memory, but is {}", end, fmt::ptr(address),
                           address == nullptr ? "null" : "the device's"));
      }
      return;
    }
    if (device != this && !can_access_peer(*device)) {
      refuse(fmt::format("no access to device {} ({}); copy through the host", device->info().index,
                         name_of(device->info().backend)));
    }
    const auto& owner = static_cast<const EmulatedDevice&>(*device);
    const auto origin = owner.origin_of(address, bytes);
    if (!origin) {
      refuse(
          fmt::format("the {}, {} at {}, does not lie in one allocation of {} or one mapping "
                      "that it opened",
                      end, format_bytes(bytes), fmt::ptr(address), owner.label()));
    }
    is_peer = is_peer || device != this || origin == MemoryOrigin::opened;
  };
  check(to.address, *to_bytes, to.device, "destination");
  check(from.address, *from_bytes, from.device, "source");

  if (to.device == nullptr) return {&device_to_host_, "device to host"};
  if (from.device == nullptr) return {&host_to_device_, "host to device"};
  const auto to_begin = reinterpret_cast<std::uintptr_t>(to.address);
  const auto from_begin = reinterpret_cast<std::uintptr_t>(from.address);
  // Blocks of several columns may interleave without sharing a byte.
  if (shape.columns == 1 && to_begin < from_begin + *from_bytes &&
      from_begin < to_begin + *to_bytes) {
    refuse("source and destination overlap");
  }
  if (is_peer) return {&peer_, "between devices"};
  return {&local_, "within the device"};
}

IpcMemoryHandle EmulatedDevice::export_memory(const void* address) {
  const auto offset =
      static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - arena_->data());
  const std::scoped_lock lock(mutex_);
  const auto block = allocator_.find(offset);
  if (!block) {
    throw Error(ErrorCode::internal,
                fmt::format("{}: {} is exported, but lies in no allocation of this device (memory "
                            "opened from another process must be exported by its owner)",
                            label(), fmt::ptr(address)));
  }
  IpcMemoryHandle handle;
  handle.device = info_.uuid;
  handle.allocation = block->id;
  handle.offset = offset - block->begin;
  handle.bytes = block->bytes - handle.offset;
  handle.token = pack(MemoryToken{::getpid(), arena_->fd(), arena_->data_offset() + offset});
  return handle;
}

DeviceMemory EmulatedDevice::open_memory(const IpcMemoryHandle& handle) {
  const std::string what = fmt::format("{}: opening {} of device {}", label(),
                                       format_bytes(handle.bytes), to_string(handle.device));
  if (options_.faults.refuse_mappings) {
    throw Error(ErrorCode::communication, fmt::format("{}: injected fault: refused", what));
  }
  const auto token = unpack<MemoryToken>(handle.token);
  const PeerArena peer(static_cast<pid_t>(token.pid), static_cast<int>(token.fd), handle.device,
                       what);
  const std::uint64_t begin = peer.header().data_offset;
  const std::uint64_t end = begin + peer.header().data_bytes;
  if (handle.bytes == 0 || token.file_offset < begin || token.file_offset > end ||
      handle.bytes > end - token.file_offset) {
    throw Error(ErrorCode::communication, fmt::format("{}: the handle is damaged", what));
  }
  Mapping mapping(peer.fd(), token.file_offset, handle.bytes, true, what);
  std::byte* address = mapping.address();
  const std::scoped_lock lock(mutex_);
  opened_.emplace(address, Opened{std::move(mapping), handle.bytes});
  return {address, handle.bytes};
}

void EmulatedDevice::close_memory(const DeviceMemory& memory) {
  const std::scoped_lock lock(mutex_);
  if (opened_.erase(memory.address) == 0) {
    throw Error(ErrorCode::internal,
                fmt::format("{}: memory at {} is closed, but was not opened here", label(),
                            fmt::ptr(memory.address)));
  }
}

IpcEventHandle EmulatedDevice::export_event(const Event& event) {
  const auto* own = dynamic_cast<const EmulatedEvent*>(&event);
  if (own == nullptr || &own->device() != this || own->is_opened()) {
    throw Error(ErrorCode::internal,
                fmt::format("{}: only events that it created can be exported", label()));
  }
  IpcEventHandle handle;
  handle.device = info_.uuid;
  // Relaxed: the generation of a living event does not change.
  handle.token = pack(EventToken{::getpid(), arena_->fd(), own->slot_index(),
                                 own->words().slot->generation.load(std::memory_order_relaxed)});
  return handle;
}

std::unique_ptr<Event> EmulatedDevice::open_event(const IpcEventHandle& handle) {
  const std::string what =
      fmt::format("{}: opening an event of device {}", label(), to_string(handle.device));
  if (options_.faults.refuse_mappings) {
    throw Error(ErrorCode::communication, fmt::format("{}: injected fault: refused", what));
  }
  const auto token = unpack<EventToken>(handle.token);
  auto file = std::make_unique<const PeerArena>(static_cast<pid_t>(token.pid),
                                                static_cast<int>(token.fd), handle.device, what);
  if (token.slot >= file->header().event_capacity) {
    throw Error(ErrorCode::communication, fmt::format("{}: the handle is damaged", what));
  }
  const std::uint64_t offset =
      file->header().events_offset + std::uint64_t{token.slot} * sizeof(EventSlot);
  Mapping words(file->fd(), offset, sizeof(EventSlot), false, what);
  const auto* slot = reinterpret_cast<const EventSlot*>(words.address());
  // Acquire pairs with the release in SharedArena::acquire_slot().
  if (slot->generation.load(std::memory_order_acquire) != token.generation) {
    throw Error(ErrorCode::communication,
                fmt::format("{}: the exporter has destroyed the event", what));
  }
  return std::make_unique<EmulatedEvent>(
      *this, std::shared_ptr<const PeerEvent>(new PeerEvent{std::move(file), std::move(words)}));
}

}  // namespace heddle
