#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "node-runtime/collectives/schedule/levels.hpp"
#include "node-runtime/collectives/schedule/places.hpp"

namespace heddle::collectives {

/// Values [begin, end) of a list in the balanced bracket, by its definition.
template <class Result, class Combine>
Result balanced(const std::vector<Result>& values, std::size_t begin, std::size_t end,
                const Combine& combine) {
  if (end - begin == 1) return values[begin];
  std::size_t left = 1;
  while (2 * left < end - begin) left *= 2;
  const Result a = balanced(values, begin, begin + left, combine);
  const Result b = balanced(values, begin + left, end, combine);
  return combine(a, b);
}

/// The value of all ranks in the order of places, by its definition: level by level, in each group
/// the values of its parts in the order of the places of their lowest ranks.
template <class Of, class Combine>
auto places_bracket(const Places& places, Levels::Sockets sockets, const Of& of,
                    const Combine& combine) {
  using Result = decltype(of(0));
  struct Part {
    std::int32_t lowest;
    Result value;
  };
  std::vector<Part> parts;
  for (std::int32_t r = 0; r < places.size(); ++r) parts.push_back({r, of(r)});
  std::vector<Level> levels{Level::gpu, Level::host, Level::network};
  if (sockets == Levels::Sockets::counted) levels.insert(levels.begin() + 1, Level::socket);
  for (const Level level : levels) {
    std::map<std::tuple<std::int32_t, std::int64_t, std::int32_t>, std::vector<Part>> groups;
    for (const Part& part : parts) {
      const RankPlace& place = places[Rank{part.lowest}];
      const bool has_gpu = place.gpu != RankPlace::no_gpu;
      if (level == Level::gpu) {
        groups[{place.host, place.gpu, has_gpu ? -1 : part.lowest}].push_back(part);
      } else {
        const std::int64_t socket = level == Level::socket ? place.socket : -1;
        groups[{level == Level::network ? -1 : place.host, socket, -1}].push_back(part);
      }
    }
    parts.clear();
    for (auto& [key, members] : groups) {
      std::ranges::sort(members, {}, [&](const Part& part) {
        return std::pair(places[Rank{part.lowest}], part.lowest);
      });
      std::vector<Result> values;
      for (const Part& part : members) values.push_back(part.value);
      const auto lowest = std::ranges::min(members, {}, &Part::lowest).lowest;
      parts.push_back({lowest, balanced(values, 0, values.size(), combine)});
    }
  }
  return parts.front().value;
}

}  // namespace heddle::collectives
