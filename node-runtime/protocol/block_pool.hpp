#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "base/index.hpp"
#include "node-runtime/protocol/links.hpp"
#include "node-runtime/protocol/types.hpp"

namespace heddle::protocol {

struct Item;
struct Job;
class BlockPool;

/// A job's pool at one place.
struct PoolOptions {
  std::int32_t id = BlockRef::none;  ///< value of BlockRef::pool
  std::int32_t capacity = 0;         ///< blocks
  std::int32_t minimum = 0;          ///< blocks that the plan computed (pool_plan.hpp) <= capacity
};

/// A request for a block of a job's pool, and the holder of that block.
struct BlockRequest : Links {
  enum class Kind : std::uint8_t { replica, landing, scratch, temporary };
  enum class State : std::uint8_t { idle, waiting, held };
  Kind kind;
  State state = State::idle;
  bool extra = false;        ///< granted early: in `first_user->extra_blocks`
  bool prioritized = false;  ///< all other inputs of its reader are available
  BlockPool* pool = nullptr;
  Job* pool_job = nullptr;
  Item* first_user = nullptr;  ///< valid while waiting
  std::uint64_t user_order = 0;
  std::uint64_t sequence = 0;  ///< orders requests of one item
  BlockRef granted;            ///< valid while held

  explicit BlockRequest(Kind k) : kind(k) {}

  /// When a requested block can be used; the soonest first.
  enum class Use : std::uint8_t {
    write,  ///< at once: a task whose inputs are present writes to it
    fetch,  ///< data is available elsewhere, and so are all other inputs of the reader
    copy,   ///< data is on this node; other inputs of the reader are missing
    grant,  ///< when the data arrives; its task may not have started
  };
  static constexpr std::size_t use_count = 4;
  [[nodiscard]] Use use() const {
    if (prioritized) return Use::fetch;
    if (kind == Kind::landing) return Use::grant;
    return kind == Kind::replica ? Use::copy : Use::write;
  }
};

/// A job's blocks at one place for copies of versions (replicas, arrivals, temporaries, scratch),
/// and the requests that wait for one: resource 3 of decision 011, which argues why no job stops
/// for want of a block.
///
/// `minimum` is the largest number of blocks alive at any point of the sequential program
/// (pool_plan.hpp). A block is *extra* while the first user of its holder is not the oldest
/// unfinished item of the job.
///
/// Invariant: free + held == capacity, 0 <= extra <= min(held, capacity - minimum),
/// and each queued request waits, in the queue of its use.
///
/// `oldest` in the functions: Item::order of the job's oldest unfinished item.
class BlockPool {
 public:
  BlockPool(PlaceId place, const PoolOptions& options);

  /// Takes a block for `request`, or lets it wait. Returns whether it has one.
  [[nodiscard]] bool request(BlockRequest& request, std::uint64_t oldest);
  /// Repeats a waiting request as one for Use::fetch. Returns whether it has a block now.
  [[nodiscard]] bool prioritize(BlockRequest& request, std::uint64_t oldest);
  /// Takes a block for the next waiting request that may have one; null: there is none.
  [[nodiscard]] BlockRequest* grant_next(std::uint64_t oldest);
  void give_back(BlockRequest& holder);
  /// The first user of an extra block's holder is now the job's oldest item.
  void no_longer_extra(BlockRequest& holder);

  [[nodiscard]] PlaceId place() const { return place_; }
  [[nodiscard]] std::int32_t capacity() const { return capacity_; }
  [[nodiscard]] std::int32_t free() const { return static_cast<std::int32_t>(free_.size()); }
  [[nodiscard]] std::int32_t extra() const { return extra_; }
  [[nodiscard]] std::size_t waiting(BlockRequest::Use use) const { return queue(use).size(); }
  [[nodiscard]] std::size_t waiting() const;
  /// Requests wait for blocks ahead of need.
  [[nodiscard]] bool has_early() const {
    return waiting(BlockRequest::Use::copy) > 0 || waiting(BlockRequest::Use::grant) > 0;
  }
  [[nodiscard]] bool is_valid() const;

 private:
  /// By program order of the first user, then by request.
  struct IsSooner {
    bool operator()(const BlockRequest* a, const BlockRequest* b) const {
      return std::pair(a->user_order, a->sequence) < std::pair(b->user_order, b->sequence);
    }
  };
  using Queue = std::set<BlockRequest*, IsSooner>;

  [[nodiscard]] Queue& queue(BlockRequest::Use use) {
    return waiting_[static_cast<std::size_t>(use)];
  }
  [[nodiscard]] const Queue& queue(BlockRequest::Use use) const {
    return waiting_[static_cast<std::size_t>(use)];
  }
  [[nodiscard]] std::int32_t extra_max(BlockRequest::Use use) const;
  [[nodiscard]] bool enter(BlockRequest& request, std::uint64_t oldest);
  [[nodiscard]] bool take(BlockRequest& request, std::uint64_t oldest);

  PlaceId place_;
  std::int32_t id_;
  std::int32_t capacity_;
  std::int32_t minimum_;
  std::int32_t held_ = 0;
  std::int32_t extra_ = 0;
  std::vector<std::int32_t> free_;
  std::uint64_t requests_ = 0;  ///< number of requests so far
  std::array<Queue, BlockRequest::use_count> waiting_;
  /// The job has had a request of that use; it keeps its share until the job's end.
  std::array<bool, BlockRequest::use_count> is_used_{};
};

}  // namespace heddle::protocol
