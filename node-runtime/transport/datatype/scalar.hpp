#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace heddle {

/// The basic types that datatypes are made of. Each matches only itself: raw bytes, for one, are
/// not received as numbers.
enum class Scalar : std::uint8_t {
  byte,
  int8,
  int16,
  int32,
  int64,
  uint8,
  uint16,
  uint32,
  uint64,
  float32,
  float64,
  complex_float32,  ///< a pair of float32
  complex_float64,  ///< a pair of float64
};
inline constexpr std::size_t scalar_count = 13;

[[nodiscard]] std::int64_t size_of(Scalar scalar);  ///< bytes
/// Its alignment in a C structure, in bytes.
[[nodiscard]] std::int64_t alignment_of(Scalar scalar);
[[nodiscard]] std::string_view name_of(Scalar scalar);

}  // namespace heddle
