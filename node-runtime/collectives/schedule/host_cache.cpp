#include "node-runtime/collectives/schedule/host_cache.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "node-runtime/collectives/schedule/device_ways.hpp"

namespace heddle::collectives {
namespace {

constexpr std::string_view cache_names[] = {"steps", "host cache", "host cache for all"};

/// Moves the values of a schedule to the host cache.
class Caching {
 public:
  Caching(Schedule plain, const Places& places, HostCache cache)
      : plain_(std::move(plain)), places_(places), cache_(cache) {}

  [[nodiscard]] Schedule run() {
    find_values();
    made_.rank = plain_.rank;
    made_.slots = plain_.slots;
    for (std::size_t s = 0; s < plain_.steps.size(); ++s) add(s);
    return std::move(made_);
  }

 private:
  static constexpr std::int32_t no_step = -1;
  /// Where a rank has a block, or what is in a slot.
  using Cell = std::pair<Spot, std::int32_t>;

  /// What is in the memory of a cell, which is written once.
  struct Value {
    std::int32_t writer = no_step;       ///< none: it is in the input
    bool comes_from_other_host = false;  ///< in a message of its own
    std::int32_t sends_to_hosts = 0;     ///< that may leave from the cache
    std::int32_t sends_within = 0;       ///< to ranks of the own host
    bool has_other_readers = false;      ///< than these sends
    std::int32_t in_cache = no_step;     ///< the step of `made_` behind which it is there
    std::optional<Spot> slot;            ///< of the cache
  };

  [[nodiscard]] const Step& step(std::size_t s) const { return plain_.steps[s]; }
  /// A message of one block.
  [[nodiscard]] bool is_single(std::size_t s) const {
    const bool has_next = s + 1 < plain_.steps.size() && plain_.steps[s + 1].is_joined;
    return !step(s).is_joined && !has_next;
  }
  [[nodiscard]] bool is_on_own_host(Rank peer) const {
    return places_[peer].host == places_[plain_.rank].host;
  }
  [[nodiscard]] static Cell cell_of(const Spot& spot, std::int32_t block) {
    return {spot, spot.memory == Spot::Memory::slot ? 0 : block};
  }
  [[nodiscard]] bool may_leave_from_cache(std::size_t s) const {
    if (step(s).kind != Step::Kind::send || !is_single(s)) return false;
    return cache_ == HostCache::all || !is_on_own_host(step(s).peer);
  }

  void find_values() {
    for (std::size_t s = 0; s < plain_.steps.size(); ++s) {
      const Step& one = step(s);
      for (const Spot& spot : one.from) {
        Value& read = values_[cell_of(spot, one.block)];
        if (!may_leave_from_cache(s)) {
          read.has_other_readers = true;
        } else {
          ++(is_on_own_host(one.peer) ? read.sends_within : read.sends_to_hosts);
        }
      }
      if (one.kind == Step::Kind::send) continue;
      Value& written = values_[cell_of(one.to, one.block)];
      written.writer = static_cast<std::int32_t>(s);
      written.comes_from_other_host =
          one.kind == Step::Kind::receive && is_single(s) && !is_on_own_host(one.peer);
      written.has_other_readers = one.to.memory == Spot::Memory::output;
    }
    for (auto& [cell, value] : values_) {
      const std::int32_t sends = value.sends_to_hosts + value.sends_within;
      const bool is_cached =
          value.comes_from_other_host ? sends >= 1 : value.sends_to_hosts >= 1 && sends >= 2;
      if (is_cached) value.slot = Spot::in_host_cache(made_.host_slots++);
    }
  }

  std::int32_t append(Step step) {
    made_.steps.push_back(std::move(step));
    return static_cast<std::int32_t>(made_.steps.size()) - 1;
  }

  void add(std::size_t s) {
    Step one = step(s);
    for (std::int32_t& earlier : one.after) earlier = at_[static_cast<std::size_t>(earlier)];
    if (may_leave_from_cache(s)) {
      Value& value = values_.at(cell_of(one.from.front(), one.block));
      if (value.slot) leave_from_cache(value, one);
    }
    if (one.kind != Step::Kind::send) {
      Value& value = values_.at(cell_of(one.to, one.block));
      if (value.slot && value.comes_from_other_host) return come_to_cache(value, std::move(one));
    }
    at_.push_back(append(std::move(one)));
  }

