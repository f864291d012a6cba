#include "node-runtime/device/cuda/cuda_device.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <fmt/format.h>
#include <iterator>
#include <unistd.h>

#include "base/assert.hpp"
#include "base/error.hpp"
#include "base/units.hpp"
#include "node-runtime/device/backend_support.hpp"
#include "node-runtime/device/cuda/cuda_event.hpp"
#include "node-runtime/device/cuda/cuda_stream.hpp"

namespace heddle {
namespace {

/// What this backend's tokens hold.
struct MemoryToken {
  cudaIpcMemHandle_t pool;
  std::int64_t pid;
  std::uint64_t pool_bytes;
  std::uint64_t offset;  ///< in the pool
};
struct EventToken {
  cudaIpcEventHandle_t event;
  std::int64_t pid;
};

/// CLOCK_MONOTONIC.
std::int64_t now_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

/// CUDA tells the time between two events in a float of milliseconds: to 2 us over this long.
constexpr std::int64_t anchor_life_ns = 30'000'000'000;

/// What kernels, the libraries' handles and CUDA itself take beside the pool: workspaces of a few
/// streams, scratch for panels of large tiles.
std::uint64_t kept_free(std::uint64_t total) {
  return std::max<std::uint64_t>(std::uint64_t{1} << 30, total / 32);
}

}  // namespace

CurrentGpu::CurrentGpu(int gpu) {
  static_cast<void>(cudaGetDevice(&former_));
  if (former_ != gpu) static_cast<void>(cudaSetDevice(gpu));
}

CurrentGpu::~CurrentGpu() {
  int now = 0;
  static_cast<void>(cudaGetDevice(&now));
  if (now != former_) static_cast<void>(cudaSetDevice(former_));
}

ClockAnchor::ClockAnchor(int gpu, cudaStream_t stream) {
  const CurrentGpu current(gpu);
  if (cudaEventCreate(&event) != cudaSuccess) return;
  static_cast<void>(cudaEventRecord(event, stream));
  static_cast<void>(cudaEventSynchronize(event));
  host_ns = now_ns();
}

ClockAnchor::~ClockAnchor() {
  if (event != nullptr) static_cast<void>(cudaEventDestroy(event));
}

// ---- life ------------------------------------------------------------------------------------

CudaDevice::CudaDevice(std::int32_t index, std::int32_t gpu, const CudaOptions& options)
    : gpu_(gpu),
      exceptions_at_start_(std::uncaught_exceptions()),
      products_(kernel::cuda::built_in_product_choices()) {
  info_.index = index;
  info_.backend = DeviceBackend::cuda;
  info_.name = fmt::format("GPU {}", gpu);
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, gpu), "cudaGetDeviceProperties");
  info_.name = properties.name;
  info_.kind = info_.name;
  for (const GpuProducts& measured : options.products) {
    const bool holds_here =
        measured.gpu == info_.name && measured.library == kernel::cuda::product_library();
    if (holds_here && !measured.choices.empty()) products_ = measured.choices;
  }
  std::memcpy(info_.uuid.bytes.data(), &properties.uuid, info_.uuid.bytes.size());
  const auto same = std::count(options.gpus.begin(), options.gpus.end(), gpu);
  // Several devices on one GPU are different devices all the same.
  if (same > 1) info_.uuid.bytes.back() ^= static_cast<std::uint8_t>(index + 1);
  const CurrentGpu current(gpu_);
  check(cudaFree(nullptr), "opening the GPU");
  take_pool(options);
  check(cudaStreamCreateWithFlags(&clock_stream_, cudaStreamNonBlocking),
        "cudaStreamCreateWithFlags");
  anchor_ = std::make_shared<const ClockAnchor>(gpu_, clock_stream_);
}

