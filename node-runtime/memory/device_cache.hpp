#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "node-runtime/device/device.hpp"
#include "node-runtime/memory/host_region.hpp"
#include "node-runtime/residency/residency.hpp"

namespace heddle {

/// Host memory that holds what a device's memory has no room for, one after the other for the
/// blocks of a pool.
class Backing {
 public:
  Backing(HostRegion region, Device& device);
  ~Backing();
  Backing(const Backing&) = delete;
  Backing& operator=(const Backing&) = delete;

  [[nodiscard]] std::byte* address() const { return region_.address(); }
  [[nodiscard]] std::size_t bytes() const { return region_.bytes(); }

  /// Has the device make whole pages of it good for its copies, if it can and has not been asked
  /// before; where it cannot, copies work slower. Up to a third of a second for each GiB, in which
  /// the device may start nothing new. `begin`: in bytes from address(); parts do not overlap. By
  /// one thread at a time.
  void lock_part(std::size_t begin, std::size_t bytes);

 private:
  HostRegion region_;
  Device& device_;
  std::unordered_map<std::size_t, bool> parts_;  ///< by begin: whether the device has made it good
};

/// The memory of one device: taken once, as a whole, and shared by all blocks of the device's place
/// (Residency). While they fit, each keeps the frame that its first use gave it, and nothing here
/// moves data; beyond that they come and go.
///
/// Who uses blocks acquires them first and releases them afterwards; the copy thread carries the
/// transfers out. Thread: any, except where said otherwise. Its lock is taken with the engine's
/// held and never the other way round; what it calls outside only rings bells.
class DeviceCache {
 public:
  using Use = Residency::Use;
  /// Who is told that a request is ready.
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

  /// Host memory for a pool's backing. May throw Error(usage).
  using Provider = std::function<std::shared_ptr<Backing>(std::size_t bytes)>;

  /// Takes all memory of the device that is left.
  DeviceCache(Device& device, Provider provider);
  DeviceCache(const DeviceCache&) = delete;
  DeviceCache& operator=(const DeviceCache&) = delete;
  ~DeviceCache() = default;

  /// Before any thread uses it: who is told of ready requests and of transfers to do.
  void tell(std::function<void(Requester)> ready, std::function<void()> transfers);

  // ---- blocks: by one thread at a time --------------------------------------------------------
  /// The blocks of a pool; `bytes` of each.
  [[nodiscard]] std::vector<ResidentBlock> add_pool(std::span<const std::size_t> bytes);
  /// Nobody uses the blocks any more.
  void remove_pool(std::span<const ResidentBlock> blocks);
  /// Bytes of the frames of all blocks, whether they fit or not.
  [[nodiscard]] std::uint64_t block_bytes() const;
  [[nodiscard]] std::size_t largest_block_bytes() const;
  /// Bytes that frames can have.
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  /// There is room for all blocks at the same time.
  [[nodiscard]] bool holds_all() const { return block_bytes() <= bytes(); }
  /// When host memory is made good for copies: at once, or before the first transfer that needs it
  /// (prepare).
  enum class Locking : std::uint8_t { now, later };
  /// Bytes of host memory behind pools whose frames take so many, at most.
  [[nodiscard]] static std::uint64_t backing_bytes_max(std::uint64_t frame_bytes);
  /// Gives every pool its backing now rather than when it is first needed: since not all blocks
  /// fit, or since the host is going to use some.
  void back_all(Locking locking);

  // ---- use ------------------------------------------------------------------------------------
  /// Pins the blocks if they can be used at once. Blocks are distinct.
  [[nodiscard]] bool try_acquire(std::span<const Use> uses);
  /// Asks for them; take_ready() gives `cookie` back when they are pinned.
  void request(std::span<const Use> uses, Requester requester, void* cookie);
  [[nodiscard]] std::vector<void*> take_ready(Requester requester);
  void release(std::span<const Use> uses);

  /// Asks for the blocks in their backings, for who computes on the host; take_ready(host) gives
  /// `cookie` back when they are there. To be followed by release_host().
  void request_host(std::span<const Use> uses, void* cookie);
  void release_host(std::span<const Use> uses);
  /// Where a block is on the host, between the two.
  [[nodiscard]] std::byte* host_address(ResidentBlock block) const;

