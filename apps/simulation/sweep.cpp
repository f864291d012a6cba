#include "apps/simulation/sweep.hpp"

#include <algorithm>
#include <array>
#include <fmt/core.h>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "config/words.hpp"

namespace heddle {
namespace {

constexpr std::string_view priorities_key = "runtime.priorities";
constexpr std::string_view window_key = "runtime.window";
constexpr std::string_view placement_key = "runtime.placement";
constexpr std::array<const char*, 5> windows{"256", "1024", "4096", "16384", "65536"};

/// At the commas outside of brackets and quotes.
std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> values(1);
  int depth = 0;
  char quote = 0;
  for (const char c : text) {
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      --depth;
    } else if (c == ',' && depth == 0) {
      values.emplace_back();
      continue;
    }
    values.back() += c;
  }
  return values;
}

std::pair<std::string, std::vector<std::string>> parse(const std::string& text) {
  const std::size_t equals = text.find('=');
  const auto refuse = [&](std::string_view why) {
    throw Error(ErrorCode::usage,
                fmt::format("--sweep {}: {}; expected KEY.PATH=VALUE,VALUE,...", text, why));
  };
  if (equals == std::string::npos || equals == 0) refuse("no key or no values");
  std::vector<std::string> values = split(std::string_view(text).substr(equals + 1));
  if (std::ranges::find(values, "") != values.end()) refuse("a value is empty");
  std::vector<std::string> sorted = values;
  std::ranges::sort(sorted);
  if (std::ranges::adjacent_find(sorted) != sorted.end()) refuse("a value is there twice");
  return {text.substr(0, equals), std::move(values)};
}

/// The keys of --policies that are still free.
struct FreeKeys {
  bool priorities = false;
  bool window = false;
  bool placement = false;
  [[nodiscard]] bool any() const { return priorities || window || placement; }
};

/// What --policies compares, by these keys; an empty value: as the case is anyway.
std::vector<std::vector<std::string>> policy_cases(const FreeKeys& free) {
  std::vector<std::vector<std::string>> cases;
  const auto add = [&](std::string_view rule, std::string_view items, std::string_view placement) {
    cases.emplace_back();
    if (free.priorities) cases.back().emplace_back(rule);
    if (free.window) cases.back().emplace_back(items);
    if (free.placement) cases.back().emplace_back(placement);
  };
  config::NameList rules = names_of(config::Priorities{});
  if (!free.priorities) rules = rules.first(1);
  for (const std::string_view name : rules) {
    if (!free.priorities && !free.placement) break;
    if (!free.placement) add(name, "", "");
    for (const char* placement : {"static", "dynamic"}) {
      if (free.placement) add(name, "", placement);
    }
  }
  for (const char* items : windows) {
    if (free.window) add(rules.front(), items, "");
  }
  return cases;
}

}  // namespace

std::vector<std::string> Sweep::overrides(std::size_t number) const {
  std::vector<std::string> result;
  for (std::size_t key = 0; key < keys.size(); ++key) {
    const std::string& value = cases[number][key];
    if (!value.empty()) result.push_back(fmt::format("{}={}", keys[key], value));
  }
  return result;
}

std::string Sweep::label(std::size_t key) const {
  const auto last = [](const std::string& whole) { return whole.substr(whole.rfind('.') + 1); };
  const std::string name = last(keys[key]);
  const bool is_unique = std::ranges::count(keys, name, last) == 1;
  return is_unique ? name : keys[key];
}

Sweep plan_sweep(const std::vector<std::string>& texts, bool policies, bool devices) {
  Sweep sweep;
  std::vector<std::vector<std::vector<std::string>>> factors;  // of values that go together
  for (const std::string& text : texts) {
    auto [key, values] = parse(text);
    if (std::ranges::find(sweep.keys, key) != sweep.keys.end()) {
      throw Error(ErrorCode::usage, fmt::format("--sweep {}: '{}' is swept twice", text, key));
    }
    sweep.keys.push_back(std::move(key));
    factors.emplace_back();
    for (std::string& value : values) factors.back().push_back({std::move(value)});
  }
  if (policies) {
    const auto is_free = [&](std::string_view key) {
      return std::ranges::find(sweep.keys, key) == sweep.keys.end();
    };
    const FreeKeys free{is_free(priorities_key), is_free(window_key),
                        devices && is_free(placement_key)};
    if (free.priorities) sweep.keys.emplace_back(priorities_key);
    if (free.window) sweep.keys.emplace_back(window_key);
    if (free.placement) sweep.keys.emplace_back(placement_key);
    if (free.any()) factors.push_back(policy_cases(free));
  }
  if (factors.empty()) return sweep;
  double count = 1;
  for (const auto& factor : factors) count *= static_cast<double>(factor.size());
  if (count > static_cast<double>(sweep_cases_max)) {
    throw Error(ErrorCode::usage, fmt::format("--sweep: {:.0f} cases; at most {} are simulated",
                                              count, sweep_cases_max));
  }
  sweep.cases.emplace_back();
  for (const auto& factor : factors) {
    std::vector<std::vector<std::string>> longer;
    for (const auto& begun : sweep.cases) {
      for (const auto& values : factor) {
        longer.push_back(begun);
        longer.back().insert(longer.back().end(), values.begin(), values.end());
      }
    }
    sweep.cases = std::move(longer);
  }
  return sweep;
}

}  // namespace heddle