void CudaDevice::take_pool(const CudaOptions& options) {
  std::size_t available = 0;
  std::size_t total = 0;
  check(cudaMemGetInfo(&available, &total), "cudaMemGetInfo");
  const std::uint64_t kept = kept_free(total);
  std::uint64_t bytes = 0;
  if (options.memory_bytes.has_value()) {
    bytes = *options.memory_bytes;
    if (bytes > available) {
      throw Error(
          ErrorCode::usage,
          fmt::format("{}: devices.memory asks for {}, but {} of {} are free (another "
                      "process may hold the rest); ask for less, or write 'memory: auto'",
                      label(), format_bytes(bytes), format_bytes(available), format_bytes(total)));
    }
  } else {
    const std::uint64_t share = total / static_cast<std::uint64_t>(std::max(1, options.sharers));
    const std::uint64_t usable = std::min<std::uint64_t>(share, available);
    if (usable < kept + (std::uint64_t{64} << 20)) {
      throw Error(
          ErrorCode::usage,
          fmt::format("{}: {} of {} are free, {} node{} use it, and each needs {} beside its "
                      "tiles; end what else uses the GPU, or choose others with "
                      "CUDA_VISIBLE_DEVICES",
                      label(), format_bytes(available), format_bytes(total), options.sharers,
                      options.sharers == 1 ? "" : "s", format_bytes(kept)));
    }
    bytes = usable - kept;
  }
  bytes = std::max<std::uint64_t>(BlockAllocator::alignment,
                                  bytes / BlockAllocator::alignment * BlockAllocator::alignment);
  void* memory = nullptr;
  check(cudaMalloc(&memory, bytes), fmt::format("cudaMalloc of {}", format_bytes(bytes)));
  pool_ = static_cast<std::byte*>(memory);
  allocator_ = BlockAllocator(bytes);
  info_.memory_bytes = bytes;
}

CudaDevice::~CudaDevice() {
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
  // Abandoned streams may still be at work. After a fault of the GPU all of these calls fail, and
  // the end of the process is what gives the memory back.
  const CurrentGpu current(gpu_);
  if (left_.load(std::memory_order_relaxed)) return;
  static_cast<void>(cudaDeviceSynchronize());
  for (const auto& [address, bytes] : host_) static_cast<void>(cudaFreeHost(address));
  for (const auto& [address, bytes] : registered_) static_cast<void>(cudaHostUnregister(address));
  anchor_.reset();
  if (clock_stream_ != nullptr) static_cast<void>(cudaStreamDestroy(clock_stream_));
  static_cast<void>(cudaFree(pool_));
  static_cast<void>(cudaGetLastError());
}

std::string CudaDevice::label() const {
  return fmt::format("GPU {} ({})", gpu_, info_.name);
}

