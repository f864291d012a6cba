#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "node-runtime/device/device.hpp"
#include "node-runtime/transport/arena.hpp"
#include "node-runtime/transport/device_scratch.hpp"
#include "node-runtime/transport/locked_scratch.hpp"
#include "node-runtime/transport/p2p/endpoint.hpp"
#include "node-runtime/transport/stream_watch.hpp"
#include "node-runtime/transport/stream_words.hpp"

namespace heddle {

/// A program's messages on a node's endpoint: checks the program's arguments, keeps its requests
/// that are in progress, allocates from the device memory reserved for messages, and ends all
/// requests before the node ends.
///
/// Locks: mutex_ guards requests_, next_, releases_, has_ended_ and the arenas. count_ is atomic:
/// the progress thread reads it without the lock.
///
/// Invariant (`is_valid()`): count <= |requests|; each arena is valid.
///
/// No deadlock: under mutex_ the endpoint's mailbox lock is taken (by send and receive), never the
/// other way round; the progress thread takes mutex_ when a request ends, with no other lock held.
///
/// Threads: any, except where said otherwise.
class UserMessages {
 public:
  /// The channel of the program's messages, that of end(), and that of Node's own operations.
  static constexpr p2p::ChannelId channel{1};
  static constexpr p2p::ChannelId ending_channel{2};
  static constexpr p2p::ChannelId node_channel{3};
  static constexpr p2p::ChannelId first_group_channel{4};

  struct Options {
    /// Bytes of each device's memory to reserve now.
    std::size_t device_bytes = 0;
    /// The endpoint has lanes for the devices; otherwise messages in their memory are refused.
    bool takes_device_memory = true;
    /// Moves messages, where no thread does; called by threads that wait. Null: a thread does.
    std::function<void()> drive;
  };

  /// `nodes` as the endpoint's wire has them, `node` this one's number.
  UserMessages(p2p::Endpoint& endpoint, std::int32_t node, std::int32_t nodes,
               std::span<Device* const> devices, const Options& options);
  UserMessages(const UserMessages&) = delete;
  UserMessages& operator=(const UserMessages&) = delete;
  ~UserMessages();

  [[nodiscard]] std::int32_t node() const { return node_; }
  [[nodiscard]] std::int32_t nodes() const { return nodes_; }
  [[nodiscard]] std::int32_t devices() const { return static_cast<std::int32_t>(devices_.size()); }

  /// `bytes` at `message.memory`: elements that reach outside throw Error(usage), as does all that
  /// the endpoint refuses.
  [[nodiscard]] p2p::Request send(const p2p::Outgoing& message, std::size_t bytes, std::int32_t to,
                                  std::int32_t tag);
  [[nodiscard]] p2p::Request receive(const p2p::Incoming& room, std::size_t bytes,
                                     std::int32_t from, std::int32_t tag);
  /// The same for heddle's own operations, on a channel of theirs (from `node_channel` on).
  /// `on_end` is called by the progress thread, and may begin others.
  [[nodiscard]] p2p::Request send(const p2p::Outgoing& message, NodeId to, std::int32_t tag,
                                  p2p::ChannelId on, p2p::OnEnd on_end);
  [[nodiscard]] p2p::Request receive(const p2p::Incoming& room, NodeId from, std::int32_t tag,
                                     p2p::ChannelId on, p2p::OnEnd on_end);
  /// The same from any node for a message that may never come: does not count as under way.
  [[nodiscard]] p2p::Request listen(const p2p::Incoming& room, std::int32_t tag, p2p::ChannelId on,
                                    p2p::OnEnd on_end);
  /// Channels of groups: the next one that no group of this node has, and that those before `end`
  /// are taken.
  [[nodiscard]] std::int32_t next_channel() const {
    return next_channel_.load(std::memory_order_relaxed);
  }
  /// Groups of this node that there are; counts one more, or one less.
  [[nodiscard]] std::int32_t groups() const { return groups_.load(std::memory_order_relaxed); }
  void count_group(std::int32_t change) { groups_.fetch_add(change, std::memory_order_relaxed); }
  void take_channels(std::int32_t end) {
    // Relaxed: groups are made by one thread at a time.
    next_channel_.store(std::max(end, next_channel()), std::memory_order_relaxed);
  }
  /// Work of a device for heddle's own operations, and references to device memory; `on_end` as
  /// above.
  [[nodiscard]] p2p::Request work(p2p::DeviceWork work, p2p::OnEnd on_end);
  [[nodiscard]] p2p::Request refer(std::shared_ptr<p2p::Referral> referral, p2p::OnEnd on_end);
  [[nodiscard]] p2p::Request release(const void* address);
  /// Blocks until a request is over; throws what made it fail.
  p2p::Status wait(const p2p::Request& request);
  /// Moves messages where no thread does.
  void drive() const {
    if (options_.drive) options_.drive();
  }

