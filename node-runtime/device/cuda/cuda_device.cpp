#include "node-runtime/device/cuda/cuda_device.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <exception>
#include <fmt/format.h>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <unistd.h>
#include <utility>

#include "base/assert.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/units.hpp"
#include "node-runtime/device/cuda/cuda_allocation.hpp"
#include "node-runtime/device/cuda/cuda_event.hpp"
#include "node-runtime/device/cuda/cuda_stream.hpp"
#include "node-runtime/device/cuda/driver.hpp"
#include "node-runtime/device/ipc_token.hpp"
#include "node-runtime/device/populate.hpp"

namespace heddle {
namespace {

/// Contents of this backend's tokens.
struct MemoryToken {
  cudaIpcMemHandle_t allocation;
  std::int64_t pid;
  std::uint64_t bytes;   ///< of the allocation
  std::uint64_t offset;  ///< in it
};
struct EventToken {
  cudaIpcEventHandle_t event;
  std::int64_t pid;
};

/// cudaEventElapsedTime returns float milliseconds: its error stays below 2 us for this long.
constexpr std::int64_t anchor_life_ns = 30'000'000'000;

/// Memory left for kernels, library handles and CUDA itself: workspaces of a few streams, scratch
/// for panels of large tiles.
std::uint64_t kept_free(std::uint64_t total) {
  return std::max<std::uint64_t>(std::uint64_t{1} << 30, total / 32);
}

/// Least that is taken at a time: small pieces share it, and mappings of other processes.
constexpr std::uint64_t segment_bytes_min = std::uint64_t{64} << 20;

/// Whether this process has abandoned a GPU; all numbers from the last one on share a flag.
std::atomic<bool>& left(int gpu) {
  static std::array<std::atomic<bool>, 64> gpus{};
  return gpus.at(std::min(static_cast<std::size_t>(gpu), gpus.size() - 1));
}

/// Host memory that this process has page-locked. It is page-locked for all its GPUs and may be
/// registered only once, although every device may be asked to.
class HostPins {
 public:
  /// On failure throws the error that `check` makes.
  template <class Check>
  void pin(void* address, std::size_t bytes, const Check& check) {
    const std::scoped_lock lock(mutex_);
    auto& count = counts_[{address, bytes}];
    if (count == 0) {
      populate_pages(address, bytes);
      const cudaError_t status =
          cudaHostRegister(address, bytes, cudaHostRegisterPortable | cudaHostRegisterMapped);
      if (status != cudaSuccess) counts_.erase({address, bytes});
      check(status);
    }
    ++counts_[{address, bytes}];
  }
  void unpin(void* address) {
    const std::scoped_lock lock(mutex_);
    const auto found = counts_.lower_bound({address, 0});
    if (found == counts_.end() || found->first.first != address || --found->second > 0) return;
    counts_.erase(found);
    static_cast<void>(cudaHostUnregister(address));
  }

