#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "node-runtime/collectives/exchange.hpp"
#include "node-runtime/collectives/options.hpp"
#include "node-runtime/collectives/reduce/reduce_operation.hpp"

namespace heddle {

class Stream;

namespace collectives {
class GroupCore;
struct Call;
}  // namespace collectives

/// How an operation was done on this rank.
struct CollectiveReport {
  std::string algorithm;   ///< "host binomial, fragments of 128.00 KiB"
  double predicted_s = 0;  ///< what it was to take
  double seconds = 0;      ///< from its begin until it was found to be over
  /// Of a reduction: the order that was taken, and what it was to take in each one; 0: it has none.
  Order order = Order::ranks;
  double predicted_ranks_s = 0;
  double predicted_places_s = 0;
  std::vector<std::string> others;  ///< what else could have been taken, with its time, or why not
};

/// A collective operation under way. Copies mean the same one; it goes on when all are dropped. Its
/// memory must stay until it is over, and what it sends must not change.
class Collective {
 public:
  struct State;

  explicit Collective(std::shared_ptr<State> state) : state_(std::move(state)) {}

  /// wait() returns, or throws, at once.
  [[nodiscard]] bool done() const;
  /// Blocks until this rank's part is over; throws what made it fail. Any number of times.
  void wait() const;
  /// Once it is over.
  [[nodiscard]] CollectiveReport report() const;

 private:
  std::shared_ptr<State> state_;
};

/// Nodes that act together on memory of their hosts: MPI's collective operations, with the same
/// bits on all ranks whatever algorithm, number of fragments, path, time or rank-to-node map
/// (docs/decisions/035-order-of-reductions.md). Node::group() gives the group of all nodes.
///
/// All members make the same calls in the same order; different groups are independent. Elements
/// are of any Datatype; ranks may describe the same scalars in different ways. Counts are those of
/// one rank's block. Where an operation takes a span, it has a buffer for each rank, each with its
/// own count and type (MPI's v and w forms); ranks without a part in it give an empty one.
///
/// Each operation blocks until this rank's part is over, or has a form begin_... that does not. All
/// ranks use the same form: also one buffer or one for each rank, and in place or not.
///
/// Memory is of the host or of any device of the node, in any mixture of ranks and buffers. With a
/// stream first, an operation begins behind what the stream has queued, returns at once, and what
/// is queued behind it waits for its end; no thread waits. The stream is of a device of this node
/// (Device::create_stream, or adopt_stream() for one of CUDA's), and stays until it has gone on, or
/// is seen to have failed. Where the operation fails the stream does. Groups that share a stream
/// are called in one order. On several nodes, or with runtime.messages.device_memory.
///
/// Errors: a call that makes no sense throws Error(usage) on all members before anything travels.
/// Where calls do not fit together, or a member's part fails, the group fails from that call on: it
/// and all later ones throw why; those before end as they would have. Where a member does not call,
/// or its stream does not come to the operation, for runtime.watchdog_seconds while a thread or a
/// stream waits, all calls under way throw, too. Where a node is lost, all of its
/// groups fail.
///
/// Handles: cheap to copy; all copies are the same group. A group lives as long as a handle, or an
/// operation under way. Nothing is collective in the destructor.
///
/// Threads: any; threads that share a group agree on the order of their calls.
class Group {
 public:
  explicit Group(std::shared_ptr<collectives::GroupCore> core) : core_(std::move(core)) {}

  /// False: made by split() or subset() on a node that is in none. Every other call throws then.
  [[nodiscard]] bool is_member() const { return core_ != nullptr; }
  [[nodiscard]] int rank() const;
  [[nodiscard]] int size() const;

  /// A group of those that give the same `color`, with ranks in the order of `key`, of equals in
  /// that of ranks here. A negative color: no member of any. Collective.
  [[nodiscard]] Group split(int color, int key) const;
  /// A group of these ranks, in this order. Collective over this group, with the same ranks.
  [[nodiscard]] Group subset(std::span<const int> ranks) const;
  [[nodiscard]] Group subset(std::initializer_list<int> ranks) const {
    return subset(std::span(ranks.begin(), ranks.size()));
  }

  /// Makes the members' nodes let go of device memory that operations have used, so that it can be
  /// freed; blocks until they have. Throws Error(usage) while an operation uses it, and for memory
  /// of no device of this node.
  void release(const void* memory) const;

  /// What the group holds on this node, in lines: bytes, and what for. Slots and packed elements
  /// are of the operations under way; memory of devices stays until the group has gone, for the
  /// next ones.
  [[nodiscard]] std::string describe_memory() const;

  void barrier(const CollectiveOptions& options = {}) const;
  [[nodiscard]] Collective begin_barrier(const CollectiveOptions& options = {}) const;
  void barrier(Stream& stream, const CollectiveOptions& options = {}) const;

