#include "node-runtime/device/emulated/emulated_device.hpp"

#include <cstring>
#include <exception>
#include <fmt/core.h>
#include <iterator>
#include <new>
#include <unistd.h>
#include <utility>

#include "base/assert.hpp"
#include "base/error.hpp"
#include "base/units.hpp"
#include "node-runtime/device/emulated/emulated_event.hpp"
#include "node-runtime/device/emulated/emulated_stream.hpp"
#include "node-runtime/device/ipc_token.hpp"
#include "node-runtime/device/populate.hpp"

namespace heddle {
namespace {

constexpr std::align_val_t host_alignment{4096};

/// Contents of this backend's tokens.
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
       {o.host_to_device_rate, o.device_to_host_rate, o.peer_rate, o.switch_rate, o.local_rate}) {
    require(rate >= 0, "a copy rate must be 0 or more", rate);
  }
  require(o.peer_latency_us >= 0, "peer_latency_us must be 0 or more", o.peer_latency_us);
  require(o.turn_us >= 0, "turn_us must be 0 or more", o.turn_us);
  require(o.places.devices_per_switch >= 0, "devices_per_switch must be 0 or more",
          o.places.devices_per_switch);
  require(o.places.switches_per_socket >= 0, "switches_per_socket must be 0 or more",
          o.places.switches_per_socket);
  require(o.latency_us >= 0, "latency_us must be 0 or more", o.latency_us);
  require(o.kernel_slowdown >= 1, "kernel_slowdown must be 1 or more", o.kernel_slowdown);
  require(o.queue_capacity >= 1, "queue_capacity must be 1 or more", o.queue_capacity);
  return o;
}

}  // namespace

EmulatedDevice::EmulatedDevice(std::int32_t index, const EmulatedOptions& options)
    : options_(checked(options)),
      arena_(std::make_shared<SharedArena>(options.memory_bytes + options.foreign_bytes,
                                           options.event_capacity,
                                           fmt::format("heddle-emulated-{}", index))),
      own_{&arena_->gpu(), &arena_->gpu(), 0},
      gate_(options.concurrent_kernels),
      foreign_(options.foreign_bytes) {
  info_.name = fmt::format("emulated {}", index);
  info_.kind = "emulated";
  info_.backend = DeviceBackend::emulated;
  info_.index = index;
  info_.uuid = arena_->uuid();
  info_.notifies = true;
  set_memory(options.memory_bytes,
             options.faults.allocation_bytes_max.value_or(options.memory_bytes));
  add_segment(arena_->data(), options.memory_bytes);
}

EmulatedDevice::~EmulatedDevice() {
  check_unused();
  give_back_host();
  arena_->close();
}

std::string EmulatedDevice::label() const {
  return fmt::format("emulated device {}", info_.index);
}

DeviceMemory EmulatedDevice::allocate(std::size_t bytes) {
  if (bytes > options_.faults.taken_beyond.value_or(bytes)) {
    throw Error(ErrorCode::usage, fmt::format("{}: {} were refused; another process has taken "
                                              "memory since",
                                              label(), format_bytes(bytes)));
  }
  const DeviceMemory memory = PooledDevice::allocate(bytes);
  if (options_.fill_allocations) std::memset(memory.address, 0xFF, bytes);
  return memory;
}

void EmulatedDevice::discard(const DeviceMemory& memory) {
  arena_->discard(offset_of(memory.address), memory.bytes);
}

void* EmulatedDevice::take_host(std::size_t bytes) {
  void* address = ::operator new(bytes, host_alignment, std::nothrow);
  if (address == nullptr) {
    throw Error(ErrorCode::internal,
                fmt::format("{}: no host memory: {} asked for", label(), format_bytes(bytes)));
  }
  return address;
}

void EmulatedDevice::return_host(void* address) {
  ::operator delete(address, host_alignment);
}

/// Populates the pages, as page-locking does, so that the first copy does not wait for page faults.
void EmulatedDevice::pin(void* address, std::size_t bytes) {
  populate_pages(address, bytes);
}

