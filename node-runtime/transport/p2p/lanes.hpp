#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "node-runtime/device/device.hpp"
#include "node-runtime/transport/p2p/wire.hpp"
#include "node-runtime/transport/pack/device_packer.hpp"

namespace heddle::p2p {

/// A device of the node, by its place in the endpoint's list.
using LaneId = Index<struct LaneTag, std::int32_t>;

/// A run of packed bytes somewhere. `device == nullptr`: host memory that all lanes access.
struct Spot {
  std::byte* address = nullptr;
  const Device* device = nullptr;
  bool is_near = false;  ///< memory of the very GPU whose lane is to read or write it
};

/// The devices' work for messages: streams of each for outgoing and for incoming data, and the
/// packing engine. Operations go to the streams in turns, so that one begins while the last stores
/// of the one before are in flight: they complete in any order. No function blocks: poll() reports
/// operations that have completed.
///
/// When an operation fails, those behind it on its stream fail with it, and the stream is replaced.
///
/// Thread: the progress thread. Destroyed when nothing is under way, or after abandon().
class Lanes {
 public:
  enum class Direction : std::uint8_t { out, in };
  struct Elements {
    std::shared_ptr<const PackPlan> plan;
    std::int64_t count = 0;
    std::byte* memory = nullptr;
    bool on_host = false;  ///< in memory that the lane reaches
  };
  /// All elements of one side under loops, seen from the first byte that is touched.
  struct Loops {
    const LoopShape& shape;
    Spot memory;
  };
  struct Options {
    DevicePacker::Options packer;
    std::uint32_t blocks_max = 0;  ///< thread blocks that packing may take, see PackOptions
    std::int32_t streams = 2;      ///< of each kind: out, out by copies, in
  };
  struct Ended {
    OperationId id;
    std::optional<std::string> failure;
  };

  /// Devices that notify call `notifier` when an operation ends.
  Lanes(std::span<Device* const> devices, const Options& options, Notifier& notifier);
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;
  ~Lanes();

  [[nodiscard]] std::int32_t count() const { return static_cast<std::int32_t>(lanes_.size()); }
  [[nodiscard]] Device& device(LaneId lane) const { return at(lane).device; }
  /// The device that the memory belongs to, whichever library allocated it; nullopt for host
  /// memory. Memory that is in no device's pool is looked up, which takes longer than a short
  /// message, unless its page was found to be the host's before. Threads: any.
  [[nodiscard]] std::optional<LaneId> owner_of(const void* address, std::int64_t bytes) const;
  /// The lane of a device that is this very GPU.
  [[nodiscard]] std::optional<LaneId> lane_on(const DeviceUuid& device) const;

  /// Queues packing a range of elements to `to`, not both on the host. Like those below: throws
  /// Error(internal) for memory that is not as described, and then nothing is queued.
  void pack(LaneId lane, const Elements& elements, StreamRange range, const Spot& to,
            OperationId id);
  /// Likewise by way of memory of the lane's device: packed there, and moved by a copy engine. On
  /// streams of their own: to another device, kernels and copies each leave the link idle for some
  /// microseconds between two pieces, in which the others' go on.
  void pack_and_copy(LaneId lane, const Elements& elements, StreamRange range, std::byte* between,
                     const Spot& to, OperationId id);
  void unpack(LaneId lane, const Elements& elements, StreamRange range, const Spot& from,
              OperationId id);
  /// Between shapes that fit each other, in memory that the device reaches, not both on the host.
  void transfer(LaneId lane, Direction direction, const Loops& from, const Loops& to,
                OperationId id);

  /// Calls `queue(stream, packer)` with a stream for work that belongs to no message. What it
  /// throws leaves here when what it had queued has ended.
  template <class Queueing>
  void run(LaneId lane, const Queueing& queue, OperationId id) {
    Lane& on = at(lane);
    Queue& used = next(works_of(on));
    try {
      queue(*used.stream, on.packer);
    } catch (...) {
      settle(*used.stream);
      throw;
    }
    queued(on, used, id);
  }
  /// Reports the end of an event that another stream of the lane's device has recorded.
  void watch(LaneId lane, std::shared_ptr<const Event> event, OperationId id);
  /// Does not report it any more.
  void forget(LaneId lane, OperationId id);

  /// Adds what has ended.
  void poll(std::vector<Ended>& ended);
  [[nodiscard]] bool is_idle() const { return under_way_ == 0; }
  /// Drops the operations in flight; poll() does not report them any more.
  void abandon();

 private:
  struct Queued {
    std::unique_ptr<Event> event;
    OperationId id;
  };
  struct Queue {
    std::unique_ptr<Stream> stream;
    std::deque<Queued> operations;  ///< in order
    /// Spare events, recorded only on this stream: one that is recorded elsewhere is asked before
    /// whether it is complete, which takes as long as recording it.
    std::vector<std::unique_ptr<Event>> events;
  };
  struct Queues {
    std::vector<Queue> all;
    std::size_t next = 0;
  };
  struct Watched {
    std::shared_ptr<const Event> event;
    OperationId id;
  };
  struct Lane {
    Lane(Device& on, const Options& options) : device(on), packer(on, options.packer) {}
    Device& device;
    DevicePacker packer;
    Queues out;
    Queues out_by_copies;
    Queues in;
    Queues works;  ///< made when they are first needed
    std::vector<Watched> watched;
    /// Not watched any more, but not complete: an event is destroyed when it is.
    std::vector<std::shared_ptr<const Event>> forgotten;
  };

  [[nodiscard]] Lane& at(LaneId lane) const {
    return *lanes_[static_cast<std::size_t>(lane.value())];
  }
  [[nodiscard]] Queues& works_of(Lane& lane);
  static void settle(Stream& stream);
  void poll_watched(Lane& lane, std::vector<Ended>& ended);
  /// The one whose turn it is.
  [[nodiscard]] static Queue& next(Queues& queues);
  void queued(Lane& lane, Queue& queue, OperationId id);
  void poll(Lane& lane, Queue& queue, std::vector<Ended>& ended);
  void fail(Lane& lane, Queue& queue, std::vector<Ended>& ended) const;

  /// Where a page of host memory is remembered.
  [[nodiscard]] std::atomic<std::uintptr_t>& known_page(std::uintptr_t page) const {
    return host_pages_[page % host_pages_.size()];
  }

  Options options_;
  Notifier& notifier_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  mutable std::array<std::atomic<std::uintptr_t>, 256> host_pages_{};  ///< the last ones seen
  std::int64_t under_way_ = 0;
};

}  // namespace heddle::p2p
