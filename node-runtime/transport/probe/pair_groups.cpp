#include "node-runtime/transport/probe/pair_groups.hpp"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <map>
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
  // Between nodes before and within them after: hosts first.
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

}  // namespace

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
  for (auto& [key, members] : by_key) groups.push_back(make_group(std::move(members)));
  for (PairGroup& group : groups) {
    group.is_all = group.pairs.size() == kinds[{group.nearness, group.hosts}];
  }
  std::stable_sort(groups.begin(), groups.end(), [](const PairGroup& a, const PairGroup& b) {
    return std::make_tuple(a.nearness, -a.hosts, b.pairs.size()) <
           std::make_tuple(b.nearness, -b.hosts, a.pairs.size());
  });
  return groups;
}

std::string places_of(std::span<const PairReport* const> pairs) {
  std::set<PlaceId> places;
  for (const PairReport* pair : pairs) {
    places.insert(pair->first);
    places.insert(pair->second);
  }
  // Runs of devices of one node, and of nodes with the same devices.
  std::map<std::int32_t, std::vector<std::int32_t>> devices;
  for (const PlaceId& place : places) devices[place.node].push_back(place.device);
  const auto range = [](std::int32_t begin, std::int32_t end) {
    return begin == end ? fmt::format("{}", begin) : fmt::format("{}..{}", begin, end);
  };
  std::vector<std::string> parts;
  for (auto node = devices.begin(); node != devices.end();) {
    auto last = node;
    for (auto next = std::next(node);
         next != devices.end() && next->first == last->first + 1 && next->second == node->second;
         ++next) {
      last = next;
    }
    const std::string nodes = (node == last ? "node " : "nodes ") + range(node->first, last->first);
    std::vector<std::string> what;
    const auto& numbers = node->second;
    for (std::size_t d = 0; d < numbers.size();) {
      if (numbers[d] == PlaceId::host) {
        what.emplace_back(node == last ? "host" : "hosts");
        ++d;
        continue;
      }
      std::size_t e = d;
      while (e + 1 < numbers.size() && numbers[e + 1] == numbers[e] + 1) ++e;
      what.push_back((d == e ? "device " : "devices ") + range(numbers[d], numbers[e]));
      d = e + 1;
    }
    parts.push_back(fmt::format("{} of {}", fmt::join(what, ", "), nodes));
    node = std::next(last);
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace heddle