void CudaDevice::check(cudaError_t status, std::string_view operation) const {
  if (status == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // what does not stay is told once
  throw Error(ErrorCode::internal,
              fmt::format("{}: {}: {} ({})", label(), operation, cudaGetErrorString(status),
                          cudaGetErrorName(status)));
}

// ---- memory ----------------------------------------------------------------------------------

std::uint64_t CudaDevice::memory_available() const {
  const std::scoped_lock lock(mutex_);
  return allocator_.largest_free();
}

DeviceMemory CudaDevice::allocate(std::size_t bytes) {
  HEDDLE_CHECK(bytes > 0);
  const std::scoped_lock lock(mutex_);
  const auto block = allocator_.allocate(bytes);
  if (!block) {
    throw Error(ErrorCode::internal,
                fmt::format("{}: out of memory: {} asked for, largest free block {}, {} in all; "
                            "make the pool smaller or the device's memory larger",
                            label(), format_bytes(bytes), format_bytes(allocator_.largest_free()),
                            format_bytes(info_.memory_bytes)));
  }
  return {pool_ + block->begin, bytes};
}

void CudaDevice::free(const DeviceMemory& memory) {
  const auto offset = static_cast<std::uint64_t>(memory.address - pool_);
  const std::scoped_lock lock(mutex_);
  const auto block = allocator_.find(offset);
  if (!block || block->begin != offset || block->bytes != memory.bytes) {
    throw Error(ErrorCode::internal,
                fmt::format("{}: {} at {} is freed, but was not allocated here, or is free already",
                            label(), format_bytes(memory.bytes), fmt::ptr(memory.address)));
  }
  HEDDLE_CHECK(allocator_.release(offset));
}

void* CudaDevice::allocate_host(std::size_t bytes) {
  HEDDLE_CHECK(bytes > 0);
  const CurrentGpu current(gpu_);
  void* address = nullptr;
  // Portable: page-locked for the node's other GPUs too.
  check(cudaHostAlloc(&address, bytes, cudaHostAllocPortable),
        fmt::format("cudaHostAlloc of {}", format_bytes(bytes)));
  const std::scoped_lock lock(mutex_);
  host_.emplace(address, bytes);
  return address;
}

void CudaDevice::free_host(void* address) {
  {
    const std::scoped_lock lock(mutex_);
    if (host_.erase(address) == 0) {
      throw Error(ErrorCode::internal,
                  fmt::format("{}: host memory at {} is freed, but was not allocated here", label(),
                              fmt::ptr(address)));
    }
  }
  static_cast<void>(cudaFreeHost(address));
}

void CudaDevice::register_host(void* address, std::size_t bytes) {
  const CurrentGpu current(gpu_);
  check(cudaHostRegister(address, bytes, cudaHostRegisterPortable),
        fmt::format("cudaHostRegister of {}", format_bytes(bytes)));
  const std::scoped_lock lock(mutex_);
  registered_.emplace(address, bytes);
}

void CudaDevice::unregister_host(void* address) {
  {
    const std::scoped_lock lock(mutex_);
    if (registered_.erase(address) == 0) {
      throw Error(ErrorCode::internal, fmt::format("{}: host memory at {} was not registered here",
                                                   label(), fmt::ptr(address)));
    }
  }
  const CurrentGpu current(gpu_);
  static_cast<void>(cudaHostUnregister(address));
}

bool CudaDevice::is_own(const void* address) const {
  // Compared as numbers: pointers into different allocations have no order.
  const auto number = reinterpret_cast<std::uintptr_t>(address);
  const auto data = reinterpret_cast<std::uintptr_t>(pool_);
  return number >= data && number - data < info_.memory_bytes;
}

bool CudaDevice::holds(const void* address, std::size_t bytes) const {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  const std::scoped_lock lock(mutex_);
  if (is_own(address)) {
    const std::uint64_t offset = begin - reinterpret_cast<std::uintptr_t>(pool_);
    const auto block = allocator_.find(offset);
    return block && bytes <= block->bytes - (offset - block->begin);
  }
  const auto after = opened_.upper_bound(
      const_cast<std::byte*>(static_cast<const std::byte*>(address)));  // looked up, no more
  if (after == opened_.begin()) return false;
  const auto& [base, opened] = *std::prev(after);
  const std::uint64_t offset = begin - reinterpret_cast<std::uintptr_t>(base);
  return offset < opened.bytes && bytes <= opened.bytes - offset;
}

std::string_view CudaDevice::route(const Destination& to, const Source& from,
                                   const CopyShape& shape, std::uint64_t stream) const {
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
  const auto check_end = [&](const void* address, std::size_t bytes, const Device* device,
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
    const auto& owner = static_cast<const CudaDevice&>(*device);
    if (!owner.holds(address, bytes)) {
      refuse(
          fmt::format("the {}, {} at {}, does not lie in one allocation of {} or one mapping "
                      "that it opened",
                      end, format_bytes(bytes), fmt::ptr(address), owner.label()));
    }
  };
  check_end(to.address, *to_bytes, to.device, "destination");
  check_end(from.address, *from_bytes, from.device, "source");
  if (to.device == nullptr) return "copy to the host";
  if (from.device == nullptr) return "copy from the host";
  const auto to_begin = reinterpret_cast<std::uintptr_t>(to.address);
  const auto from_begin = reinterpret_cast<std::uintptr_t>(from.address);
  // Blocks of several columns may interleave without sharing a byte.
  if (shape.columns == 1 && to_begin < from_begin + *from_bytes &&
      from_begin < to_begin + *to_bytes) {
    refuse("source and destination overlap");
  }
  return to.device == from.device ? "copy within the GPU" : "copy between GPUs";
}

// ---- streams and events ----------------------------------------------------------------------

std::unique_ptr<Stream> CudaDevice::create_stream(StreamPriority priority, Notifier*) {
  const std::uint64_t id = streams_created_.fetch_add(1, std::memory_order_relaxed) + 1;
  auto stream = std::make_unique<CudaStream>(*this, id, priority);
  streams_.fetch_add(1, std::memory_order_relaxed);
  return stream;
}

std::unique_ptr<Event> CudaDevice::create_event() {
  return std::make_unique<CudaEvent>(*this);
}

std::int64_t CudaDevice::completed_ns(cudaEvent_t event) {
  const std::int64_t now = now_ns();
  std::shared_ptr<const ClockAnchor> anchor;
  {
    const std::scoped_lock lock(mutex_);
    if (now - anchor_->host_ns > anchor_life_ns) {
      anchor_ = std::make_shared<const ClockAnchor>(gpu_, clock_stream_);
    }
    anchor = anchor_;
  }
  float ms = 0;
  if (cudaEventElapsedTime(&ms, anchor->event, event) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    return now;
  }
  // An anchor younger than the event gives a negative time.
  return std::min(now, anchor->host_ns + static_cast<std::int64_t>(static_cast<double>(ms) * 1e6));
}

// ---- peers and other processes ---------------------------------------------------------------

void CudaDevice::enable_peer(const CudaDevice& peer) const {
  const CurrentGpu current(gpu_);
  const cudaError_t status = cudaDeviceEnablePeerAccess(peer.gpu_, 0);
  static_cast<void>(cudaGetLastError());
  if (status != cudaErrorPeerAccessAlreadyEnabled) check(status, "cudaDeviceEnablePeerAccess");
}

bool CudaDevice::can_access_peer(const Device& other) const {
  const auto* peer = dynamic_cast<const CudaDevice*>(&other);
  if (peer == nullptr || peer == this) return false;
  if (peer->gpu_ == gpu_) return true;
  int there = 0;
  int back = 0;
  check(cudaDeviceCanAccessPeer(&there, gpu_, peer->gpu_), "cudaDeviceCanAccessPeer");
  check(cudaDeviceCanAccessPeer(&back, peer->gpu_, gpu_), "cudaDeviceCanAccessPeer");
  if (there == 0 || back == 0) return false;
  enable_peer(*peer);
  peer->enable_peer(*this);
  return true;
}

IpcMemoryHandle CudaDevice::export_memory(const void* address) {
  const auto offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - pool_);
  std::optional<BlockAllocator::Block> block;
  {
    const std::scoped_lock lock(mutex_);
    if (is_own(address)) block = allocator_.find(offset);
  }
  if (!block) {
    throw Error(ErrorCode::internal,
                fmt::format("{}: {} is exported, but lies in no allocation of this device (memory "
                            "opened from another process must be exported by its owner)",
                            label(), fmt::ptr(address)));
  }
  const CurrentGpu current(gpu_);
  MemoryToken token{{}, ::getpid(), info_.memory_bytes, offset};
  check(cudaIpcGetMemHandle(&token.pool, pool_), "cudaIpcGetMemHandle");
  IpcMemoryHandle handle;
  handle.device = info_.uuid;
  handle.allocation = block->id;
  handle.offset = offset - block->begin;
  handle.bytes = block->bytes - handle.offset;
  handle.token = pack(token);
  return handle;
}

