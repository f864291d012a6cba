#pragma once

#include <cstdint>
#include <optional>

namespace heddle::test {

/// Calls of operator new in this program so far, by all threads; nothing under sanitizers, which
/// have an operator of their own.
[[nodiscard]] std::optional<std::int64_t> allocations_so_far();

}  // namespace heddle::test
