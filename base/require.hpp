#pragma once

#include <fmt/core.h>
#include <utility>

#include "base/error.hpp"

namespace heddle {

/// Checks a precondition of a public function: throws Error(usage) with the formatted text unless
/// `holds`. The text names the function, the value and what is allowed. For mistakes of the caller;
/// HEDDLE_CHECK is for defects of heddle. Thread: any.
template <typename... Values>
void require(bool holds, fmt::format_string<Values...> text, Values&&... values) {
  if (holds) [[likely]]
    return;
  throw Error(ErrorCode::usage, fmt::format(text, std::forward<Values>(values)...));
}

}  // namespace heddle