DeviceMemory CudaDevice::open_memory(const IpcMemoryHandle& handle) {
  const std::string what = fmt::format("{}: opening {} of device {}", label(),
                                       format_bytes(handle.bytes), to_string(handle.device));
  auto token = unpack<MemoryToken>(handle.token);
  if (token.pid == ::getpid()) {
    throw Error(ErrorCode::communication,
                fmt::format("{}: it belongs to this very process, which uses its address", what));
  }
  if (handle.bytes == 0 || token.offset > token.pool_bytes ||
      handle.bytes > token.pool_bytes - token.offset) {
    throw Error(ErrorCode::communication, fmt::format("{}: the handle is damaged", what));
  }
  const std::uint64_t offset = std::exchange(token.offset, 0);
  const IpcToken key = pack(token);  // the same for all pieces of a pool
  const std::scoped_lock lock(mutex_);
  Mapped& mapped = mapped_[key];
  if (mapped.base == nullptr) {
    const CurrentGpu current(gpu_);
    void* base = nullptr;
    const cudaError_t status =
        cudaIpcOpenMemHandle(&base, token.pool, cudaIpcMemLazyEnablePeerAccess);
    if (status != cudaSuccess) {
      static_cast<void>(cudaGetLastError());
      mapped_.erase(key);
      throw Error(ErrorCode::communication,
                  fmt::format("{}: cudaIpcOpenMemHandle: {} ({})", what, cudaGetErrorString(status),
                              cudaGetErrorName(status)));
    }
    mapped.base = static_cast<std::byte*>(base);
    mapped.bytes = token.pool_bytes;
  }
  std::byte* address = mapped.base + offset;
  Opened& opened = opened_[address];
  opened.bytes = std::max(opened.bytes, handle.bytes);
  opened.pool = key;
  ++opened.count;
  ++mapped.opened;
  return {address, handle.bytes};
}

