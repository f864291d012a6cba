#include "apps/simulation/policies.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>

#include "base/error.hpp"
#include "base/nearest.hpp"

namespace heddle {
namespace {

constexpr std::array<std::string_view, 1> keys{"priorities"};

[[noreturn]] void refuse(std::string_view text, std::string_view word,
                         std::span<const std::string_view> names, std::string_view what) {
  const std::string_view meant = nearest(word, names);
  throw Error(ErrorCode::usage,
              fmt::format("policy.{}: {} is one of {}{}", text, what, fmt::join(names, ", "),
                          meant.empty() ? "" : fmt::format("; did you mean '{}'?", meant)));
}

std::string_view name_of(replay::PriorityRule rule) {
  return replay::priority_rule_names.at(static_cast<std::size_t>(rule));
}

}  // namespace

Policies read_policies(const std::vector<std::string>& overrides) {
  Policies policies;
  for (const std::string& text : overrides) {
    const std::size_t equals = std::min(text.find('='), text.size());
    const std::string_view key = std::string_view(text).substr(0, equals);
    const std::string_view value = std::string_view(text).substr(std::min(equals + 1, text.size()));
    if (std::ranges::find(keys, key) == keys.end()) refuse(text, key, keys, "a policy");
    const auto& names = replay::priority_rule_names;
    const auto found = std::ranges::find(names, value);
    if (found == names.end()) refuse(text, value, names, "the rule of priorities");
    policies.priorities = static_cast<replay::PriorityRule>(found - names.begin());
  }
  return policies;
}

std::string text_of(const Policies& policies) {
  return fmt::format("priorities: {}", name_of(policies.priorities));
}

nlohmann::json to_json(const Policies& policies) {
  return {{"priorities", name_of(policies.priorities)}};
}

}  // namespace heddle
