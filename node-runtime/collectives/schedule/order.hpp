#pragma once

#include <cstdint>
#include <string_view>

namespace heddle {

/// In which order a reduction puts the ranks' values together
/// (docs/decisions/035-order-of-reductions.md).
enum class Order : std::uint8_t {
  ranks,   ///< by their numbers: the same bits wherever the ranks are
  places,  ///< those of one GPU first, then of one host: the same bits on the same places
};
/// "ranks", "places".
[[nodiscard]] constexpr std::string_view name_of(Order order) {
  return order == Order::ranks ? "ranks" : "places";
}

}  // namespace heddle
