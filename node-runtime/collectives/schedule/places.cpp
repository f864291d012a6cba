#include "node-runtime/collectives/schedule/places.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "base/require.hpp"

namespace heddle::collectives {

Places::Places(std::vector<RankPlace> of_ranks) {
  require(!of_ranks.empty(), "Places: a group without a rank");
  for (RankPlace& place : of_ranks) order_.push_back(places_.push_back(place));
  std::ranges::sort(order_, [this](Rank a, Rank b) { return comes_before(a, b); });
  positions_.resize(size());
  for (std::int32_t i = 0; i < size(); ++i) positions_[order_[static_cast<std::size_t>(i)]] = i;
}

bool Places::comes_before(Rank a, Rank b) const {
  if (places_[a] != places_[b]) return places_[a] < places_[b];
  return a < b;
}

Places Places::subset(std::span<const Rank> members) const {
  std::vector<RankPlace> of_members;
  IndexedVector<Rank, bool> is_named(size(), false);
  for (const Rank rank : members) {
    require(places_.contains(rank), "Places::subset: rank {} of a group of {}", rank.value(),
            size());
    require(!is_named[rank], "Places::subset: rank {} is named twice", rank.value());
    is_named[rank] = true;
    of_members.push_back(places_[rank]);
  }
  return Places(std::move(of_members));
}

bool Places::is_valid() const {
  if (order_.size() != places_.size() || positions_.size() != places_.size()) return false;
  for (std::size_t i = 0; i < order_.size(); ++i) {
    if (!places_.contains(order_[i]) || positions_[order_[i]] != static_cast<std::int32_t>(i))
      return false;
    if (i > 0 && !comes_before(order_[i - 1], order_[i])) return false;
  }
  return true;
}

Places places_on_hosts(std::span<const std::string> hosts, std::int32_t ranks) {
  std::map<std::string, std::int32_t> numbers;
  std::vector<RankPlace> places(static_cast<std::size_t>(ranks));
  for (std::size_t r = 0; r < hosts.size() && r < places.size(); ++r) {
    places[r].host =
        numbers.try_emplace(hosts[r], static_cast<std::int32_t>(numbers.size())).first->second;
  }
  return Places(std::move(places));
}

}  // namespace heddle::collectives
