#include "node-runtime/transport/user_messages.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <optional>
#include <utility>

#include "base/assert.hpp"
#include "base/error.hpp"

namespace heddle {
namespace {

__extension__ using Wide = __int128;

std::int64_t clamped(Wide value) {
  using Limits = std::numeric_limits<std::int64_t>;
  return static_cast<std::int64_t>(std::clamp<Wide>(value, Limits::min(), Limits::max()));
}

/// What comes first of several things that may fail, all of which are to be done.
class FirstFailure {
 public:
  template <class Work>
  void keep(const Work& work) {
    try {
      work();
    } catch (const Error& error) {
      if (!first_) first_ = error;
    }
  }
  void rethrow() const {
    if (first_) throw Error(*first_);
  }

 private:
  std::optional<Error> first_;
};

}  // namespace

UserMessages::UserMessages(p2p::Endpoint& endpoint, std::int32_t node, std::int32_t nodes,
                           std::span<Device* const> devices, const Options& options)
    : endpoint_(endpoint),
      node_(node),
      nodes_(nodes),
      options_(options),
      devices_(devices.begin(), devices.end()),
      scratch_(devices),
      locked_scratch_(devices),
      stream_words_(devices) {
  if (options.device_bytes == 0) return;
  for (Device* device : devices) {
    parts_.push_back(std::make_unique<DevicePart>(*device, options.device_bytes));
  }
}

UserMessages::~UserMessages() {
  HEDDLE_CHECK(count_.load(std::memory_order_relaxed) == 0,
               "{} messages of the program are under way when their node ends",
               count_.load(std::memory_order_relaxed));
}

// ---- requests --------------------------------------------------------------------------------

void UserMessages::check(const Bounds& bounds) {
  const auto& [what, count, type, bytes] = bounds;
  if (count < 0) {
    throw Error(ErrorCode::usage,
                fmt::format("{} {} elements: a count must not be negative", what, count));
  }
  if (count == 0 || type.size() == 0) return;
  const Wide last = static_cast<Wide>(count - 1) * type.extent();
  const Wide begin = std::min<Wide>(0, last) + type.true_lower_bound();
  const Wide end = std::max<Wide>(0, last) + type.true_upper_bound();
  if (begin >= 0 && end <= static_cast<Wide>(bytes)) return;
  throw Error(ErrorCode::usage,
              fmt::format("{} {} elements of a type of extent {}: they reach from byte {} to byte "
                          "{} of memory of {} bytes",
                          what, count, type.extent(), clamped(begin), clamped(end), bytes));
}

void UserMessages::check_place(const void* address) const {
  if (options_.takes_device_memory) return;
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    if (!devices_[i]->owns(address) && !devices_[i]->adopt(address)) continue;
    throw Error(ErrorCode::usage,
                fmt::format("memory at {} is device {}'s; on a single node such messages need "
                            "runtime.messages.device_memory to be set",
                            fmt::ptr(address), i));
  }
}

/// Calls `begin_request(on_end)`, and counts the request until it is over; `also` is called at its
/// end, without the lock.
template <class Begin>
p2p::Request UserMessages::begin(const Begin& begin_request, p2p::OnEnd also, std::int64_t weight) {
  const std::scoped_lock lock(mutex_);
  if (has_ended_) throw Error(ErrorCode::usage, "a message is begun, but the node has ended");
  const std::int64_t key = next_++;
  const auto place = requests_.emplace(key, std::nullopt).first;
  count_.fetch_add(weight, std::memory_order_relaxed);
  try {
    // ended() waits for the lock, so the place is there until it is filled.
    place->second.emplace(begin_request([this, key, weight, also = std::move(also)](
                                            const p2p::Status& status, const Error* failure) {
      if (also) also(status, failure);
      ended(key, weight);
    }));
    return *place->second;
  } catch (const Error&) {
    requests_.erase(place);
    count_.fetch_sub(weight, std::memory_order_relaxed);
    throw;
  }
}

/// By the progress thread.
void UserMessages::ended(std::int64_t key, std::int64_t weight) {
  const std::scoped_lock lock(mutex_);
  requests_.erase(key);
  count_.fetch_sub(weight, std::memory_order_relaxed);
}

