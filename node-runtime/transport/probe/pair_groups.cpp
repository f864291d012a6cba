#include "node-runtime/transport/probe/pair_groups.hpp"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

namespace heddle {
namespace {

std::int32_t hosts_of(const PairReport& pair) {
  return (pair.first.is_host() ? 1 : 0) + (pair.second.is_host() ? 1 : 0);
}

/// What the pairs of a group have in common, as text where it need not be ordered by meaning.
using Key = std::tuple<Nearness, std::int32_t, std::string>;

Key key_of(const PairReport& pair) {
  std::string text;
  for (const Attempt& attempt : pair.attempts) {
    if (attempt.works) {
      text += name_of(attempt.way);
      break;
    }
    text += fmt::format("{}: {}\n", name_of(attempt.way), without_numbers(attempt.reason));
  }
  // Pairs of hosts first.
  return {pair.nearness, -hosts_of(pair), text};
}

Spread spread_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  return {values.front(), values[values.size() / 2], values.back()};
}

PairGroup make_group(std::vector<const PairReport*> pairs) {
  PairGroup group;
  const PairReport& example = *pairs.front();
  group.nearness = example.nearness;
  group.hosts = hosts_of(example);
  if (const Attempt* best = example.best()) group.best = best->way;
  std::vector<double> latencies;
  std::vector<double> rates;
  for (const PairReport* pair : pairs) {
    const Attempt* best = pair->best();
    if (best == nullptr) continue;
    latencies.push_back(best->latency_us);
    rates.push_back(best->rate);
  }
  group.latency_us = spread_of(std::move(latencies));
  group.rate = spread_of(std::move(rates));
  for (std::size_t a = 0; a < example.attempts.size() && !example.attempts[a].works; ++a) {
    std::set<std::string> reasons;
    for (const PairReport* pair : pairs) reasons.insert(pair->attempts[a].reason);
    group.refused.push_back(
        {example.attempts[a].way, example.attempts[a].reason, pairs.size(), reasons.size()});
  }
  group.pairs = std::move(pairs);
  return group;
}

std::set<std::int32_t> nodes_of(const std::set<ProbePlace>& places) {
  std::set<std::int32_t> nodes;
  for (const ProbePlace& place : places) nodes.insert(place.node);
  return nodes;
}

/// Places of one kind, hosts or devices: "devices 0..2 of nodes 0, 2..3; device 5 of node 1".
std::string text_of(const std::set<ProbePlace>& places) {
  std::map<std::int32_t, std::vector<std::int32_t>> devices;  // by node
  for (const ProbePlace& place : places) devices[place.node].push_back(place.device);
  std::map<std::vector<std::int32_t>, std::vector<std::int32_t>> nodes;  // that have these devices
  for (const auto& [node, numbers] : devices) nodes[numbers].push_back(node);
  const auto named = [](const char* what, const std::vector<std::int32_t>& numbers) {
    return fmt::format("{}{} {}", what, numbers.size() == 1 ? "" : "s", ranges(numbers));
  };
  std::vector<std::string> parts;
  for (const auto& [numbers, with_them] : nodes) {
    const bool are_hosts = numbers.front() == ProbePlace::host;
    parts.push_back(fmt::format(
        "{} of {}",
        are_hosts ? (with_them.size() == 1 ? "host" : "hosts") : named("device", numbers),
        named("node", with_them)));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

/// The one node that a part of a kind's pairs between nodes have in common, if they do.
std::optional<std::int32_t> common_node(const PairGroup& group) {
  if (group.nearness == Nearness::node || group.pairs.size() == group.kind_count) {
    return std::nullopt;
  }
  for (const std::int32_t node : {group.pairs[0]->first.node, group.pairs[0]->second.node}) {
    const auto has_it = [&](const PairReport* pair) {
      return pair->first.node == node || pair->second.node == node;
    };
    if (std::all_of(group.pairs.begin(), group.pairs.end(), has_it)) return node;
  }
  return std::nullopt;
}

}  // namespace

std::string ranges(const std::vector<std::int32_t>& numbers) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t j = i;
    while (j + 1 < numbers.size() && numbers[j + 1] == numbers[j] + 1) ++j;
    parts.push_back(i == j ? fmt::format("{}", numbers[i])
                           : fmt::format("{}..{}", numbers[i], numbers[j]));
    i = j + 1;
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string without_numbers(const std::string& text) {
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  const auto is_digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  const auto is_hexadecimal = [](char c) {
    return std::isxdigit(static_cast<unsigned char>(c)) != 0;
  };
  constexpr std::ptrdiff_t long_word = 16;  // an identity, which need not have a digit
  std::string result;
  for (auto at = text.begin(); at != text.end();) {
    const auto end = std::find_if_not(at, text.end(), is_word);
    if (at == end) {
      result += *at++;
      continue;
    }
    const bool is_number = std::all_of(at, end, is_hexadecimal) &&
                           (std::any_of(at, end, is_digit) || end - at >= long_word);
    result += is_number ? std::string("#") : std::string(at, end);
    at = end;
  }
  return result;
}

std::vector<PairGroup> group_pairs(std::span<const PairReport> pairs) {
  std::map<Key, std::vector<const PairReport*>> by_key;
  std::map<std::pair<Nearness, std::int32_t>, std::size_t> kinds;
  for (const PairReport& pair : pairs) {
    by_key[key_of(pair)].push_back(&pair);
    ++kinds[{pair.nearness, hosts_of(pair)}];
  }
  std::vector<PairGroup> groups;
  groups.reserve(by_key.size());
  for (auto& [key, members] : by_key) groups.push_back(make_group(std::move(members)));
  for (PairGroup& group : groups) {
    group.kind_count = kinds[{group.nearness, group.hosts}];
  }
  std::stable_sort(groups.begin(), groups.end(), [](const PairGroup& a, const PairGroup& b) {
    return std::make_tuple(a.nearness, -a.hosts, b.pairs.size()) <
           std::make_tuple(b.nearness, -b.hosts, a.pairs.size());
  });
  return groups;
}

std::string places_of(const PairGroup& group) {
  std::set<ProbePlace> first;
  std::set<ProbePlace> second;
  const std::optional<std::int32_t> common = common_node(group);
  for (const PairReport* pair : group.pairs) {
    const bool is_swapped =
        group.hosts == 1 ? pair->second.is_host() : common && pair->second.node == *common;
    first.insert(is_swapped ? pair->second : pair->first);
    second.insert(is_swapped ? pair->first : pair->second);
  }
  if (group.hosts == 1) {
    if (nodes_of(first) == nodes_of(second)) {
      const char* host = nodes_of(first).size() == 1 ? "host" : "hosts";
      return fmt::format("{} - {}", host, text_of(second));
    }
    return fmt::format("{} - {}", text_of(first), text_of(second));
  }
  if (common) return fmt::format("{} - {}", text_of(first), text_of(second));
  first.merge(second);
  return text_of(first);
}

}  // namespace heddle
