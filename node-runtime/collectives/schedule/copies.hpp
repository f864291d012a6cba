#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace heddle {

/// How ranks copy between their memory and the buffer that they share on a GPU, where an operation
/// goes by such a buffer (002 section 5).
enum class Copies : std::uint8_t {
  automatic,  ///< as measured for the operation, ranks and size; otherwise as `by_speed`
  by_table,   ///< "static": as many are staged as a table says for the operation, ranks and size
  by_speed,   ///< "dynamic": the type whose copies end sooner is taken more often
  mapped,     ///< each rank's device reads and writes the buffer, mapped in its process
  staged,     ///< through host memory, by messages
};
inline constexpr std::array<std::string_view, 5> copies_names{"auto", "static", "dynamic", "mapped",
                                                              "staged"};
/// "auto", "static", ...
[[nodiscard]] constexpr std::string_view name_of(Copies copies) {
  return copies_names.at(static_cast<std::size_t>(copies));
}

}  // namespace heddle