p2p::Request UserMessages::send(const p2p::Outgoing& message, std::size_t bytes, std::int32_t to,
                                std::int32_t tag) {
  check({"sending", message.count, message.type, bytes});
  check_place(message.memory);
  return begin([&](p2p::OnEnd on_end) {
    return endpoint_.send(message, NodeId{to}, tag, channel, std::move(on_end));
  });
}

p2p::Request UserMessages::receive(const p2p::Incoming& room, std::size_t bytes, std::int32_t from,
                                   std::int32_t tag) {
  check({"receiving", room.count, room.type, bytes});
  check_place(room.memory);
  return begin([&](p2p::OnEnd on_end) {
    return endpoint_.receive(room, {NodeId{from}, tag, channel}, std::move(on_end));
  });
}

p2p::Request UserMessages::send(const p2p::Outgoing& message, NodeId to, std::int32_t tag,
                                p2p::ChannelId on, p2p::OnEnd on_end) {
  return begin([&](p2p::OnEnd end) { return endpoint_.send(message, to, tag, on, std::move(end)); },
               std::move(on_end));
}

p2p::Request UserMessages::receive(const p2p::Incoming& room, NodeId from, std::int32_t tag,
                                   p2p::ChannelId on, p2p::OnEnd on_end) {
  return begin(
      [&](p2p::OnEnd end) {
        return endpoint_.receive(room, {from, tag, on}, std::move(end));
      },
      std::move(on_end));
}

p2p::Request UserMessages::listen(const p2p::Incoming& room, std::int32_t tag, p2p::ChannelId on,
                                  p2p::OnEnd on_end) {
  return begin(
      [&](p2p::OnEnd end) {
        return endpoint_.receive(room, {p2p::Pattern::any_source, tag, on}, std::move(end));
      },
      std::move(on_end), 0);
}

p2p::Request UserMessages::work(p2p::DeviceWork work, p2p::OnEnd on_end) {
  return begin([&](p2p::OnEnd end) { return endpoint_.work(std::move(work), std::move(end)); },
               std::move(on_end));
}

p2p::Request UserMessages::refer(std::shared_ptr<p2p::Referral> referral, p2p::OnEnd on_end) {
  return begin([&](p2p::OnEnd end) { return endpoint_.refer(std::move(referral), std::move(end)); },
               std::move(on_end));
}

std::optional<p2p::LaneId> UserMessages::lane_of(const void* memory, std::int64_t bytes) const {
  check_place(memory);
  return options_.takes_device_memory ? endpoint_.lane_of(memory, bytes) : std::nullopt;
}

std::optional<p2p::LaneId> UserMessages::lane_of(const Device& device) const {
  if (!options_.takes_device_memory) return std::nullopt;
  const auto found = std::ranges::find(devices_, &device);
  if (found == devices_.end()) return std::nullopt;
  return p2p::LaneId{static_cast<std::int32_t>(found - devices_.begin())};
}

p2p::Request UserMessages::release(const void* address) {
  const std::scoped_lock lock(mutex_);
  if (has_ended_) throw Error(ErrorCode::usage, "memory is released, but the node has ended");
  std::erase_if(releases_, [](const p2p::Request& one) { return one.done(); });
  releases_.push_back(endpoint_.release(address));
  return releases_.back();
}

void UserMessages::free_left_scratch() {
  if (!scratch_.has_left() && leaving_.empty()) return;
  for (DeviceBuffer& memory : scratch_.take_left()) {
    try {
      p2p::Request closed = release(memory.address());
      leaving_.push_back({std::move(memory), std::move(closed)});
    } catch (const Error&) {
      // The node has ended: it is freed here, when all nodes have closed their mappings.
      kept_until_the_end_.push_back(std::move(memory));
    }
  }
  std::erase_if(leaving_, [&](Leaving& one) {
    if (!one.closed.done()) return false;
    try {
      static_cast<void>(one.closed.wait());
    } catch (const Error&) {
      // A node is lost, or has it mapped still: nothing of this node's may take its place.
      kept_until_the_end_.push_back(std::move(one.memory));
    }
    return true;
  });
}

p2p::Status UserMessages::wait(const p2p::Request& request) {
  while (options_.drive && !request.done()) options_.drive();
  return request.wait();
}

// ---- device memory ---------------------------------------------------------------------------

