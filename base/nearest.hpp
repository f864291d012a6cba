#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace heddle {

/// Edits that turn `a` into `b`: insertions, deletions, replacements and swaps of neighbours. Upper
/// and lower case, and '-' and '_', count as equal.
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate that `word` was probably meant to be, or an empty view. At most a third of the
/// letters may be wrong; the beginning or the end of a longer candidate counts as a near miss.
[[nodiscard]] std::string_view nearest(std::string_view word,
                                       std::span<const std::string_view> candidates);

}  // namespace heddle