 private:
  std::mutex mutex_;
  std::map<std::pair<void*, std::size_t>, int> counts_;
};

HostPins& host_pins() {
  static HostPins pins;
  return pins;
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
    : gpu_(gpu), products_(kernel::cuda::built_in_product_choices()) {
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
  info_.pci_address = fmt::format("{:04x}:{:02x}:{:02x}.0", properties.pciDomainID,
                                  properties.pciBusID, properties.pciDeviceID);
  const auto same = std::count(options.gpus.begin(), options.gpus.end(), gpu);
  // Several devices on one GPU need distinct identities.
  if (same > 1) info_.uuid.bytes.back() ^= static_cast<std::uint8_t>(index + 1);
  const CurrentGpu current(gpu_);
  const cudaError_t opened = cudaFree(nullptr);
  check(opened, opened != cudaErrorMemoryAllocation
                    ? "opening the GPU"
                    : "opening the GPU, which other processes use; with MPS, a smaller "
                      "CUDA_DEVICE_MAX_CONNECTIONS (8 for four processes) may be the remedy");
  cudaStream_t clock = nullptr;
  check(cudaStreamCreateWithFlags(&clock, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  clock_stream_.reset(clock);
  anchor_ = std::make_shared<const ClockAnchor>(gpu_, clock);
  count_memory(options);
}

/// Memory that this device may take. It takes it when it is asked for.
void CudaDevice::count_memory(const CudaOptions& options) {
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
  set_memory(bytes, bytes);
}

PooledDevice::Segment CudaDevice::take_segment(std::uint64_t bytes, std::uint64_t bytes_max) {
  const CurrentGpu current(gpu_);
  const std::uint64_t wanted = std::min(bytes_max, std::max(bytes, segment_bytes_min));
  void* memory = nullptr;
  const cudaError_t status = cudaMalloc(&memory, wanted);
  if (status == cudaSuccess) return {static_cast<std::byte*>(memory), wanted};
  static_cast<void>(cudaGetLastError());
  std::size_t available = 0;
  std::size_t total = 0;
  static_cast<void>(cudaMemGetInfo(&available, &total));
  throw Error(
      ErrorCode::usage,
      fmt::format("{}: {} were refused ({}): {} of {} are free now, and {} were when this node "
                  "started; another process has taken memory since. End it, or ask for less "
                  "(runtime.devices.memory)",
                  label(), format_bytes(wanted), cudaGetErrorName(status), format_bytes(available),
                  format_bytes(total), format_bytes(info_.memory_bytes)));
}

// Relaxed: a few more calls to the GPU do no harm.
void CudaDevice::leave_memory() {
  left(gpu_).store(true, std::memory_order_relaxed);
}

bool CudaDevice::is_left() const {
  return left(gpu_).load(std::memory_order_relaxed);
}

CudaDevice::~CudaDevice() {
  check_unused();
  // Abandoned streams may still be running. After a GPU fault all of these calls fail, and the
  // memory is freed when the process ends.
  const CurrentGpu current(gpu_);
  if (is_left()) return;
  static_cast<void>(cudaDeviceSynchronize());
  give_back_host();
  for (void* block : word_blocks_) static_cast<void>(cudaFreeHost(block));
  for (cudaEvent_t event : waits_) static_cast<void>(cudaEventDestroy(event));
  for (const Segment& segment : segments()) static_cast<void>(cudaFree(segment.address));
  static_cast<void>(cudaGetLastError());
}

std::string CudaDevice::label() const {
  return fmt::format("GPU {} ({})", gpu_, info_.name);
}

void CudaDevice::check(cudaError_t status, std::string_view operation) const {
  if (status == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // an error that is not sticky is reported once
  throw Error(ErrorCode::internal,
              fmt::format("{}: {}: {} ({})", label(), operation, cudaGetErrorString(status),
                          cudaGetErrorName(status)));
}

// ---- memory ----------------------------------------------------------------------------------

void* CudaDevice::take_host(std::size_t bytes) {
  const CurrentGpu current(gpu_);
  void* address = nullptr;
  // Portable: page-locked for all GPUs of the node. Mapped: kernels use its host address.
  check(cudaHostAlloc(&address, bytes, cudaHostAllocPortable | cudaHostAllocMapped),
        fmt::format("cudaHostAlloc of {}", format_bytes(bytes)));
  return address;
}

void CudaDevice::return_host(void* address) {
  const std::scoped_lock lock(mutex_);
  unused_host_.push_back(address);
  let_go_of_unused();
}

void CudaDevice::pin(void* address, std::size_t bytes) {
  const CurrentGpu current(gpu_);
  host_pins().pin(address, bytes, [&](cudaError_t status) {
    check(status, fmt::format("cudaHostRegister of {}", format_bytes(bytes)));
  });
}

void CudaDevice::unpin(void* address) {
  if (is_left()) return;
  const CurrentGpu current(gpu_);
  const auto held = set_up();
  host_pins().unpin(address);
}

std::string_view CudaDevice::route(const Destination& to, const Source& from,
                                   const CopyShape& shape, std::uint64_t stream) const {
  const CopyEnds ends = check_copy(to, from, shape, stream);
  if (ends.to == MemoryOrigin::host) return "copy to the host";
  if (ends.from == MemoryOrigin::host) return "copy from the host";
  const bool is_between = ends.to == MemoryOrigin::peer || ends.from == MemoryOrigin::peer;
  return is_between ? "copy between GPUs" : "copy within the GPU";
}

// ---- streams and events ----------------------------------------------------------------------

std::unique_ptr<Stream> CudaDevice::create_stream(StreamPriority priority, Notifier*) {
  auto stream = std::make_unique<CudaStream>(*this, next_stream(), priority);
  stream_created();
  return stream;
}

std::unique_ptr<Stream> CudaDevice::adopt_stream(void* native) {
  const auto stream = static_cast<cudaStream_t>(native);
  if (const auto gpu = gpu_of(stream); gpu != gpu_) {
    throw Error(ErrorCode::usage,
                gpu ? fmt::format("{}: the stream {} is of GPU {}", label(), fmt::ptr(native), *gpu)
                    : fmt::format("{}: {} is no CUDA stream", label(), fmt::ptr(native)));
  }
  auto adopted = std::make_unique<CudaStream>(*this, next_stream(), stream);
  stream_created();
  return adopted;
}

std::int64_t* CudaDevice::take_result_words() {
  const std::scoped_lock lock(mutex_);
  if (free_words_.empty()) {
    constexpr std::size_t sets = 32;
    void* block = nullptr;
    const CurrentGpu current(gpu_);
    check(cudaHostAlloc(&block, sets * result_words * sizeof(std::int64_t), cudaHostAllocPortable),
          "cudaHostAlloc of result words");
    word_blocks_.push_back(block);
    for (std::size_t i = 0; i < sets; ++i) {
      free_words_.push_back(static_cast<std::int64_t*>(block) + i * result_words);
    }
  }
  std::int64_t* const words = free_words_.back();
  free_words_.pop_back();
  return words;
}

void CudaDevice::give_back_result_words(std::int64_t* words) {
  const std::scoped_lock lock(mutex_);
  free_words_.push_back(words);
}

std::unique_lock<std::mutex> CudaDevice::set_up() {
  std::unique_lock lock(set_up_mutex_);
  for (drop_raised(); !waits_.empty(); drop_raised()) {
    // CUDA tells nobody when an event completes, so it is looked at again and again.
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return lock;
}

/// Also those that a failure of the GPU has ended.
void CudaDevice::drop_raised() {
  std::erase_if(waits_, [](cudaEvent_t event) {
    if (cudaEventQuery(event) == cudaErrorNotReady) return false;
    static_cast<void>(cudaEventDestroy(event));
    return true;
  });
  static_cast<void>(cudaGetLastError());
  wait_count_.store(waits_.size(), std::memory_order_relaxed);
}

void CudaDevice::note_wait(cudaStream_t stream) {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  waits_.push_back(event);
  wait_count_.store(waits_.size(), std::memory_order_relaxed);
  check(cudaEventRecord(event, stream), "cudaEventRecord");
}

std::unique_ptr<Event> CudaDevice::create_event(EventTiming timing) {
  return std::make_unique<CudaEvent>(*this, timing);
}

std::int64_t CudaDevice::completed_ns(cudaEvent_t event) {
  const std::int64_t now = now_ns();
  std::shared_ptr<const ClockAnchor> anchor;
  {
    const std::scoped_lock lock(clock_mutex_);
    if (now - anchor_->host_ns > anchor_life_ns) {
      anchor_ = std::make_shared<const ClockAnchor>(gpu_, clock_stream_.get());
    }
    anchor = anchor_;
  }
  float ms = 0;
  if (cudaEventElapsedTime(&ms, anchor->event, event) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    return now;
  }
  // The time is negative if the anchor is younger than the event.
  return std::min(now, anchor->host_ns + static_cast<std::int64_t>(static_cast<double>(ms) * 1e6));
}

// ---- peers and other processes ---------------------------------------------------------------

/// Peer access is enabled per process, not per device.
void CudaDevice::enable_peer(const CudaDevice& peer) const {
  static std::mutex mutex;
  static std::set<std::pair<int, int>> enabled;
  const std::scoped_lock lock(mutex);
  if (enabled.contains({gpu_, peer.gpu_})) return;
  const CurrentGpu current(gpu_);
  const cudaError_t status = cudaDeviceEnablePeerAccess(peer.gpu_, 0);
  static_cast<void>(cudaGetLastError());
  if (status != cudaErrorPeerAccessAlreadyEnabled) check(status, "cudaDeviceEnablePeerAccess");
  enabled.emplace(gpu_, peer.gpu_);
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
  IpcMemoryHandle handle = handle_of(address);
  MemoryToken token{};
  token.pid = process_;
  if (const auto foreign = adopted(address)) {
    token.allocation = foreign_handle(*foreign);
    token.bytes = foreign->bytes;
    token.offset = handle.offset;
  } else {
    const std::size_t segment = *segment_of(address);  // handle_of() has found it
    token.allocation = segment_handle(segment);
    token.bytes = segments()[segment].bytes;
    token.offset = segments()[segment].offset_of(address);
  }
  handle.token = pack(token);
  return handle;
}

std::optional<PooledDevice::Foreign> CudaDevice::find_foreign(const void* address) const {
  const auto found = allocation_at(address, gpu_);
  if (!found) return std::nullopt;
  return Foreign{found->base, found->bytes, found->identity};
}

/// Throws Error(communication) for memory that cannot be shared between processes.
cudaIpcMemHandle_t CudaDevice::foreign_handle(const Foreign& foreign) {
  constexpr std::size_t handles_max = 256;  // old handles are dropped; they can be made again
  const std::scoped_lock lock(mutex_);
  const auto known = foreign_handles_.find(foreign.identity);
  if (known != foreign_handles_.end()) return known->second;
  const CurrentGpu current(gpu_);
  cudaIpcMemHandle_t handle{};
  auto* const base = const_cast<std::byte*>(foreign.base);  // not written
  const cudaError_t status = cudaIpcGetMemHandle(&handle, base);
  if (status != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    throw Error(ErrorCode::communication,
                fmt::format("{}: memory that was not allocated by heddle is not shared with other "
                            "processes: cudaIpcGetMemHandle: {} ({})",
                            label(), cudaGetErrorString(status), cudaGetErrorName(status)));
  }
  if (foreign_handles_.size() == handles_max) foreign_handles_.clear();
  foreign_handles_.emplace(foreign.identity, handle);
  return handle;
}

/// Handle of a whole segment, made once: messages refer to its memory again and again.
cudaIpcMemHandle_t CudaDevice::segment_handle(std::size_t segment) {
  const std::scoped_lock lock(mutex_);
  if (segment_handles_.size() <= segment) segment_handles_.resize(segment + 1);
  std::optional<cudaIpcMemHandle_t>& handle = segment_handles_[segment];
  if (!handle) {
    const CurrentGpu current(gpu_);
    cudaIpcMemHandle_t made{};
    check(cudaIpcGetMemHandle(&made, segments()[segment].address), "cudaIpcGetMemHandle");
    handle = made;
  }
  return *handle;
}

DeviceMemory CudaDevice::open_memory(const IpcMemoryHandle& handle) {
  const std::string what = opening(handle);
  auto token = unpack<MemoryToken>(handle.token);
  if (token.pid == ::getpid()) {
    throw Error(ErrorCode::communication,
                fmt::format("{}: it belongs to this process, which uses its address", what));
  }
  if (handle.bytes == 0 || token.offset > token.bytes ||
      handle.bytes > token.bytes - token.offset) {
    throw Error(ErrorCode::communication, fmt::format("{}: the handle is damaged", what));
  }
  const std::uint64_t offset = std::exchange(token.offset, 0);
  const IpcToken key = pack(token);  // the same key for all pieces of an allocation
  const std::scoped_lock lock(mutex_);
  Mapped& mapped = mapped_[key];
  if (mapped.base == nullptr) {
    const CurrentGpu current(gpu_);
    void* base = nullptr;
    const cudaError_t status =
        cudaIpcOpenMemHandle(&base, token.allocation, cudaIpcMemLazyEnablePeerAccess);
    if (status != cudaSuccess) {
      static_cast<void>(cudaGetLastError());
      mapped_.erase(key);
      throw Error(ErrorCode::communication,
                  fmt::format("{}: cudaIpcOpenMemHandle: {} ({})", what, cudaGetErrorString(status),
                              cudaGetErrorName(status)));
    }
    mapped.base = static_cast<std::byte*>(base);
    mapped.bytes = token.bytes;
  }
  ++mapped.opened;
  return add_opened(mapped.base + offset, handle.bytes);
}

void CudaDevice::unmap(const std::byte* address) {
  const auto holds = [&](const auto& entry) {
    const Mapped& mapped = entry.second;
    return Segment{mapped.base, mapped.bytes}.contains(address);
  };
  const auto found = std::find_if(mapped_.begin(), mapped_.end(), holds);
  HEDDLE_CHECK(found != mapped_.end());
  if (--found->second.opened == 0) let_go_of_unused();
}

void CudaDevice::let_go_of_unused() {
  const auto is_unused = [](const auto& entry) { return entry.second.opened == 0; };
  // A hung stream may still use the memory, and CUDA would wait for that stream.
  if (is_left()) {
    unused_host_.clear();
    std::erase_if(mapped_, is_unused);
    return;
  }
  const std::unique_lock lock(set_up_mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  drop_raised();
  if (!waits_.empty()) return;
  const CurrentGpu current(gpu_);
  for (void* address : std::exchange(unused_host_, {})) static_cast<void>(cudaFreeHost(address));
  for (auto entry = mapped_.begin(); entry != mapped_.end();) {
    std::byte* const base = entry->second.base;
    const bool is_over = is_unused(*entry);
    entry = is_over ? mapped_.erase(entry) : std::next(entry);
    if (is_over) check(cudaIpcCloseMemHandle(base), "cudaIpcCloseMemHandle");
  }
}

IpcEventHandle CudaDevice::export_event(const Event& event) {
  const auto& own = exported<CudaEvent>(event);
  const CurrentGpu current(gpu_);
  EventToken token{{}, ::getpid()};
  check(cudaIpcGetEventHandle(&token.event, own.shared()), "cudaIpcGetEventHandle");
  IpcEventHandle handle;
  handle.device = info_.uuid;
  handle.token = pack(token);
  return handle;
}

std::unique_ptr<Event> CudaDevice::open_event(const IpcEventHandle& handle) {
  const std::string what = opening(handle);
  const auto token = unpack<EventToken>(handle.token);
  if (token.pid == ::getpid()) {
    throw Error(ErrorCode::communication,
                fmt::format("{}: it belongs to this process, which uses the event itself", what));
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