UserMessages::DevicePart& UserMessages::part(std::int32_t device) {
  if (device < 0 || device >= devices()) {
    throw Error(ErrorCode::usage, fmt::format("memory of device {}: the node has {} devices, "
                                              "counted from 0",
                                              device, devices()));
  }
  if (parts_.empty()) {
    throw Error(ErrorCode::usage,
                fmt::format("memory of device {}: none is set aside for messages; set "
                            "runtime.messages.device_memory",
                            device));
  }
  return *parts_[static_cast<std::size_t>(device)];
}

std::byte* UserMessages::allocate(std::int32_t device, std::size_t bytes) {
  if (bytes == 0) throw Error(ErrorCode::usage, "0 bytes of device memory are asked for");
  const std::scoped_lock lock(mutex_);
  if (has_ended_) throw Error(ErrorCode::usage, "memory is asked for, but the node has ended");
  DevicePart& own = part(device);
  const auto offset = own.arena.take(bytes);
  if (offset) return own.memory.address() + *offset;
  throw Error(
      ErrorCode::usage,
      fmt::format("{} bytes of device {} are asked for; of {} bytes that are set aside for "
                  "messages, {} are free, {} of them in one piece; raise "
                  "runtime.messages.device_memory",
                  bytes, device, own.arena.bytes(), own.arena.free_bytes(), own.arena.largest()));
}

void UserMessages::free(std::int32_t device, const std::byte* address) {
  const std::scoped_lock lock(mutex_);
  DevicePart& own = part(device);
  own.arena.give_back(static_cast<std::size_t>(address - own.memory.address()));
}

void UserMessages::write(std::int32_t device, std::byte* to, std::span<const std::byte> from) {
  if (from.empty()) return;
  Device& on = part(device).device;
  const auto stream = on.create_stream();
  stream->copy({to, &on}, {from.data(), nullptr}, from.size());
  stream->synchronize();
}

void UserMessages::read(std::int32_t device, const std::byte* from, std::span<std::byte> into) {
  if (into.empty()) return;
  Device& on = part(device).device;
  const auto stream = on.create_stream();
  stream->copy({into.data(), nullptr}, {from, &on}, into.size());
  stream->synchronize();
}

// ---- the end ---------------------------------------------------------------------------------

void UserMessages::end() {
  std::vector<p2p::Request> left;
  std::vector<p2p::Request> releases;
  {
    const std::scoped_lock lock(mutex_);
    if (std::exchange(has_ended_, true)) return;
    for (const auto& [key, request] : requests_) left.push_back(*request);
    releases.swap(releases_);
  }
  for (const p2p::Request& request : left) request.cancel();
  left.insert(left.end(), releases.begin(), releases.end());
  for (const p2p::Request& request : left) {
    try {
      static_cast<void>(wait(request));
    } catch (const Error&) {
      // Its handle tells the program, if it still has it.
    }
  }
  // Once the second round is over here, the first one is over everywhere: this node may go while
  // others still wait for messages of the second, and of these its own have been sent.
  FirstFailure failure;
  for (const std::int32_t round : {0, 1}) {
    failure.keep([&] { meet_at_the_end(round); });
  }
  failure.rethrow();
}

/// Every node sends an empty message to every other one. Notes of a node arrive in order, so once
/// the empty messages of all nodes have arrived, all earlier messages have arrived too.
///
/// No deadlock: a node sends its messages of a round before it waits, in the second round once it
/// has those of the first, which all nodes send. Where a node is lost its messages fail, and the
/// other nodes still send theirs of both rounds.
void UserMessages::meet_at_the_end(std::int32_t round) {
  std::vector<p2p::Request> requests;
  FirstFailure failure;
  for (std::int32_t i = 0; i < nodes_; ++i) {
    if (i == node_) continue;
    const NodeId other{i};
    failure.keep([&] {
      requests.push_back(endpoint_.receive({}, {other, round, ending_channel}));
    });
    failure.keep([&] { requests.push_back(endpoint_.send({}, other, round, ending_channel)); });
  }
  for (const p2p::Request& request : requests) {
    failure.keep([&] { static_cast<void>(wait(request)); });
  }
  failure.rethrow();
}

bool UserMessages::is_valid() const {
  const std::scoped_lock lock(mutex_);
  const auto count = static_cast<std::size_t>(count_.load(std::memory_order_relaxed));
  return count <= requests_.size() &&
         std::ranges::all_of(parts_, [](const auto& one) { return one->arena.is_valid(); });
}

}  // namespace heddle