std::unique_ptr<Stream> EmulatedDevice::create_stream(StreamPriority priority, Notifier* notifier) {
  if (stream_created() > options_.stream_capacity) {
    stream_destroyed();
    throw Error(ErrorCode::internal, fmt::format("{}: all {} streams are in use "
                                                 "(EmulatedOptions::stream_capacity)",
                                                 label(), options_.stream_capacity));
  }
  const std::uint64_t id = next_stream();
  try {
    return std::make_unique<EmulatedStream>(*this, id, priority, notifier);
  } catch (const std::exception& e) {
    stream_destroyed();
    throw Error(ErrorCode::internal,
                fmt::format("{}: no thread for stream {}: {}", label(), id, e.what()));
  }
}

std::unique_ptr<Stream> EmulatedDevice::adopt_stream(void* native) {
  throw Error(ErrorCode::usage,
              fmt::format("{}: the native stream {} is no stream of an emulated device, which has "
                          "none; use create_stream()",
                          label(), fmt::ptr(native)));
}

std::unique_ptr<Event> EmulatedDevice::create_event(EventTiming timing) {
  return std::make_unique<EmulatedEvent>(*this, arena_, timing);
}

bool EmulatedDevice::can_access_peer(const Device& other) const {
  const auto* peer = dynamic_cast<const EmulatedDevice*>(&other);
  return peer != nullptr && peer != this && !options_.faults.refuse_peers &&
         !peer->options_.faults.refuse_peers;
}

// ---- links -----------------------------------------------------------------------------------

EmulatedPresence EmulatedDevice::presence(std::int32_t gpu) const {
  return {process_, arena_->fd(), arena_->uuid(), gpu};
}

void EmulatedDevice::join(std::shared_ptr<const HostGpus> host, std::int32_t gpu,
                          std::int32_t sharer) {
  const HostGpus::Gpu* const found = host->find(gpu);
  HEDDLE_CHECK(found != nullptr && streams() == 0, "{} becomes GPU {} of its host", label(), gpu);
  host_ = std::move(host);
  info_.uuid = found->uuid;
  arena_->set_uuid(found->uuid);
  own_ = end_of(found);
  info_.declared = DeclaredPlace{options_.places.socket(gpu), own_.pci_switch};
  if (found->sharers > 1 && options_.turn_us > 0) {
    turns_ = EmulatedTurns(*found->words, sharer, options_.turn_us);
  }
}

EmulatedDevice::End EmulatedDevice::end_of(const HostGpus::Gpu* gpu) const {
  if (gpu == nullptr) return {};
  return {gpu->words, host_->first_of_switch(*gpu).words, options_.places.pci_switch(gpu->number)};
}

EmulatedDevice::End EmulatedDevice::end_of(const Device& device, const void* address) {
  // Peers have the same backend.
  const auto& owner = static_cast<const EmulatedDevice&>(device);
  const std::scoped_lock lock(owner.mutex_);
  const auto after = owner.mappings_.upper_bound(static_cast<const std::byte*>(address));
  if (after == owner.mappings_.begin()) return owner.own_;
  const auto& [base, opened] = *std::prev(after);
  const std::uint64_t offset =
      reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(base);
  return offset < opened.bytes ? opened.end : owner.own_;
}

Link EmulatedDevice::link(GpuWords& words, GpuWords::Line line) const {
  using enum GpuWords::Line;
  double rate = options_.peer_rate;
  if (line == to_host) rate = options_.device_to_host_rate;
  if (line == from_host) rate = options_.host_to_device_rate;
  if (line == within) rate = options_.local_rate;
  if (line == switch_out || line == switch_in) rate = options_.switch_rate;
  return {rate, words.free_at(line)};
}

LinkPath EmulatedDevice::path_between(const End& from, const End& to) const {
  using enum GpuWords::Line;
  LinkPath path;
  if (from == to) {
    path.add(link(*from.words, within));
    return path;
  }
  const bool leaves_switch =
      from.words != nullptr && to.words != nullptr && from.pci_switch != to.pci_switch;
  if (from.words != nullptr) path.add(link(*from.words, out));
  if (leaves_switch) path.add(link(*from.switch_words, switch_out));
  if (leaves_switch) path.add(link(*to.switch_words, switch_in));
  if (to.words != nullptr) path.add(link(*to.words, in));
  return path;
}

