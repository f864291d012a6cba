#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/id_table.hpp"
#include "base/index.hpp"
#include "base/optional_index.hpp"
#include "node-runtime/transport/p2p/keyed_queues.hpp"

namespace heddle::p2p {

/// A receive that was posted; ids are never used twice.
using ReceiveId = Index<struct ReceiveTag, std::int64_t>;
/// A message that has arrived, or the announcement of one.
using ArrivalId = Index<struct ArrivalTag, std::int64_t>;

/// A space of tags of its own: messages of one channel are never seen by receives of another.
using ChannelId = Index<struct ChannelTag, std::int32_t>;

/// What a message says of itself.
struct Envelope {
  NodeId source;
  std::int32_t tag = 0;  ///< >= 0
  ChannelId channel;
  friend bool operator==(const Envelope&, const Envelope&) = default;
};

/// What a receive asks for.
struct Pattern {
  static constexpr NodeId any_source{-1};
  static constexpr std::int32_t any_tag = -1;

  NodeId source = any_source;
  std::int32_t tag = any_tag;
  ChannelId channel;

  [[nodiscard]] bool matches(const Envelope& e) const {
    return channel == e.channel && (source == any_source || source == e.source) &&
           (tag == any_tag || tag == e.tag);
  }
};

/// Which message goes to which receive, by MPI's rules: of the receives that match a message the
/// one that was posted first takes it; of the messages that match a receive it takes the one that
/// arrived first. Messages of one source arrive in the order in which they were sent (the wire sees
/// to that), so they do not overtake each other.
///
/// A message without a matching receive is *unexpected*. Its announcement is kept, and its bytes
/// where it was eager (Credits). The number of announcements is bounded by the
/// requests that nodes may have, that of posted receives by this node's.
///
/// Cost: O(1) for each event on the average, whatever is posted or unexpected: both are kept in
/// queues by source and tag, a receive in the one that its pattern names, a message in the four
/// that receives may name (with and without its source, with and without its tag). A message looks
/// only into queues of kinds of patterns that have been posted. Allocates only when there are more
/// entries than ever before.
///
/// Invariant (`is_valid()`): no posted receive matches an unexpected message; each of both is in
/// its queues and nowhere else, and these are in order.
///
/// Not thread-safe: the progress thread's.
class Matching {
 public:
  /// Posts a receive. The message that it takes; nullopt: it waits for one.
  [[nodiscard]] OptionalIndex<ArrivalId> post(ReceiveId id, const Pattern& pattern);
  /// A message has arrived. The receive that takes it; nullopt: it is unexpected.
  [[nodiscard]] OptionalIndex<ReceiveId> arrive(ArrivalId id, const Envelope& envelope);
  /// Cancels a receive that waits. False: it has taken a message, or is unknown.
  bool cancel(ReceiveId id);
  /// Withdraws an unexpected message. False: a receive has taken it, or it is unknown.
  bool withdraw(ArrivalId id);
  /// A source is gone: takes out the receives that only it could have served, and gives back their
  /// ids, in the order in which they were posted. Its unexpected messages stay for receives to
  /// come: what has arrived whole can be received.
  [[nodiscard]] std::vector<ReceiveId> lose(NodeId source);

  [[nodiscard]] std::size_t posted() const { return receives_.size(); }
  [[nodiscard]] std::size_t unexpected() const { return arrivals_.size(); }

  /// O(everything); for tests and HEDDLE_EXPENSIVE.
  [[nodiscard]] bool is_valid() const;

 private:
  struct Key {
    NodeId source;
    std::int32_t tag = 0;
    ChannelId channel;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const;
  };
  using Queues = KeyedQueues<Key, KeyHash>;
  /// Patterns by their wildcards: none, the source, the tag, both.
  static constexpr std::size_t kinds = 4;
  struct Receive {
    Pattern pattern;
    Queues::Place place = 0;
  };
  struct Arrival {
    Envelope envelope;
    std::array<Queues::Place, kinds> places{};
  };

  [[nodiscard]] static Key key_of(const Pattern& p) { return {p.source, p.tag, p.channel}; }
  [[nodiscard]] static std::size_t kind_of(const Pattern& p) {
    return (p.source == Pattern::any_source ? 1U : 0U) + (p.tag == Pattern::any_tag ? 2U : 0U);
  }
  /// Where patterns of that kind that match it are.
  [[nodiscard]] static Key key_of(const Envelope& e, std::size_t kind) {
    return {(kind & 1U) == 0 ? e.source : Pattern::any_source,
            (kind & 2U) == 0 ? e.tag : Pattern::any_tag, e.channel};
  }
  /// The first unexpected message that the pattern matches.
  [[nodiscard]] OptionalIndex<ArrivalId> first(const Pattern& pattern) const;
  bool remove(ReceiveId id);
  bool remove(ArrivalId id);

  std::int64_t order_ = 0;  ///< counts what was posted and what has arrived
  IdTable<Receive> receives_;
  IdTable<Arrival> arrivals_;
  Queues posted_;
  Queues unexpected_;
  std::array<std::size_t, kinds> posted_of_kind_{};
};

}  // namespace heddle::p2p
