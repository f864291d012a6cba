#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "config/config.hpp"

/// What a configuration comes to.
namespace heddle {
namespace config {

/// Keys of `layout` that are `auto`, in the order above.
[[nodiscard]] std::vector<std::string> keys_left_open(const Layout& layout);

}  // namespace config

/// The effective values with all defaults, nested as in the file: a valid configuration that loads
/// to the same values.
[[nodiscard]] nlohmann::json to_json(const Config& config);

/// Hash of the effective values, equal for equal values on every node and in every run of the same
/// version. Nodes compare it at start to detect that they were started differently.
[[nodiscard]] std::uint64_t fingerprint(const Config& config);

}  // namespace heddle
