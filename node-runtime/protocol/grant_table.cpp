#include "node-runtime/protocol/grant_table.hpp"

#include "base/assert.hpp"
#include "node-runtime/protocol/records.hpp"

namespace heddle::protocol {

namespace {

std::size_t hash_of(const VersionKey& k, std::int32_t peer) {
  const auto pair = [](std::int32_t low, std::int32_t high) {
    return std::uint64_t{static_cast<std::uint32_t>(low)} |
           std::uint64_t{static_cast<std::uint32_t>(high)} << 32;
  };
  std::uint64_t h = pair(k.tile.index, k.number.value());
  h *= 0x9E3779B97F4A7C15ULL;
  h ^= pair(peer, k.job.value());
  h ^= pair(k.tile.matrix.value(), 0) << 20;
  h *= 0xD6E8FEB86659FD93ULL;
  return static_cast<std::size_t>(h ^ (h >> 32));
}

}  // namespace

std::size_t VersionKey::Hash::operator()(const VersionKey& k) const {
  return hash_of(k, 0);
}

std::size_t MessageKey::Hash::operator()(const MessageKey& k) const {
  return hash_of(k.version, k.peer.value());
}

void GrantTable::add(const MessageKey& key, Send& send) {
  Entry& entry = entries_[key];
  HEDDLE_CHECK(entry.send == nullptr, "two sends of tile {} version {} to node {}",
               key.version.tile.index, key.version.number.value(), key.peer.value());
  entry.send = &send;
  send.asked = entry.asked;
  send.granted = entry.granted;
  send.tag = entry.tag;
}

Send* GrantTable::grant(const MessageKey& key, std::uint32_t tag, bool asked) {
  Entry& entry = entries_[key];
  entry.granted = true;
  entry.awaits_ask = asked && !entry.asked;
  entry.tag = tag;
  if (entry.send == nullptr) return nullptr;
  entry.send->granted = true;
  entry.send->tag = tag;
  return entry.send;
}

Send* GrantTable::ask(const MessageKey& key) {
  Entry& entry = entries_[key];
  entry.asked = true;
  entry.awaits_ask = false;
  if (entry.posted) {
    entries_.erase(key);
    return nullptr;
  }
  if (entry.send == nullptr || entry.granted) return nullptr;
  entry.send->asked = true;
  return entry.send;
}

void GrantTable::posted(const MessageKey& key) {
  Entry& entry = *entries_.find(key);
  if (entry.awaits_ask) {
    entry.posted = true;
    entry.send = nullptr;
  } else {
    entries_.erase(key);
  }
}

void GrantTable::check_all_posted() const {
  entries_.for_each([](const MessageKey& key, const Entry& entry) {
    HEDDLE_CHECK(entry.posted, "tile {} version {} was granted by node {} and never sent",
                 key.version.tile.index, key.version.number.value(), key.peer.value());
  });
}

bool GrantTable::is_valid() const {
  bool valid = true;
  entries_.for_each([&](const MessageKey& key, const Entry& entry) {
    const bool waits_for_ask = entry.granted && !entry.asked;
    if (entry.awaits_ask && !waits_for_ask) valid = false;
    if (entry.posted && (!entry.awaits_ask || entry.send != nullptr)) valid = false;
    if (!entry.posted && entry.send == nullptr && !entry.asked && !entry.granted) valid = false;
    if (const Send* send = entry.send; send != nullptr) {
      const bool is_named = send->tile == key.version.tile && send->number == key.version.number &&
                            send->to == key.peer && !send->posted;
      if (!is_named || send->granted != entry.granted || send->tag != entry.tag) valid = false;
    }
  });
  return valid;
}

}  // namespace heddle::protocol