  /// The root's elements come to all.
  void broadcast(const Incoming& elements, int root, const CollectiveOptions& options = {}) const;
  [[nodiscard]] Collective begin_broadcast(const Incoming& elements, int root,
                                           const CollectiveOptions& options = {}) const;
  void broadcast(Stream& stream, const Incoming& elements, int root,
                 const CollectiveOptions& options = {}) const;

  /// Block r of the root's input comes to rank r. Others' `from` does not count.
  void scatter(const Outgoing& from, const Incoming& to, int root,
               const CollectiveOptions& options = {}) const;
  [[nodiscard]] Collective begin_scatter(const Outgoing& from, const Incoming& to, int root,
                                         const CollectiveOptions& options = {}) const;
  void scatter(Stream& stream, const Outgoing& from, const Incoming& to, int root,
               const CollectiveOptions& options = {}) const;
  void scatter(std::span<const Outgoing> from, const Incoming& to, int root,
               const CollectiveOptions& options = {}) const;
  [[nodiscard]] Collective begin_scatter(std::span<const Outgoing> from, const Incoming& to,
                                         int root, const CollectiveOptions& options = {}) const;
  void scatter(Stream& stream, std::span<const Outgoing> from, const Incoming& to, int root,
               const CollectiveOptions& options = {}) const;

  /// The elements of rank r become block r of the root's output. Others' `to` does not count.
  void gather(const Outgoing& from, const Incoming& to, int root,
              const CollectiveOptions& options = {}) const;
  [[nodiscard]] Collective begin_gather(const Outgoing& from, const Incoming& to, int root,
                                        const CollectiveOptions& options = {}) const;
  void gather(Stream& stream, const Outgoing& from, const Incoming& to, int root,
              const CollectiveOptions& options = {}) const;
  void gather(const Outgoing& from, std::span<const Incoming> to, int root,
              const CollectiveOptions& options = {}) const;
  [[nodiscard]] Collective begin_gather(const Outgoing& from, std::span<const Incoming> to,
                                        int root, const CollectiveOptions& options = {}) const;
  void gather(Stream& stream, const Outgoing& from, std::span<const Incoming> to, int root,
              const CollectiveOptions& options = {}) const;

  /// The elements of rank r become block r on all ranks; in place they are there on rank r.
  void all_gather(const Outgoing& from, const Incoming& to,
                  const CollectiveOptions& options = {}) const;
  void all_gather(const Incoming& all, const CollectiveOptions& options = {}) const;
  void all_gather(const Outgoing& from, std::span<const Incoming> to,
                  const CollectiveOptions& options = {}) const;
  [[nodiscard]] Collective begin_all_gather(const Outgoing& from, const Incoming& to,
                                            const CollectiveOptions& options = {}) const;
  void all_gather(Stream& stream, const Outgoing& from, const Incoming& to,
                  const CollectiveOptions& options = {}) const;
  [[nodiscard]] Collective begin_all_gather(const Incoming& all,
                                            const CollectiveOptions& options = {}) const;
  void all_gather(Stream& stream, const Incoming& all, const CollectiveOptions& options = {}) const;
  [[nodiscard]] Collective begin_all_gather(const Outgoing& from, std::span<const Incoming> to,
                                            const CollectiveOptions& options = {}) const;
  void all_gather(Stream& stream, const Outgoing& from, std::span<const Incoming> to,
                  const CollectiveOptions& options = {}) const;

  /// Block s of rank r becomes block r of rank s.
  void all_to_all(const Outgoing& from, const Incoming& to,
                  const CollectiveOptions& options = {}) const;
  void all_to_all(std::span<const Outgoing> from, std::span<const Incoming> to,
                  const CollectiveOptions& options = {}) const;
  [[nodiscard]] Collective begin_all_to_all(const Outgoing& from, const Incoming& to,
                                            const CollectiveOptions& options = {}) const;
  void all_to_all(Stream& stream, const Outgoing& from, const Incoming& to,
                  const CollectiveOptions& options = {}) const;
  [[nodiscard]] Collective begin_all_to_all(std::span<const Outgoing> from,
                                            std::span<const Incoming> to,
                                            const CollectiveOptions& options = {}) const;
  void all_to_all(Stream& stream, std::span<const Outgoing> from, std::span<const Incoming> to,
                  const CollectiveOptions& options = {}) const;

  /// The elements of all ranks, put together one by one, come to the root. Others' `to` does not
  /// count.
  void reduce(const Outgoing& from, const Incoming& to, const ReduceOperation& operation, int root,
              const CollectiveOptions& options = {}) const;
  [[nodiscard]] Collective begin_reduce(const Outgoing& from, const Incoming& to,
                                        const ReduceOperation& operation, int root,
                                        const CollectiveOptions& options = {}) const;
  void reduce(Stream& stream, const Outgoing& from, const Incoming& to,
              const ReduceOperation& operation, int root,
              const CollectiveOptions& options = {}) const;

