#include "tests/collectives/simulation/simulated_gpus.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <fmt/core.h>
#include <sys/mman.h>
#include <utility>

#include "base/assert.hpp"
#include "base/error.hpp"
#include "kernels/byte_kernel.hpp"
#include "node-runtime/device/ipc_token.hpp"
#include "node-runtime/device/pooled_device.hpp"

namespace heddle::testing {
namespace {

constexpr std::int64_t questions_in_vain = 64;
/// Nobody asks so often unless it waits for what can never come.
constexpr std::int64_t questions_max = 100'000'000;
constexpr std::align_val_t host_alignment{4096};
/// What freed memory holds, up to this many bytes.
constexpr int freed_byte = 0xCD;
constexpr std::size_t freed_bytes_max = 1024;

struct MemoryToken {
  std::byte* address;
};

/// Records of one event.
struct Records {
  std::uint64_t submitted = 0;
  std::uint64_t completed = 0;
  std::uint64_t first_failed = 0;  ///< 0: none
  std::string failure;

  [[nodiscard]] EventState state(std::uint64_t number) const {
    if (completed < number) return EventState::pending;
    return first_failed != 0 && first_failed <= number ? EventState::failed : EventState::done;
  }
};

}  // namespace

class SimulatedDevice final : public PooledDevice {
 public:
  SimulatedDevice(SimulatedGpus& gpus, std::int32_t number, std::int32_t index,
                  const DeviceUuid& uuid, std::size_t bytes);
  ~SimulatedDevice() override;

  [[nodiscard]] bool runs(const Kernel& /*kernel*/) const override { return false; }
  [[nodiscard]] bool runs(const ByteKernel& kernel) const override {
    return kernel.emulated != nullptr;
  }
  [[nodiscard]] std::unique_ptr<Stream> create_stream(StreamPriority priority,
                                                      Notifier* notifier) override;
  [[nodiscard]] std::unique_ptr<Event> create_event(EventTiming timing) override;
  [[nodiscard]] std::unique_ptr<Stream> adopt_stream(void* /*native*/) override {
    throw Error(ErrorCode::usage, label() + " has no native streams");
  }
  [[nodiscard]] bool can_access_peer(const Device& other) const override {
    return dynamic_cast<const SimulatedDevice*>(&other) != nullptr && &other != this;
  }
  [[nodiscard]] IpcMemoryHandle export_memory(const void* address) override;
  [[nodiscard]] DeviceMemory open_memory(const IpcMemoryHandle& handle) override;
  [[nodiscard]] IpcEventHandle export_event(const Event& /*event*/) override {
    throw Error(ErrorCode::communication, label() + " shares no events");
  }
  [[nodiscard]] std::unique_ptr<Event> open_event(const IpcEventHandle& handle) override {
    throw Error(ErrorCode::communication, opening(handle) + ": it shares none");
  }
  [[nodiscard]] std::string label() const override {
    return fmt::format("simulated device {}", number_);
  }

  [[nodiscard]] SimulatedGpus& gpus() const { return gpus_; }
  [[nodiscard]] std::int32_t number() const { return number_; }
  [[nodiscard]] bool has(const std::byte* address) const { return owns(address); }

 private:
  void discard(const DeviceMemory& memory) override { gpus_.freed(memory); }
  void unmap(const std::byte* address) override;
  [[nodiscard]] void* take_host(std::size_t bytes) override {
    return ::operator new(bytes, host_alignment);
  }
  void return_host(void* address) override { ::operator delete(address, host_alignment); }

  SimulatedGpus& gpus_;
  const std::int32_t number_;
  const std::size_t bytes_;
  void* memory_;
};

class SimulatedEvent final : public Event {
 public:
  explicit SimulatedEvent(SimulatedDevice& device) : device_(device) { device_.event_created(); }
  SimulatedEvent(const SimulatedEvent&) = delete;
  SimulatedEvent& operator=(const SimulatedEvent&) = delete;
  ~SimulatedEvent() override {
    HEDDLE_CHECK(records_->state(records_->submitted) != EventState::pending,
                 "an event of {} is destroyed before its record is complete", device_.label());
    device_.event_destroyed();
  }

  [[nodiscard]] EventState query() const override {
    const EventState state = records_->state(records_->submitted);
    if (state == EventState::pending) device_.gpus().asked_in_vain();
    return state;
  }
  [[nodiscard]] std::int64_t completed_ns() const override { return 0; }
  void synchronize() const override {
    while (query() == EventState::pending) device_.gpus().step();
    if (query() == EventState::failed) throw Error(ErrorCode::internal, failure());
  }
  [[nodiscard]] std::string failure() const override { return records_->failure; }
  [[nodiscard]] const Device& device() const override { return device_; }