void CudaDevice::close_memory(const DeviceMemory& memory) {
  const std::scoped_lock lock(mutex_);
  const auto found = opened_.find(memory.address);
  if (found == opened_.end()) {
    throw Error(ErrorCode::internal,
                fmt::format("{}: memory at {} is closed, but was not opened here", label(),
                            fmt::ptr(memory.address)));
  }
  const IpcToken key = found->second.pool;
  if (--found->second.count == 0) opened_.erase(found);
  Mapped& mapped = mapped_.at(key);
  if (--mapped.opened > 0) return;
  const CurrentGpu current(gpu_);
  std::byte* base = mapped.base;
  mapped_.erase(key);
  // A stream that waits for ever may still use it, and CUDA would wait for that stream.
  if (left_.load(std::memory_order_relaxed)) return;
  check(cudaIpcCloseMemHandle(base), "cudaIpcCloseMemHandle");
}

IpcEventHandle CudaDevice::export_event(const Event& event) {
  const auto* own = dynamic_cast<const CudaEvent*>(&event);
  if (own == nullptr || &own->device() != this || own->opened() != nullptr) {
    throw Error(ErrorCode::internal,
                fmt::format("{}: only events that it created can be exported", label()));
  }
  const CurrentGpu current(gpu_);
  EventToken token{{}, ::getpid()};
  check(cudaIpcGetEventHandle(&token.event, own->shared()), "cudaIpcGetEventHandle");
  IpcEventHandle handle;
  handle.device = info_.uuid;
  handle.token = pack(token);
  return handle;
}

std::unique_ptr<Event> CudaDevice::open_event(const IpcEventHandle& handle) {
  const std::string what =
      fmt::format("{}: opening an event of device {}", label(), to_string(handle.device));
  const auto token = unpack<EventToken>(handle.token);
  if (token.pid == ::getpid()) {
    throw Error(
        ErrorCode::communication,
        fmt::format("{}: it belongs to this very process, which uses the event itself", what));
  }
  const CurrentGpu current(gpu_);
  cudaEvent_t event = nullptr;
  const cudaError_t status = cudaIpcOpenEventHandle(&event, token.event);
  if (status != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    throw Error(ErrorCode::communication,
                fmt::format("{}: cudaIpcOpenEventHandle: {} ({})", what, cudaGetErrorString(status),
                            cudaGetErrorName(status)));
  }
  return std::make_unique<CudaEvent>(
      *this, std::make_shared<const OpenedEvent>(event, static_cast<pid_t>(token.pid)));
}

}  // namespace heddle
