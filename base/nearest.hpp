#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace heddle {

/// Edit distance with swaps of neighbours (optimal string alignment). Case is ignored; '-' equals
/// '_'.
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate closest to `word`, or an empty view. A candidate qualifies if its distance is at
/// most a third of the longer word, or if it begins or ends with `word`.
[[nodiscard]] std::string_view nearest(std::string_view word,
                                       std::span<const std::string_view> candidates);

}  // namespace heddle