  [[nodiscard]] const std::shared_ptr<Records>& records() const { return records_; }

 private:
  SimulatedDevice& device_;
  std::shared_ptr<Records> records_ = std::make_shared<Records>();
};

class SimulatedStream final : public Stream {
 public:
  SimulatedStream(SimulatedDevice& device, std::uint64_t id, Notifier* notifier)
      : device_(device), gpus_(device.gpus()), id_(id), notifier_(notifier) {}
  SimulatedStream(const SimulatedStream&) = delete;
  SimulatedStream& operator=(const SimulatedStream&) = delete;
  ~SimulatedStream() override;

  void copy_strided(Destination to, Source from, const CopyShape& shape) override;
  void launch(const Kernel& kernel, std::span<const TileView> /*tiles*/,
              const KernelParameters& /*parameters*/, std::int64_t* /*info*/) override {
    throw Error(ErrorCode::internal, fmt::format("{} does not run kernel '{}': it runs none on "
                                                 "tiles",
                                                 device_.label(), kernel.name));
  }
  void launch(const ByteKernel& kernel, const ByteParameters& parameters,
              std::span<const KernelMemory> memory) override;
  void record(Event& event) override;
  void wait(const Event& event) override;
  void await_word(const std::atomic<std::uint64_t>& word, std::uint64_t value) override;
  void synchronize() override;
  [[nodiscard]] std::optional<std::string> failure() override { return failure_; }
  void abandon(const std::string& reason) override;
  [[nodiscard]] Device& device() const override { return device_; }

  /// The oldest operation can go on.
  [[nodiscard]] bool can_go_on() const;
  void go_on();

 private:
  enum class Kind : std::uint8_t { copy, kernel, record, notice, wait, word };
  struct Operation {
    Kind kind = Kind::copy;
    std::byte* to = nullptr;
    const std::byte* from = nullptr;
    CopyShape shape{};
    std::size_t moved = 0;  ///< bytes
    const ByteKernel* kernel = nullptr;
    ByteParameters parameters{};
    std::shared_ptr<Records> records{};
    std::uint64_t number = 0;  ///< of the record
    const std::atomic<std::uint64_t>* word = nullptr;
    std::uint64_t value = 0;
  };

  void queue(Operation operation);
  void fail(const std::string& why);
  /// True: it has moved all.
  [[nodiscard]] bool move(Operation& operation);
  [[nodiscard]] bool run(Operation& operation);
  void complete(const Operation& operation) const;

