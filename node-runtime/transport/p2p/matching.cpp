#include "node-runtime/transport/p2p/matching.hpp"

#include <algorithm>
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

std::array<Matching::Key, 4> Matching::keys_of(const Envelope& e) {
  return {{{e.source, e.tag, e.channel},
           {Pattern::any_source, e.tag, e.channel},
           {e.source, Pattern::any_tag, e.channel},
           {Pattern::any_source, Pattern::any_tag, e.channel}}};
}

/// The oldest live entry of a key, marks before it removed; null if there is none.
template <class Id, class Live>
const Matching::Entry<Id>* Matching::front(Lists<Id>& lists, const Key& key, const Live& live) {
  const auto found = lists.find(key);
  if (found == lists.end()) return nullptr;
  List<Id>& list = found->second;
  while (!list.empty()) {
    if (live.contains(list.front().id.value())) return &list.front();
    list.pop_front();
  }
  lists.erase(found);
  return nullptr;
}

template <class Id, class Live>
void Matching::sweep(Lists<Id>& lists, const Live& live) {
  for (auto list = lists.begin(); list != lists.end();) {
    std::erase_if(list->second, [&](const Entry<Id>& e) { return !live.contains(e.id.value()); });
    list = list->second.empty() ? lists.erase(list) : std::next(list);
  }
}

/// Each sweep removes at least as many marks as it passes live entries, so it costs what putting
/// them in has cost.
void Matching::sweep_if_due() {
  const std::size_t live = receives_.size() + 4 * arrivals_.size();
  if (entries_ <= 2 * live + marks_min) return;
  sweep(posted_, receives_);
  sweep(unexpected_, arrivals_);
  entries_ = live;
}

std::optional<ArrivalId> Matching::probe(const Pattern& pattern) {
  const auto* entry = front(unexpected_, key_of(pattern), arrivals_);
  return entry == nullptr ? std::nullopt : std::optional(entry->id);
}

std::optional<ArrivalId> Matching::post(ReceiveId id, const Pattern& pattern) {
  if (const auto found = probe(pattern)) {
    arrivals_.erase(found->value());
    sweep_if_due();
    HEDDLE_EXPENSIVE(is_valid());
    return found;
  }
  const bool is_new = receives_.emplace(id.value(), Receive{++order_, pattern}).second;
  HEDDLE_CHECK(is_new, "receive {} is posted twice", id.value());
  posted_[key_of(pattern)].push_back({order_, id});
  ++entries_;
  sweep_if_due();
  HEDDLE_EXPENSIVE(is_valid());
  return std::nullopt;
}

std::optional<ReceiveId> Matching::arrive(ArrivalId id, const Envelope& envelope) {
  HEDDLE_CHECK(envelope.tag >= 0 && envelope.source.value() >= 0, "tag {} from node {}",
               envelope.tag, envelope.source.value());
  const Entry<ReceiveId>* first = nullptr;
  for (const Key& key : keys_of(envelope)) {
    const auto* entry = front(posted_, key, receives_);
    if (entry != nullptr && (first == nullptr || entry->order < first->order)) first = entry;
  }
  if (first != nullptr) {
    const ReceiveId taker = first->id;
    receives_.erase(taker.value());
    sweep_if_due();
    HEDDLE_EXPENSIVE(is_valid());
    return taker;
  }
  const bool is_new = arrivals_.emplace(id.value(), Arrival{++order_, envelope}).second;
  HEDDLE_CHECK(is_new, "message {} arrives twice", id.value());
  for (const Key& key : keys_of(envelope)) unexpected_[key].push_back({order_, id});
  entries_ += 4;
  sweep_if_due();
  HEDDLE_EXPENSIVE(is_valid());
  return std::nullopt;
}

bool Matching::cancel(ReceiveId id) {
  const bool did_wait = receives_.erase(id.value()) > 0;
  sweep_if_due();
  return did_wait;
}

bool Matching::withdraw(ArrivalId id) {
  const bool did_wait = arrivals_.erase(id.value()) > 0;
  sweep_if_due();
  return did_wait;
}

std::vector<ReceiveId> Matching::lose(NodeId source) {
  std::vector<std::pair<std::int64_t, ReceiveId>> lost;
  for (const auto& [id, receive] : receives_) {
    if (receive.pattern.source == source) lost.emplace_back(receive.order, ReceiveId{id});
  }
  std::ranges::sort(lost);
  std::vector<ReceiveId> ids;
  for (const auto& [order, id] : lost) {
    receives_.erase(id.value());
    ids.push_back(id);
  }
  sweep_if_due();
  HEDDLE_EXPENSIVE(is_valid());
  return ids;
}

bool Matching::is_valid() const {
  std::size_t entries = 0;
  std::size_t live = 0;
  const auto count = [&](const auto& lists, const auto& all) {
    for (const auto& [key, list] : lists) {
      std::int64_t last = 0;
      for (const auto& entry : list) {
        if (entry.order <= last) return false;
        last = entry.order;
        ++entries;
        if (all.contains(entry.id.value())) ++live;
      }
    }
    return true;
  };
  if (!count(posted_, receives_) || !count(unexpected_, arrivals_)) return false;
  const std::size_t wanted = receives_.size() + 4 * arrivals_.size();
  if (live != wanted || entries > entries_ || entries_ > 2 * wanted + marks_min) return false;
  return std::ranges::none_of(receives_, [&](const auto& receive) {
    return std::ranges::any_of(arrivals_, [&](const auto& arrival) {
      return receive.second.pattern.matches(arrival.second.envelope);
    });
  });
}

}  // namespace heddle::p2p