  /// Nobody moves messages but those who wait for them.
  [[nodiscard]] bool is_driven() const { return options_.drive != nullptr; }

  /// The lane of the device that has the memory; nullopt: host memory. Throws Error(usage) for
  /// device memory where messages take none.
  [[nodiscard]] std::optional<p2p::LaneId> lane_of(const void* memory, std::int64_t bytes) const;
  /// The lane of a device of this node; nullopt: messages take none of its memory, or it is
  /// another's.
  [[nodiscard]] std::optional<p2p::LaneId> lane_of(const Device& device) const;
  [[nodiscard]] Device& device(p2p::LaneId lane) const {
    return *devices_[static_cast<std::size_t>(lane.value())];
  }
  [[nodiscard]] bool takes_device_memory() const { return options_.takes_device_memory; }
  [[nodiscard]] DeviceScratch& scratch() { return scratch_; }
  [[nodiscard]] LockedScratch& locked_scratch() { return locked_scratch_; }
  /// Frees scratch memory that groups which have gone have left, once other nodes have closed it.
  /// By the thread that moves messages, as often as it does.
  void free_left_scratch();
  [[nodiscard]] StreamWords& stream_words() { return stream_words_; }
  /// Where a thread moves messages, it looks.
  [[nodiscard]] StreamWatch& stream_watch() { return stream_watch_; }

  [[nodiscard]] std::byte* allocate(std::int32_t device, std::size_t bytes);
  void free(std::int32_t device, const std::byte* address);
  /// Copies from host memory to memory of allocate(), or back, and waits for it.
  void write(std::int32_t device, std::byte* to, std::span<const std::byte> from);
  void read(std::int32_t device, const std::byte* from, std::span<std::byte> into);

  /// A request of the program's is under way.
  [[nodiscard]] bool are_moving() const { return count_.load(std::memory_order_relaxed) > 0; }
  /// Cancels what is under way and waits for it; when this returns on one node, all nodes have
  /// called it, no message of the program's is under way anywhere, and all that were sent have
  /// arrived. Collective. From now on requests throw Error(usage). Throws where the node has
  /// failed.
  void end();

  [[nodiscard]] bool is_valid() const;

 private:
  struct DevicePart {
    DevicePart(Device& on, std::size_t bytes) : device(on), memory(on, bytes), arena(bytes) {}
    Device& device;
    DeviceBuffer memory;
    Arena arena;
  };
  struct Bounds {
    std::string_view what;
    std::int64_t count;
    const Datatype& type;
    std::size_t bytes;
  };

  static void check(const Bounds& bounds);
  void check_place(const void* address) const;
  [[nodiscard]] DevicePart& part(std::int32_t device);
  template <class Begin>
  [[nodiscard]] p2p::Request begin(const Begin& begin_request, p2p::OnEnd also = {},
                                   std::int64_t weight = 1);
  void ended(std::int64_t key, std::int64_t weight);
  void meet_at_the_end(std::int32_t round);

  p2p::Endpoint& endpoint_;
  const std::int32_t node_;
  const std::int32_t nodes_;
  const Options options_;
  const std::vector<Device*> devices_;
  DeviceScratch scratch_;
  LockedScratch locked_scratch_;
  struct Leaving {
    DeviceBuffer memory;
    p2p::Request closed;  ///< over: nobody has it mapped
  };
  // Used by the thread that moves messages.
  std::list<Leaving> leaving_;
  std::vector<DeviceBuffer> kept_until_the_end_;
  StreamWords stream_words_;
  StreamWatch stream_watch_;
  std::vector<std::unique_ptr<DevicePart>> parts_;  ///< by device; null: no memory is reserved
  mutable std::mutex mutex_;
  std::map<std::int64_t, std::optional<p2p::Request>> requests_;  ///< under way; none: beginning
  std::int64_t next_ = 1;
  std::vector<p2p::Request> releases_;  ///< some are over
  bool has_ended_ = false;
  std::atomic<std::int64_t> count_{0};  ///< |requests_| but those of listen()
  std::atomic<std::int32_t> next_channel_{first_group_channel.value()};
  std::atomic<std::int32_t> groups_{0};
};

}  // namespace heddle