  /// They come to all ranks.
  void all_reduce(const Outgoing& from, const Incoming& to, const ReduceOperation& operation,
                  const CollectiveOptions& options = {}) const;
  void all_reduce(const Incoming& all, const ReduceOperation& operation,
                  const CollectiveOptions& options = {}) const;
  [[nodiscard]] Collective begin_all_reduce(const Outgoing& from, const Incoming& to,
                                            const ReduceOperation& operation,
                                            const CollectiveOptions& options = {}) const;
  void all_reduce(Stream& stream, const Outgoing& from, const Incoming& to,
                  const ReduceOperation& operation, const CollectiveOptions& options = {}) const;
  [[nodiscard]] Collective begin_all_reduce(const Incoming& all, const ReduceOperation& operation,
                                            const CollectiveOptions& options = {}) const;
  void all_reduce(Stream& stream, const Incoming& all, const ReduceOperation& operation,
                  const CollectiveOptions& options = {}) const;

  /// Block r of them comes to rank r. With `counts`, of each rank, `from` has all blocks.
  void reduce_scatter(const Outgoing& from, const Incoming& to, const ReduceOperation& operation,
                      const CollectiveOptions& options = {}) const;
  void reduce_scatter(const Outgoing& from, const Incoming& to,
                      std::span<const std::int64_t> counts, const ReduceOperation& operation,
                      const CollectiveOptions& options = {}) const;
  [[nodiscard]] Collective begin_reduce_scatter(const Outgoing& from, const Incoming& to,
                                                const ReduceOperation& operation,
                                                const CollectiveOptions& options = {}) const;
  void reduce_scatter(Stream& stream, const Outgoing& from, const Incoming& to,
                      const ReduceOperation& operation,
                      const CollectiveOptions& options = {}) const;
  [[nodiscard]] Collective begin_reduce_scatter(const Outgoing& from, const Incoming& to,
                                                std::span<const std::int64_t> counts,
                                                const ReduceOperation& operation,
                                                const CollectiveOptions& options = {}) const;
  void reduce_scatter(Stream& stream, const Outgoing& from, const Incoming& to,
                      std::span<const std::int64_t> counts, const ReduceOperation& operation,
                      const CollectiveOptions& options = {}) const;

  /// Those of ranks 0 to r come to rank r; with exclusive_scan those of ranks before r, and rank
  /// 0's output stays as it is.
  void scan(const Outgoing& from, const Incoming& to, const ReduceOperation& operation,
            const CollectiveOptions& options = {}) const;
  void scan(const Incoming& all, const ReduceOperation& operation,
            const CollectiveOptions& options = {}) const;
  void exclusive_scan(const Outgoing& from, const Incoming& to, const ReduceOperation& operation,
                      const CollectiveOptions& options = {}) const;
  [[nodiscard]] Collective begin_scan(const Outgoing& from, const Incoming& to,
                                      const ReduceOperation& operation,
                                      const CollectiveOptions& options = {}) const;
  void scan(Stream& stream, const Outgoing& from, const Incoming& to,
            const ReduceOperation& operation, const CollectiveOptions& options = {}) const;
  [[nodiscard]] Collective begin_scan(const Incoming& all, const ReduceOperation& operation,
                                      const CollectiveOptions& options = {}) const;
  void scan(Stream& stream, const Incoming& all, const ReduceOperation& operation,
            const CollectiveOptions& options = {}) const;
  [[nodiscard]] Collective begin_exclusive_scan(const Outgoing& from, const Incoming& to,
                                                const ReduceOperation& operation,
                                                const CollectiveOptions& options = {}) const;
  void exclusive_scan(Stream& stream, const Outgoing& from, const Incoming& to,
                      const ReduceOperation& operation,
                      const CollectiveOptions& options = {}) const;

  /// Makes an exchange: parts to and from neighbours, any number of them for each rank, this one
  /// included, whose parts are copied. Between two ranks the first outgoing part is the first
  /// incoming one, and so on: their scalars must be the same, their types and memory are each
  /// rank's own. Collective, a call like others; members without parts give none. What does not fit
  /// throws Error(usage) on all members, naming both sides, and the group goes on.
  [[nodiscard]] Exchange exchange(std::span<const OutgoingPart> outgoing,
                                  std::span<const IncomingPart> incoming,
                                  const ExchangeOptions& options = {}) const;

 private:
  [[nodiscard]] collectives::GroupCore& core() const;
  [[nodiscard]] Collective begin(collectives::Call call) const;
  void begin_on(collectives::Call call, Stream& stream) const;

  std::shared_ptr<collectives::GroupCore> core_;
};

}  // namespace heddle
