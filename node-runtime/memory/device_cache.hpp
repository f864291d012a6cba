#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "node-runtime/device/device.hpp"
#include "node-runtime/memory/backing.hpp"
#include "node-runtime/residency/residency.hpp"

namespace heddle {

/// The memory of one device for tiles: allocated as a whole for the first pool, and shared by all
/// blocks of the device's place (Residency). While they fit, each keeps the frame of its first use,
/// and nothing is transferred; beyond that, blocks are evicted to host memory (BackedPools) and
/// fetched again.
///
/// A thread acquires the blocks that it uses and releases them afterwards; the copy thread carries
/// the transfers out. Its lock may be taken with the engine's held, never the other way round;
/// outside calls that it makes only ring bells.
///
/// It has more than 30 functions because it is Residency's interface with a lock around it.
///
/// Invariant (`is_valid()`), between calls:
///   that of Residency and of BackedPools;  no action is left to carry out
///   pending tickets = requests of Residency that are not ready
///   a block with a transfer to do is in transfer and has a backing
///
/// Thread: any, except where said otherwise.
class DeviceCache {
 public:
  using Use = Residency::Use;
  /// Which thread waits for a request.
  enum class Requester : std::uint8_t { manager, copies, host };

  /// A block's content between its frame and its backing.
  struct Transfer {
    ResidentBlock block;
    bool is_fetch = false;
    std::byte* device = nullptr;
    std::byte* host = nullptr;
    std::size_t bytes = 0;
    protocol::TileId tile{};  ///< that it holds
  };

  using Provider = BackedPools::Provider;

  /// May take what the device has available now.
  DeviceCache(Device& device, Provider provider);
  DeviceCache(const DeviceCache&) = delete;
  DeviceCache& operator=(const DeviceCache&) = delete;
  ~DeviceCache() = default;

  /// Before any thread uses it: what to call when requests are ready, and when there are transfers.
  void tell(std::function<void(Requester)> ready, std::function<void()> transfers);

  // ---- blocks: by one thread at a time --------------------------------------------------------
  /// What is to be taken of the device's memory; all that is available when left out, and at most
  /// that. Without effect once it is taken.
  void set_budget(std::uint64_t bytes);
  /// The blocks of a pool; `bytes` of each. The first one takes the memory: throws Error(usage)
  /// when somebody else has it.
  [[nodiscard]] std::vector<ResidentBlock> add_pool(std::span<const std::size_t> bytes);
  /// The blocks are not in use, and never will be.
  void remove_pool(std::span<const ResidentBlock> blocks);
  /// Bytes of the frames of all blocks, whether they fit or not.
  [[nodiscard]] std::uint64_t block_bytes() const;
  [[nodiscard]] std::size_t largest_block_bytes() const;
  /// Bytes that frames have, or can have while the memory is not taken.
  [[nodiscard]] std::uint64_t bytes() const;
  /// There is room for all blocks at the same time.
  [[nodiscard]] bool holds_all() const { return block_bytes() <= bytes(); }
  /// When backings are page-locked: at once, or before the first transfer that needs them
  /// (prepare).
  enum class Locking : std::uint8_t { now, later };
  /// Most bytes of host memory behind pools whose frames take `frame_bytes`.
  [[nodiscard]] static std::uint64_t backing_bytes_max(std::uint64_t frame_bytes) {
    return BackedPools::backing_bytes_max(frame_bytes);
  }
  /// Bytes of all backings.
  [[nodiscard]] std::uint64_t backing_bytes() const;
  /// Gives every pool its backing now: since not all blocks fit, or since the host is going to use
  /// some.
  void back_all(Locking locking);

  // ---- use ------------------------------------------------------------------------------------
  /// Pins the blocks if they can be used at once. Blocks are distinct.
  [[nodiscard]] bool try_acquire(std::span<const Use> uses);
  /// Requests them; take_ready() returns `cookie` when they are pinned.
  void request(std::span<const Use> uses, Requester requester, void* cookie);
  [[nodiscard]] std::vector<void*> take_ready(Requester requester);
  void release(std::span<const Use> uses);

  /// Requests the blocks in their backings, for a task on the host; take_ready(host) returns
  /// `cookie` when they are there. Follow it by release_host().
  void request_host(std::span<const Use> uses, void* cookie);
  void release_host(std::span<const Use> uses);
  /// Where a block is on the host, between the two.
  [[nodiscard]] std::byte* host_address(ResidentBlock block) const;

  /// Memory that a message reads or writes: the block's frame, pinned, or its backing.
  struct MessageBuffer {
    std::byte* address = nullptr;
    bool is_backing = false;
  };
  /// For messages, which must not wait for space (deadlock across nodes). Nothing only while this
  /// block is being transferred. Follow it by release_for_message().
  ///
  /// No deadlock: without a frame, a message arrives in the backing, so receiving waits for no
  /// other node; so sends complete, and their pins end.
  [[nodiscard]] std::optional<MessageBuffer> acquire_for_message(const Use& use);
  void release_for_message(const Use& use, const MessageBuffer& buffer);

  /// Where a pinned block is.
  [[nodiscard]] std::byte* address(ResidentBlock block) const;
  /// The content is no longer needed.
  void discard(ResidentBlock block);
  /// Bytes that would have to be written back first, for a use on the host.
  [[nodiscard]] std::uint64_t missing_host_bytes(std::span<const Use> uses) const;

  // ---- for the copy thread --------------------------------------------------------------------
  [[nodiscard]] std::vector<Transfer> take_transfers();
  /// The most urgent of some transfers that have not begun, the first of equal ones; at least one.
  [[nodiscard]] std::size_t most_urgent(std::span<const Transfer> transfers) const;
  /// Before a transfer starts: page-locks its part of the backing, if it is not. Without the lock,
  /// since that takes milliseconds.
  void prepare(const Transfer& transfer);
  void transfer_finished(const Transfer& transfer);

  [[nodiscard]] Residency::Statistics statistics() const;
  /// O(everything); for tests.
  [[nodiscard]] bool is_valid() const;

 private:
  static constexpr std::size_t requester_count = 3;
  struct Pending {
    Requester requester;
    void* cookie;
  };
  /// What to tell once the lock is free.
  struct News {
    std::array<bool, requester_count> ready{};
    bool transfers = false;
  };

  [[nodiscard]] bool is_undefined(const Use& use) const;
  void define(std::span<const Use> uses);
  void remove(ResidentBlock block);
  [[nodiscard]] News collect();
  void tell(const News& news);
  /// Makes a change with the lock, and tells of its consequences without it.
  template <class Change>
  void change(Change&& apply) {
    News news;
    {
      const std::scoped_lock lock(mutex_);
      std::forward<Change>(apply)();
      news = collect();
    }
    tell(news);
  }

  void take_memory();
  [[nodiscard]] std::byte* frame(std::uint64_t offset) const { return memory_->address() + offset; }

  Device& device_;
  std::function<void(Requester)> on_ready_ = [](Requester) {};
  std::function<void()> on_transfers_ = [] {};

  mutable std::mutex mutex_;  ///< all that follows
  std::uint64_t budget_;
  std::optional<DeviceBuffer> memory_;  ///< once there is a pool
  Residency residency_;
  Residency::Actions actions_;
  BackedPools pools_;
  std::unordered_map<std::int64_t, Pending> pending_;  ///< by ticket
  std::array<std::vector<void*>, requester_count> ready_;
  std::vector<Transfer> transfers_;
};

}  // namespace heddle
