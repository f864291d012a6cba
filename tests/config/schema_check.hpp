#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace heddle::test {

/// Checks `value` against the subset of JSON Schema that our schema uses. Empty when it is valid,
/// else the place and the keyword that refuses it. Throws std::logic_error for a keyword that it
/// does not know, so that the schema cannot outgrow it unnoticed.
[[nodiscard]] std::string schema_violation(const nlohmann::json& schema,
                                           const nlohmann::json& value, const std::string& place);

}  // namespace heddle::test
