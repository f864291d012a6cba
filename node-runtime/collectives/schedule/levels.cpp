#include "node-runtime/collectives/schedule/levels.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <span>
#include <tuple>
#include <utility>

#include "base/assert.hpp"
#include "base/require.hpp"

namespace heddle::collectives {
namespace {

/// Equal for ranks that are of one group at that level.
std::tuple<std::int32_t, std::int64_t, std::int64_t> key_of(const Places& places, Rank rank,
                                                            Level level) {
  const RankPlace& place = places[rank];
  switch (level) {
    case Level::gpu:
      // Without a GPU a rank is by itself.
      if (place.gpu == RankPlace::no_gpu) return {place.host, place.gpu, rank.value()};
      return {place.host, place.gpu, -1};
    case Level::socket:
      return {place.host, place.socket, 0};
    case Level::host:
      return {place.host, 0, 0};
    case Level::network:
      return {0, 0, 0};
  }
  HEDDLE_CHECK(false, "a level of number {}", static_cast<int>(level));
  return {};
}

}  // namespace

std::int32_t LevelGroup::position(Rank rank) const {
  const auto size = static_cast<std::int32_t>(members.size());
  const auto index = [&](Rank of) {
    const auto found = std::ranges::find(members, of);
    HEDDLE_CHECK(found != members.end(), "rank {} is none of a group's {} members", of.value(),
                 size);
    return static_cast<std::int32_t>(found - members.begin());
  };
  return (index(rank) - index(leader) + size) % size;
}

Rank LevelGroup::at(std::int32_t position) const {
  const auto size = static_cast<std::int32_t>(members.size());
  HEDDLE_CHECK(0 <= position && position < size, "position {} of {}", position, size);
  const auto first = std::ranges::find(members, leader) - members.begin();
  return members[static_cast<std::size_t>((first + position) % size)];
}

Levels::Levels(const Places& places, Sockets sockets) : size_(places.size()) {
  for (Rank rank{0}; rank < Rank{size_}; ++rank) all_.push_back(rank);
  add(places, Level::gpu);
  if (sockets == Sockets::counted) add(places, Level::socket);
  add(places, Level::host);
  add(places, Level::network);
  begins_.resize(layers_.size());
  put_in_order(layers_.size() - 1, layers_.back().groups.front());
  positions_.resize(size_);
  for (std::int32_t i = 0; i < size_; ++i)
    positions_[order_[static_cast<std::size_t>(i)]] = Rank{i};
}

void Levels::put_in_order(std::size_t layer, const Group& of) {
  for (const Rank member : of.members) {
    begins_[layer].push_back(static_cast<std::int32_t>(order_.size()));
    if (layer == 0) {
      order_.push_back(member);
    } else {
      put_in_order(layer - 1, group(layers_[layer - 1], member));
    }
  }
}

/// Groups of those who lead at the layer before; at the first one of all ranks.
void Levels::add(const Places& places, Level level) {
  Layer layer{level, {}, IndexedVector<Rank, std::int32_t>(size_, -1)};
  std::map<std::tuple<std::int32_t, std::int64_t, std::int64_t>, std::int32_t> numbers;
  const std::size_t index = layers_.size();
  for (const Rank rank : places.order()) {
    const Rank member = representative(index, rank);
    if (member != rank) continue;
    const auto [entry, is_new] = numbers.try_emplace(
        key_of(places, rank, level), static_cast<std::int32_t>(layer.groups.size()));
    if (is_new) layer.groups.push_back({{}, rank, {}});
    Group& group = layer.groups[static_cast<std::size_t>(entry->second)];
    group.members.push_back(rank);
    group.leader = std::min(group.leader, rank);
    layer.group_of[rank] = entry->second;
  }
  for (const Rank rank : all_) {
    layer.group_of[rank] = layer.group_of[representative(index, rank)];
    layer.groups[static_cast<std::size_t>(layer.group_of[rank])].below.push_back(rank);
  }
  layers_.push_back(std::move(layer));
}

std::vector<LevelGroup> Levels::groups_of(Rank rank, Rank root) const {
  require(Rank{0} <= root && root.value() < size_, "a root of rank {} in a group of {}",
          root.value(), size_);
  std::vector<LevelGroup> groups;
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    const Layer& layer = layers_[l];
    const Group& own = group(layer, rank);
    LevelGroup found{layer.level, own.members, own.leader};
    if (layer.group_of[root] == layer.group_of[rank]) {
      // The root stands for the group on its way instead of the lowest rank there.
      std::ranges::replace(found.members, representative(l, root), root);
      found.leader = root;
    }
    const Rank leader = found.leader;
    if (found.members.size() > 1) groups.push_back(std::move(found));
    if (leader != rank) break;
  }
  return groups;
}

std::vector<LevelGroup> Levels::groups_of(Rank rank) const {
  return groups_of(rank, Rank{0});  // the lowest rank of all leads wherever it is
}

std::span<const Rank> Levels::stands_for(Level level, Rank member) const {
  const auto layer = std::ranges::find(layers_, level, &Layer::level);
  HEDDLE_CHECK(layer != layers_.end(), "level {} does not count", static_cast<int>(level));
  if (layer == layers_.begin()) {
    return std::span(all_).subspan(static_cast<std::size_t>(member.value()), 1);
  }
  return group(*std::prev(layer), member).below;
}

std::array<std::int32_t, 4> Levels::largest() const {
  std::array<std::int32_t, 4> sizes{1, 1, 1, 1};
  for (const Layer& layer : layers_) {
    std::int32_t& size = sizes.at(static_cast<std::size_t>(layer.level));
    for (const Group& group : layer.groups) {
      size = std::max(size, static_cast<std::int32_t>(group.members.size()));
    }
  }
  return sizes;
}

std::vector<LevelGroup> Levels::largest_groups() const {
  std::vector<LevelGroup> found;
  for (const Layer& layer : layers_) {
    const Group& most = *std::ranges::max_element(
        layer.groups, {}, [](const Group& group) { return group.members.size(); });
    if (most.members.size() > 1) found.push_back({layer.level, most.members, most.leader});
  }
  return found;
}

bool Levels::is_outermost(const LevelGroup& group) const {
  const auto layer = std::ranges::find(layers_, group.level, &Layer::level);
  HEDDLE_CHECK(layer != layers_.end(), "level {} does not count", static_cast<int>(group.level));
  return layer->groups.size() == 1;
}

bool Levels::is_valid() const {
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    const Layer& layer = layers_[l];
    std::int32_t members = 0;
    for (const Group& group : layer.groups) {
      if (group.members.empty() || group.leader != std::ranges::min(group.members)) return false;
      for (const Rank rank : group.members) {
        if (representative(l, rank) != rank) return false;
        if (&this->group(layer, rank) != &group) return false;
      }
      members += static_cast<std::int32_t>(group.members.size());
    }
    const std::size_t expected =
        l == 0 ? static_cast<std::size_t>(size_) : layers_[l - 1].groups.size();
    if (static_cast<std::size_t>(members) != expected) return false;
  }
  for (std::int32_t i = 0; i < size_; ++i) {
    if (positions_[order_[static_cast<std::size_t>(i)]] != Rank{i}) return false;
  }
  return layers_.back().groups.size() == 1 && std::cmp_equal(order_.size(), size_);
}

}  // namespace heddle::collectives
