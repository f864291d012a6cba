#include "node-runtime/transport/probe/pair_report.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace heddle {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 4> way_names{"mapped", "peer", "staged", "host"};
constexpr std::array<std::string_view, 3> nearness_names{"node", "host", "apart"};

template <class Enum, std::size_t Count>
Enum value_of(const std::array<std::string_view, Count>& names, const json& name) {
  const auto text = name.get<std::string>();
  const auto found = std::find(names.begin(), names.end(), text);
  // An unknown name is out of the enumeration's range like any other wrong input: json's exception.
  if (found == names.end()) static_cast<void>(json::object().at(text));
  return static_cast<Enum>(found - names.begin());
}

json place_to_json(const ProbePlace& place) {
  return {{"node", place.node}, {"device", place.is_host() ? json() : json(place.device)}};
}

ProbePlace place_from_json(const json& from) {
  const json& device = from.at("device");
  return {from.at("node").get<std::int32_t>(),
          device.is_null() ? ProbePlace::host : device.get<std::int32_t>()};
}

}  // namespace

std::string to_string(const ProbePlace& place) {
  return place.is_host() ? fmt::format("host {}", place.node)
                         : fmt::format("device {}.{}", place.node, place.device);
}

std::string_view name_of(Way way) {
  return way_names.at(static_cast<std::size_t>(way));
}

std::string_view describe(Way way, Nearness nearness) {
  const bool is_within = nearness == Nearness::node;
  switch (way) {
    case Way::mapped:
      return "mapped memory";
    case Way::peer:
      return "peer copy";
    case Way::staged:
      return is_within ? "page-locked memory" : "staged message";
    case Way::host:
      return is_within ? "ordinary memory" : "host message";
  }
  return "";
}

std::vector<Way> ways_between(const ProbePlace& first, const ProbePlace& second,
                              Nearness nearness) {
  if (first.is_host() && second.is_host()) return {Way::host};
  if (first.is_host() || second.is_host() || nearness == Nearness::apart) {
    return {Way::staged, Way::host};
  }
  return {nearness == Nearness::node ? Way::peer : Way::mapped, Way::staged, Way::host};
}

const Attempt* PairReport::best() const {
  const auto found =
      std::find_if(attempts.begin(), attempts.end(), [](const Attempt& a) { return a.works; });
  return found == attempts.end() ? nullptr : &*found;
}

bool PairReport::is_valid() const {
  const std::vector<Way> ways = ways_between(first, second, nearness);
  return first < second &&
         std::equal(ways.begin(), ways.end(), attempts.begin(), attempts.end(),
                    [](Way way, const Attempt& attempt) { return attempt.way == way; });
}

json to_json(const PairReport& pair) {
  json tried = json::array();
  for (const Attempt& attempt : pair.attempts) {
    json row{{"way", name_of(attempt.way)}, {"works", attempt.works}};
    row["reason"] = attempt.works ? json() : json(attempt.reason);
    row["latency_us"] = attempt.works ? json(attempt.latency_us) : json();
    row["gigabytes_per_second"] = attempt.works ? json(attempt.rate) : json();
    tried.push_back(std::move(row));
  }
  const Attempt* best = pair.best();
  return {{"first", place_to_json(pair.first)},
          {"second", place_to_json(pair.second)},
          {"nearness", nearness_names.at(static_cast<std::size_t>(pair.nearness))},
          {"way", best == nullptr ? json() : json(name_of(best->way))},
          {"tried", std::move(tried)}};
}

PairReport pair_from_json(const json& from) {
  PairReport pair{place_from_json(from.at("first")),
                  place_from_json(from.at("second")),
                  value_of<Nearness>(nearness_names, from.at("nearness")),
                  {}};
  for (const json& row : from.at("tried")) {
    Attempt attempt;
    attempt.way = value_of<Way>(way_names, row.at("way"));
    attempt.works = row.at("works").get<bool>();
    if (attempt.works) {
      attempt.latency_us = row.at("latency_us").get<double>();
      attempt.rate = row.at("gigabytes_per_second").get<double>();
    } else {
      attempt.reason = row.at("reason").get<std::string>();
    }
    pair.attempts.push_back(std::move(attempt));
  }
  return pair;
}

}  // namespace heddle
