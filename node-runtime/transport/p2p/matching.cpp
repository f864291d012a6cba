#include "node-runtime/transport/p2p/matching.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/assert.hpp"

namespace heddle::p2p {

std::size_t Matching::KeyHash::operator()(const Key& key) const {
  auto mixed = static_cast<std::uint64_t>(static_cast<std::uint32_t>(key.source.value()));
  mixed = mixed << 32 | static_cast<std::uint32_t>(key.tag);
  mixed ^= static_cast<std::uint64_t>(key.channel.value()) * 0x9E3779B97F4A7C15U;
  mixed *= 0xD6E8FEB86659FD93U;
  return mixed ^ mixed >> 32;
}

bool Matching::remove(ReceiveId id) {
  const Receive* const receive = receives_.find(id.value());
  if (receive == nullptr) return false;
  --posted_of_kind_.at(kind_of(receive->pattern));
  posted_.remove(receive->place);
  return receives_.erase(id.value());
}

bool Matching::remove(ArrivalId id) {
  const Arrival* const arrival = arrivals_.find(id.value());
  if (arrival == nullptr) return false;
  for (const Queues::Place place : arrival->places) unexpected_.remove(place);
  return arrivals_.erase(id.value());
}

OptionalIndex<ArrivalId> Matching::first(const Pattern& pattern) const {
  if (arrivals_.empty()) return {};
  const Queues::Entry* const first = unexpected_.front(key_of(pattern));
  if (first == nullptr) return {};
  return ArrivalId{first->id};
}

OptionalIndex<ArrivalId> Matching::post(ReceiveId id, const Pattern& pattern) {
  if (const auto found = first(pattern)) {
    remove(*found);
    HEDDLE_EXPENSIVE(is_valid());
    return found;
  }
  Receive& receive = receives_.emplace(id.value(), {pattern, 0});
  receive.place = posted_.push(key_of(pattern), {id.value(), ++order_});
  ++posted_of_kind_.at(kind_of(pattern));
  HEDDLE_EXPENSIVE(is_valid());
  return {};
}

OptionalIndex<ReceiveId> Matching::arrive(ArrivalId id, const Envelope& envelope) {
  HEDDLE_CHECK(envelope.tag >= 0 && envelope.source.value() >= 0, "tag {} from node {}",
               envelope.tag, envelope.source.value());
  const Queues::Entry* first = nullptr;
  for (std::size_t kind = 0; kind < kinds; ++kind) {
    if (posted_of_kind_.at(kind) == 0) continue;
    const Queues::Entry* const entry = posted_.front(key_of(envelope, kind));
    if (entry != nullptr && (first == nullptr || entry->order < first->order)) first = entry;
  }
  if (first != nullptr) {
    const ReceiveId taker{first->id};
    remove(taker);
    HEDDLE_EXPENSIVE(is_valid());
    return taker;
  }
  Arrival& arrival = arrivals_.emplace(id.value(), {envelope, {}});
  ++order_;
  for (std::size_t kind = 0; kind < kinds; ++kind) {
    arrival.places.at(kind) = unexpected_.push(key_of(envelope, kind), {id.value(), order_});
  }
  HEDDLE_EXPENSIVE(is_valid());
  return {};
}

bool Matching::cancel(ReceiveId id) {
  return remove(id);
}

bool Matching::withdraw(ArrivalId id) {
  return remove(id);
}

std::vector<ReceiveId> Matching::lose(NodeId source) {
  std::vector<Queues::Entry> lost;
  posted_.for_each([&](const Key& key, const Queues::Entry& entry) {
    if (key.source == source) lost.push_back(entry);
  });
  std::ranges::sort(lost, {}, &Queues::Entry::order);
  std::vector<ReceiveId> ids;
  for (const Queues::Entry& entry : lost) {
    ids.emplace_back(entry.id);
    remove(ids.back());
  }
  HEDDLE_EXPENSIVE(is_valid());
  return ids;
}

bool Matching::is_valid() const {
  bool is_right =
      posted_.size() == receives_.size() && unexpected_.size() == kinds * arrivals_.size();
  std::array<std::size_t, kinds> of_kind{};
  receives_.for_each([&](std::int64_t, const Receive& receive) {
    ++of_kind.at(kind_of(receive.pattern));
    arrivals_.for_each([&](std::int64_t, const Arrival& arrival) {
      if (receive.pattern.matches(arrival.envelope)) is_right = false;
    });
  });
  const auto is_in_order = [](const Queues& queues) {
    bool are_sorted = true;
    std::optional<Key> last_key;
    std::int64_t last = 0;
    queues.for_each([&](const Key& key, const Queues::Entry& entry) {
      if (last_key == key && entry.order <= last) are_sorted = false;
      last_key = key;
      last = entry.order;
    });
    return are_sorted;
  };
  posted_.for_each([&](const Key& key, const Queues::Entry& entry) {
    const Receive* const receive = receives_.find(entry.id);
    if (receive == nullptr || key_of(receive->pattern) != key) is_right = false;
  });
  unexpected_.for_each([&](const Key& key, const Queues::Entry& entry) {
    const Arrival* const arrival = arrivals_.find(entry.id);
    const auto is_its = [&](std::size_t kind) { return key_of(arrival->envelope, kind) == key; };
    if (arrival == nullptr || (!is_its(0) && !is_its(1) && !is_its(2) && !is_its(3))) {
      is_right = false;
    }
  });
  return is_right && of_kind == posted_of_kind_ && is_in_order(posted_) && is_in_order(unexpected_);
}

}  // namespace heddle::p2p
