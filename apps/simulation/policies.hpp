#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "replay/simulation/priorities.hpp"

namespace heddle {

/// What the runtime decides by, where a prediction may decide otherwise: the keys policy.*.
/// (Placement is the runtime's own key, runtime.placement; the window is runtime.window.)
struct Policies {
  replay::PriorityRule priorities = replay::PriorityRule::program;

  friend bool operator==(const Policies&, const Policies&) = default;
};

/// "priorities=path". Throws Error(usage) that names the key, and the nearest one.
[[nodiscard]] Policies read_policies(const std::vector<std::string>& overrides);

[[nodiscard]] std::string text_of(const Policies& policies);
[[nodiscard]] nlohmann::json to_json(const Policies& policies);

}  // namespace heddle