/// By the lanes that copies between devices take.
LinkPath EmulatedDevice::path_to_host(bool leaves) const {
  using enum GpuWords::Line;
  LinkPath path;
  path.add(link(*own_.words, leaves ? to_host : from_host));
  path.add(link(*own_.words, leaves ? out : in));
  path.add(link(*own_.switch_words, leaves ? switch_out : switch_in));
  return path;
}

EmulatedDevice::Route EmulatedDevice::route(const Destination& to, const Source& from,
                                            const CopyShape& shape, std::uint64_t stream) {
  const CopyEnds ends = check_copy(to, from, shape, stream);
  const bool is_mapped = ends.to == MemoryOrigin::opened || ends.from == MemoryOrigin::opened;
  Route made{{}, {}, is_mapped, false};
  if (ends.to == MemoryOrigin::host) {
    made.links = path_to_host(true);
    made.direction = "device to host";
    return made;
  }
  if (ends.from == MemoryOrigin::host) {
    made.links = path_to_host(false);
    made.direction = "host to device";
    return made;
  }
  const End there = end_of(*to.device, to.address);
  const End here = end_of(*from.device, from.address);
  made.links = path_between(here, there);
  made.is_between_devices = here != there;
  made.direction = made.is_between_devices ? "between devices" : "within the device";
  return made;
}

LinkPath EmulatedDevice::route(const KernelMemory& memory) const {
  if (memory.device == nullptr) return path_to_host(memory.is_written);
  const End there = end_of(*memory.device, memory.address);
  return memory.is_written ? path_between(own_, there) : path_between(there, own_);
}

void EmulatedDevice::unmap(const std::byte* address) {
  mappings_.erase(address);
}

std::byte* EmulatedDevice::allocate_foreign(std::size_t bytes) {
  const std::scoped_lock lock(mutex_);
  const auto block = foreign_.allocate(bytes);
  if (!block) {
    throw Error(ErrorCode::internal,
                fmt::format("{}: no memory for others: {} asked for, {} in all", label(),
                            format_bytes(bytes), format_bytes(options_.foreign_bytes)));
  }
  return arena_->data() + info_.memory_bytes + block->begin;
}

void EmulatedDevice::free_foreign(const std::byte* address) {
  const std::scoped_lock lock(mutex_);
  HEDDLE_CHECK(foreign_.release(offset_of(address) - info_.memory_bytes));
}

std::optional<PooledDevice::Foreign> EmulatedDevice::find_foreign(const void* address) const {
  const std::uint64_t offset = offset_of(address) - info_.memory_bytes;
  if (offset >= options_.foreign_bytes) return std::nullopt;
  const std::scoped_lock lock(mutex_);
  const auto block = foreign_.find(offset);
  if (!block) return std::nullopt;
  return Foreign{arena_->data() + info_.memory_bytes + block->begin, block->bytes, block->id};
}

IpcMemoryHandle EmulatedDevice::export_memory(const void* address) {
  IpcMemoryHandle handle = handle_of(address);
  if (options_.faults.refuse_sharing && adopted(address)) {
    throw Error(ErrorCode::communication,
                fmt::format("{}: injected fault: memory of others is not shared", label()));
  }
  handle.token =
      pack(MemoryToken{process_, arena_->fd(), arena_->data_offset() + offset_of(address)});
  return handle;
}

DeviceMemory EmulatedDevice::open_memory(const IpcMemoryHandle& handle) {
  const std::string what = opening(handle);
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
  End gpu;
  if (host_ != nullptr) gpu = end_of(host_->find(handle.device));
  const std::scoped_lock lock(mutex_);
  mappings_.emplace(address, Opened{std::move(mapping), handle.bytes, gpu});
  return add_opened(address, handle.bytes);
}

IpcEventHandle EmulatedDevice::export_event(const Event& event) {
  const auto& own = exported<EmulatedEvent>(event);
  IpcEventHandle handle;
  handle.device = info_.uuid;
  // Relaxed: the generation of a living event does not change.
  handle.token = pack(EventToken{process_, arena_->fd(), own.slot_index(),
                                 own.words().slot->generation.load(std::memory_order_relaxed)});
  return handle;
}

std::unique_ptr<Event> EmulatedDevice::open_event(const IpcEventHandle& handle) {
  const std::string what = opening(handle);
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
