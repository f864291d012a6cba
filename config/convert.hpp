#pragma once

#include <optional>
#include <string>

#include "config/options.hpp"
#include "config/tree.hpp"

namespace heddle::config {

/// Why a value was refused.
struct Refusal {
  Position position;
  std::string message;  ///< "expected ...; found ..."
  std::string nearest;  ///< likely intended value, or empty
};

/// The value of `node` for the leaf `option`; on failure nothing, with the reason in `refusal`.
[[nodiscard]] std::optional<Value> convert(const Option& option, const TreeNode& node,
                                           Refusal& refusal);

}  // namespace heddle::config