  /// Where a block's content is, or can be left, for as long as a message reads or writes it: in
  /// the device's memory, pinned, or in what backs the block.
  struct Reach {
    std::byte* address = nullptr;
    bool is_backing = false;
  };
  /// For who must not wait for room, since others on other nodes wait for it: a message. Nothing
  /// only while a transfer of this very block is under way. To be followed by end_reach().
  ///
  /// Why nodes do not wait for each other in a circle: where there is no frame for what arrives it
  /// goes to the backing, so receiving waits for nobody; so what is sent arrives, and its pin
  /// ends.
  [[nodiscard]] std::optional<Reach> reach(const Use& use);
  void end_reach(const Use& use, const Reach& reach);

  /// Where a pinned block is.
  [[nodiscard]] std::byte* address(ResidentBlock block) const;
  /// Nobody needs the content any more.
  void discard(ResidentBlock block);
  /// Bytes that would have to be written back first, for a use on the host.
  [[nodiscard]] std::uint64_t missing_host_bytes(std::span<const Use> uses) const;

  // ---- for the copy thread --------------------------------------------------------------------
  [[nodiscard]] std::vector<Transfer> take_transfers();
  /// Which of some transfers that have not begun is the most urgent now, the first of equal ones.
  [[nodiscard]] std::size_t most_urgent(std::span<const Transfer> transfers) const;
  /// Before a transfer starts: makes its host memory good for copies, if nothing has yet. Without
  /// the lock, since that takes milliseconds.
  void prepare(const Transfer& transfer);
  void transfer_finished(const Transfer& transfer);

  [[nodiscard]] Residency::Statistics statistics() const;

 private:
  static constexpr std::size_t requester_count = 3;
  /// Whole blocks and whole pages of a pool's backing, which become good for copies together.
  struct Part {
    std::size_t begin = 0;
    std::size_t bytes = 0;
  };
  struct Pool {
    std::size_t bytes = 0;    ///< of its blocks' frames
    std::size_t largest = 0;  ///< of its blocks
    std::vector<Part> parts;  ///< one after the other
    std::shared_ptr<Backing> backing;

    [[nodiscard]] std::size_t backing_bytes() const {
      return parts.empty() ? 0 : parts.back().begin + parts.back().bytes;
    }
    /// Appends a block; its offset in the backing. Its part is the last one.
    std::size_t append(std::size_t block_bytes);
  };
  struct Block {
    std::shared_ptr<Pool> pool;
    std::size_t offset = 0;  ///< in the pool's backing
    std::size_t part = 0;
    bool is_removed = false;  ///< as soon as its transfer ends
  };
  struct Pending {
    Requester requester;
    void* cookie;
  };
  /// Whom to tell once the lock is free.
  struct News {
    std::array<bool, requester_count> ready{};
    bool transfers = false;
  };

  [[nodiscard]] Block& at(ResidentBlock block) {
    return blocks_[static_cast<std::size_t>(block.value())];
  }
  void ensure_backing(Pool& pool);
  [[nodiscard]] bool is_undefined(const Use& use) const;
  void define(std::span<const Use> uses);
  void remove(ResidentBlock block);
  [[nodiscard]] std::byte* backing_of(ResidentBlock block) const;
  [[nodiscard]] News collect();
  void tell(const News& news);

  Device& device_;
  Provider provider_;
  DeviceBuffer pool_;
  std::function<void(Requester)> on_ready_ = [](Requester) {};
  std::function<void()> on_transfers_ = [] {};

  mutable std::mutex mutex_;  ///< all that follows
  Residency residency_;
  const std::uint64_t bytes_ = residency_.bytes();
  Residency::Actions actions_;
  std::vector<Block> blocks_;  ///< by ResidentBlock
  std::uint64_t block_bytes_ = 0;
  std::multiset<std::size_t> largest_;                 ///< of each pool's blocks
  std::unordered_map<std::int64_t, Pending> pending_;  ///< by ticket
  std::array<std::vector<void*>, requester_count> ready_;
  std::vector<Transfer> transfers_;
};

}  // namespace heddle
