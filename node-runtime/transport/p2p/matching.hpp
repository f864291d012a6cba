#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/index.hpp"

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
/// A message that finds no receive is *unexpected*. What lies here of it is its announcement, and
/// its bytes where it has come into a slot (Credits). The number of announcements is bounded by the
/// requests that nodes may have, that of posted receives by this node's.
///
/// Cost: O(1) for each event on the average, whatever is posted or unexpected: both are kept in
/// lists by source and tag, a receive in the list that its pattern names, a message in the four
/// lists that receives may name (with and without its source, with and without its tag). What is
/// taken out of one list stays in the others as a mark that is passed over, and removed when it
/// comes to the front, or when there are more marks than messages.
///
/// Invariant (`is_valid()`): no posted receive matches an unexpected message; each of both is in
/// its lists, which are in order; there are no more marks than entries that count, or marks_min.
///
/// Not thread-safe: the progress thread's.
class Matching {
 public:
  /// Posts a receive. The message that it takes, or nothing: then it waits.
  [[nodiscard]] std::optional<ArrivalId> post(ReceiveId id, const Pattern& pattern);
  /// A message has arrived. The receive that takes it, or nothing: then it is unexpected.
  [[nodiscard]] std::optional<ReceiveId> arrive(ArrivalId id, const Envelope& envelope);
  /// Takes a receive back that still waits. False: a message has been given to it, or it is
  /// unknown.
  bool cancel(ReceiveId id);
  /// Takes a message back that is unexpected still. False: a receive has taken it, or it is
  /// unknown.
  bool withdraw(ArrivalId id);
  /// The message that post() would give to such a receive now.
  [[nodiscard]] std::optional<ArrivalId> probe(const Pattern& pattern);

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
  /// Entries of one key, oldest first; a mark if its id is not posted or unexpected any more.
  template <class Id>
  struct Entry {
    std::int64_t order = 0;
    Id id;
  };
  template <class Id>
  using List = std::deque<Entry<Id>>;
  template <class Id>
  using Lists = std::unordered_map<Key, List<Id>, KeyHash>;
  struct Receive {
    std::int64_t order = 0;
    Pattern pattern;
  };
  struct Arrival {
    std::int64_t order = 0;
    Envelope envelope;
  };

  static constexpr std::size_t marks_min = 64;

  [[nodiscard]] static Key key_of(const Pattern& p) { return {p.source, p.tag, p.channel}; }
  [[nodiscard]] static std::array<Key, 4> keys_of(const Envelope& e);
  template <class Id, class Live>
  [[nodiscard]] static const Entry<Id>* front(Lists<Id>& lists, const Key& key, const Live& live);
  template <class Id, class Live>
  static void sweep(Lists<Id>& lists, const Live& live);
  void sweep_if_due();

  std::int64_t order_ = 0;  ///< counts what was posted and what has arrived
  std::unordered_map<std::int64_t, Receive> receives_;
  std::unordered_map<std::int64_t, Arrival> arrivals_;
  Lists<ReceiveId> posted_;
  Lists<ArrivalId> unexpected_;
  std::size_t entries_ = 0;  ///< in all lists, marks included
};

}  // namespace heddle::p2p