  /// The receive, and the copy to the rank's own device.
  void come_to_cache(Value& value, Step receive) {
    const Spot to = std::exchange(receive.to, *value.slot);
    const std::int32_t block = receive.block;
    value.in_cache = append(std::move(receive));
    const bool is_needed = value.has_other_readers;
    at_.push_back(
        is_needed ? append({Step::Kind::copy, block, Rank{-1}, {*value.slot}, to, {value.in_cache}})
                  : value.in_cache);
  }

  /// The first send brings the value there, if it has not come there.
  void leave_from_cache(Value& value, Step& send) {
    if (value.in_cache == no_step) {
      Step copy{Step::Kind::copy, send.block, Rank{-1}, send.from, *value.slot, {}};
      if (value.writer != no_step)
        copy.after.push_back(at_[static_cast<std::size_t>(value.writer)]);
      value.in_cache = append(std::move(copy));
    }
    if (value.writer != no_step)
      std::erase(send.after, at_[static_cast<std::size_t>(value.writer)]);
    send.after.push_back(value.in_cache);
    send.from = {*value.slot};
  }

  Schedule plain_;
  const Places& places_;
  HostCache cache_;
  Schedule made_;
  std::map<Cell, Value> values_;
  std::vector<std::int32_t> at_;  ///< of each step of plain_: the one behind which it is done
};

}  // namespace

std::string_view name_of(HostCache cache) {
  return cache_names[static_cast<std::size_t>(cache)];
}

Schedule with_host_cache(Schedule plain, const Places& places, HostCache cache) {
  if (cache == HostCache::none) return plain;
  return Caching(std::move(plain), places, cache).run();
}

bool may_have_host_cache(CollectiveKind kind) {
  return kind == CollectiveKind::broadcast || kind == CollectiveKind::all_reduce ||
         kind == CollectiveKind::all_gather;
}

double seconds_with_host_cache(const CollectiveQuery& query, const CollectiveChoice& choice,
                               const CollectiveRates& rates, HostCache cache) {
  const DeviceRates& device = rates.devices;
  CollectiveRates seen = rates_of_device_memory(device);
  LevelRates& network = seen.levels.at(static_cast<std::size_t>(Level::network));
  network = rates.levels.at(static_cast<std::size_t>(Level::network));
  const double copied = std::min(device.to_host_bytes_per_s, device.to_device_bytes_per_s);
  if (cache == HostCache::none) {
    // A copy at each end, by pieces that overlap with those on the way.
    network.short_s += 2 * device.work_s;
    network.long_s += 2 * device.work_s;
    network.short_bytes_per_s = std::min(network.short_bytes_per_s, copied);
    network.long_bytes_per_s = std::min(network.long_bytes_per_s, copied);
    return seconds_of_steps(query, choice, seen);
  }
  if (cache == HostCache::all) {
    // From the slot to the receiver's device.
    for (const Level level : {Level::gpu, Level::socket, Level::host}) {
      LevelRates& within = seen.levels.at(static_cast<std::size_t>(level));
      within = rates.levels.at(static_cast<std::size_t>(level));
      within.short_s += device.work_s;
      within.long_s += device.work_s;
      within.short_bytes_per_s = std::min(within.short_bytes_per_s, copied);
      within.long_bytes_per_s = std::min(within.long_bytes_per_s, copied);
    }
  }
  // The first fragment goes down and up once; the copies of the others overlap with messages.
  const double first = 2 * device.work_s + choice.fragment_bytes / device.to_host_bytes_per_s +
                       choice.fragment_bytes / device.to_device_bytes_per_s;
  return first + std::max(seconds_of_steps(query, choice, seen), query.bytes / copied);
}

std::vector<HostCacheCandidate> host_caches(const CollectiveQuery& query,
                                            const CollectiveChoice& choice,
                                            const CollectiveRates& rates) {
  std::vector<HostCacheCandidate> made;
  // Equal times: the one that leaves devices the least to do.
  for (const HostCache cache : {HostCache::all, HostCache::hosts, HostCache::none}) {
    made.push_back({cache, seconds_with_host_cache(query, choice, rates, cache)});
  }
  std::ranges::stable_sort(made, {}, &HostCacheCandidate::seconds);
  return made;
}

}  // namespace heddle::collectives
