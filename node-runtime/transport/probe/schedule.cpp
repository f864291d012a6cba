#include "node-runtime/transport/probe/schedule.hpp"

#include <set>

namespace heddle {

std::vector<std::vector<NodePair>> probing_rounds(std::span<const std::string> hosts) {
  struct Round {
    std::vector<NodePair> pairs;
    std::set<std::string> busy;
  };
  std::vector<Round> rounds;
  // Each pair goes to the first round with room from `begin` on.
  const auto add = [&](std::int32_t first, std::int32_t second, std::size_t begin) {
    const std::string& here = hosts[static_cast<std::size_t>(first)];
    const std::string& there = hosts[static_cast<std::size_t>(second)];
    std::size_t r = begin;
    while (r < rounds.size() && (rounds[r].busy.contains(here) || rounds[r].busy.contains(there))) {
      ++r;
    }
    if (r == rounds.size()) rounds.emplace_back();
    rounds[r].pairs.emplace_back(first, second);
    rounds[r].busy.insert({here, there});
  };
  const auto nodes = static_cast<std::int32_t>(hosts.size());
  for (std::int32_t node = 0; node < nodes; ++node) add(node, node, 0);
  const std::size_t between = rounds.size();
  for (std::int32_t first = 0; first < nodes; ++first) {
    for (std::int32_t second = first + 1; second < nodes; ++second) add(first, second, between);
  }
  std::vector<std::vector<NodePair>> result;
  result.reserve(rounds.size());
  for (Round& round : rounds) result.push_back(std::move(round.pairs));
  return result;
}

}  // namespace heddle