  SimulatedDevice& device_;
  SimulatedGpus& gpus_;
  const std::uint64_t id_;
  Notifier* const notifier_;
  std::deque<Operation> operations_;
  std::optional<std::string> failure_;
};

// ---- streams ---------------------------------------------------------------------------------

SimulatedStream::~SimulatedStream() {
  const auto is_over = [&](const Operation& one) { return failure_ || one.kind == Kind::notice; };
  HEDDLE_CHECK(std::ranges::all_of(operations_, is_over),
               "{} is destroyed with {} operations under way", device_.place(id_),
               operations_.size());
  for (const Operation& one : operations_) {
    if (one.kind == Kind::record) complete(one);
    const bool is_heard = one.kind == Kind::record || one.kind == Kind::notice;
    if (is_heard && notifier_ != nullptr) notifier_->notify();
  }
  std::erase(gpus_.busy_, this);
  device_.stream_destroyed();
}

void SimulatedStream::queue(Operation operation) {
  if (operations_.empty()) gpus_.busy_.push_back(this);
  operations_.push_back(std::move(operation));
}

void SimulatedStream::copy_strided(Destination to, Source from, const CopyShape& shape) {
  if (shape.column_bytes == 0 || shape.columns == 0) return;
  static_cast<void>(device_.check_copy(to, from, shape, id_));
  Operation made;
  made.kind = Kind::copy;
  made.to = static_cast<std::byte*>(to.address);
  made.from = static_cast<const std::byte*>(from.address);
  made.shape = shape;
  queue(std::move(made));
}

void SimulatedStream::launch(const ByteKernel& kernel, const ByteParameters& parameters,
                             std::span<const KernelMemory> memory) {
  device_.check_memory(kernel, memory, id_);
  Operation made;
  made.kind = Kind::kernel;
  made.kernel = &kernel;
  made.parameters = parameters;
  queue(std::move(made));
}

void SimulatedStream::record(Event& event) {
  auto& own = device_.recorded<SimulatedEvent>(event, id_);
  Operation made;
  made.kind = Kind::record;
  made.records = own.records();
  made.number = ++made.records->submitted;
  queue(std::move(made));
}

void SimulatedStream::wait(const Event& event) {
  Operation made;
  made.kind = Kind::wait;
  made.records = device_.awaited<SimulatedEvent>(event, id_).records();
  made.number = made.records->submitted;
  queue(std::move(made));
}

void SimulatedStream::await_word(const std::atomic<std::uint64_t>& word, std::uint64_t value) {
  HEDDLE_CHECK(device_.reaches_host(&word, sizeof word), "{} awaits a word that it cannot read",
               device_.place(id_));
  Operation made;
  made.kind = Kind::word;
  made.word = &word;
  made.value = value;
  queue(std::move(made));
}

void SimulatedStream::synchronize() {
  while (!operations_.empty()) {
    HEDDLE_CHECK(gpus_.can_step(), "{} is waited for, and no device can go on", device_.place(id_));
    gpus_.step();
  }
  if (failure_) throw Error(ErrorCode::internal, *failure_);
}

void SimulatedStream::abandon(const std::string& reason) {
  fail("abandoned: " + reason);
}

void SimulatedStream::fail(const std::string& why) {
  if (!failure_) failure_ = fmt::format("{}: {}", device_.place(id_), why);
}

void SimulatedStream::complete(const Operation& operation) const {
  Records& records = *operation.records;
  if (failure_ && records.first_failed == 0) {
    records.first_failed = operation.number;
    records.failure = *failure_;
  }
  records.completed = operation.number;
}

bool SimulatedStream::can_go_on() const {
  if (failure_) return true;
  const Operation& first = operations_.front();
  if (first.kind == Kind::wait) return first.records->completed >= first.number;
  if (first.kind == Kind::word) return first.word->load(std::memory_order_acquire) >= first.value;
  return true;
}

void SimulatedStream::go_on() {
  Operation& first = operations_.front();
  if (first.kind == Kind::record) {
    complete(first);
    first.kind = Kind::notice;
    return;
  }
  const bool is_notice = first.kind == Kind::notice;
  if (!is_notice && !failure_ && !run(first)) return;
  operations_.pop_front();
  if (operations_.empty()) std::erase(gpus_.busy_, this);
  if (is_notice && notifier_ != nullptr) notifier_->notify();
}

/// True: it is over.
bool SimulatedStream::run(Operation& operation) {
  const bool computes = operation.kind == Kind::kernel || operation.kind == Kind::copy;
  if (computes && gpus_.fails(device_)) {
    fail("a fault of the simulation");
    return true;
  }
  switch (operation.kind) {
    case Kind::copy:
      return move(operation);
    case Kind::kernel:
      try {
        operation.kernel->emulated(operation.parameters);
      } catch (const std::exception& error) {
        fail(error.what());
      }
      break;
    case Kind::wait:
      if (operation.records->state(operation.number) == EventState::failed) {
        fail(operation.records->failure);
      }
      break;
    case Kind::word:
    case Kind::record:
    case Kind::notice:
      break;
  }
  return true;
}

bool SimulatedStream::move(Operation& operation) {
  const CopyShape& shape = operation.shape;
  const std::size_t all = shape.column_bytes * shape.columns;
  const std::size_t left = all - operation.moved;
  std::size_t now = gpus_.below(2) == 0 ? left : 1 + gpus_.below(left);
  while (now > 0) {
    const std::size_t column = operation.moved / shape.column_bytes;
    const std::size_t offset = operation.moved % shape.column_bytes;
    const std::size_t bytes = std::min(now, shape.column_bytes - offset);
    std::memcpy(operation.to + column * shape.destination_leading + offset,
                operation.from + column * shape.source_leading + offset, bytes);
    operation.moved += bytes;
    now -= bytes;
  }
  return operation.moved == all;
}

// ---- devices ---------------------------------------------------------------------------------

SimulatedDevice::SimulatedDevice(SimulatedGpus& gpus, std::int32_t number, std::int32_t index,
                                 const DeviceUuid& uuid, std::size_t bytes)
    : gpus_(gpus),
      number_(number),
      bytes_(bytes),
      memory_(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
  HEDDLE_CHECK(memory_ != MAP_FAILED, "no {} bytes of memory for a simulated device", bytes);
  info_.name = fmt::format("simulated {}", number);
  info_.kind = "simulated";
  // Its kernels are those of emulated devices.
  info_.backend = DeviceBackend::emulated;
  info_.index = index;
  info_.uuid = uuid;
  info_.notifies = true;
  set_memory(bytes, bytes);
  add_segment(static_cast<std::byte*>(memory_), bytes);
}

SimulatedDevice::~SimulatedDevice() {
  check_unused();
  give_back_host();
  std::erase(gpus_.devices_, this);
  ::munmap(memory_, bytes_);
}

std::unique_ptr<Stream> SimulatedDevice::create_stream(StreamPriority /*priority*/,
                                                       Notifier* notifier) {
  stream_created();
  return std::make_unique<SimulatedStream>(*this, next_stream(), notifier);
}

std::unique_ptr<Event> SimulatedDevice::create_event(EventTiming /*timing*/) {
  return std::make_unique<SimulatedEvent>(*this);
}

IpcMemoryHandle SimulatedDevice::export_memory(const void* address) {
  IpcMemoryHandle handle = handle_of(address);
  std::byte* const segment = segments().front().address;
  handle.token = pack(MemoryToken{segment + segments().front().offset_of(address)});
  return handle;
}

DeviceMemory SimulatedDevice::open_memory(const IpcMemoryHandle& handle) {
  const auto refused = [&](std::string_view why) {
    return Error(ErrorCode::communication, fmt::format("{}: {}", opening(handle), why));
  };
  const std::uint32_t chance = gpus_.options_.refused_mappings;
  if (chance != 0 && gpus_.below(chance) == 0) throw refused("refused by the simulation");
  std::byte* const address = unpack<MemoryToken>(handle.token).address;
  const auto owner = std::ranges::find_if(
      gpus_.devices_, [&](const SimulatedDevice* one) { return one->has(address); });
  if (owner == gpus_.devices_.end()) throw refused("its node has ended");
  HEDDLE_CHECK(*owner != this, "{} opens its own memory", label());
  const std::scoped_lock lock(mutex_);
  gpus_.opened_.push_back({address, handle.bytes, this});
  return add_opened(address, handle.bytes);
}

void SimulatedDevice::unmap(const std::byte* address) {
  const auto found = std::ranges::find_if(
      gpus_.opened_, [&](const auto& one) { return one.by == this && one.address == address; });
  HEDDLE_CHECK(found != gpus_.opened_.end(), "{} closes memory that it has not opened", label());
  gpus_.opened_.erase(found);
}

// ---- all of them -----------------------------------------------------------------------------

SimulatedGpus::SimulatedGpus(std::uint64_t seed, const Options& options)
    : random_(seed), options_(options) {}

SimulatedGpus::~SimulatedGpus() {
  HEDDLE_CHECK(devices_.empty(), "{} simulated devices are left", devices_.size());
}

std::unique_ptr<Device> SimulatedGpus::make_device(std::int32_t index, const DeviceUuid& uuid,
                                                   std::size_t bytes) {
  auto made = std::make_unique<SimulatedDevice>(*this, made_++, index, uuid, bytes);
  devices_.push_back(made.get());
  return made;
}

bool SimulatedGpus::can_step() const {
  return std::ranges::any_of(busy_, &SimulatedStream::can_go_on);
}

void SimulatedGpus::step() {
  questions_ = 0;
  if (busy_.empty()) return;
  const std::size_t first = below(busy_.size());
  for (std::size_t k = 0; k < busy_.size(); ++k) {
    SimulatedStream* const stream = busy_[(first + k) % busy_.size()];
    if (!stream->can_go_on()) continue;
    const auto& device = static_cast<const SimulatedDevice&>(stream->device());
    if (device.number() == options_.slow_device && below(8) != 0) return;
    return stream->go_on();
  }
}

void SimulatedGpus::asked_in_vain() {
  HEDDLE_CHECK(++questions_ < questions_max, "an event is asked for that never completes");
  if (questions_ % questions_in_vain != 0) return;
  const std::int64_t before = questions_;
  step();
  questions_ = before;
}

bool SimulatedGpus::fails(const Device& device) {
  if (failing_ != &device) return false;
  failing_ = nullptr;
  has_failed_ = true;
  return true;
}

void SimulatedGpus::freed(const DeviceMemory& memory) {
  const auto is_within = [&](const Opened& one) {
    return one.address < memory.address + memory.bytes && memory.address < one.address + one.bytes;
  };
  if (!may_free_open_ && std::ranges::any_of(opened_, is_within)) {
    defects_ += fmt::format("{} bytes of device memory are freed that another node has open; ",
                            memory.bytes);
  }
  std::memset(memory.address, freed_byte, std::min(memory.bytes, freed_bytes_max));
}

}  // namespace heddle::testing
