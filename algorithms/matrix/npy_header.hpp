#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

/// What the header of a NumPy .npy file says. Elements are float64.
struct NpyHeader {
  bool big_endian = false;
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
  std::size_t data_offset = 0;  ///< bytes from the start of the file to the first element
};

/// Reads the header of the .npy file with this `content` (format 1.0, 2.0 or 3.0), strictly: the
/// dictionary has the keys descr, fortran_order and shape, once each, and nothing else.
/// Throws Error(usage) that names `path` and the offending text.
[[nodiscard]] NpyHeader parse_npy_header(std::string_view content, const std::string& path);

/// A shape as NumPy prints it: "(3, 4)", "(7,)", "()".
[[nodiscard]] std::string format_npy_shape(const std::vector<std::int64_t>& shape);

/// Bytes of every header that `format_npy_header` makes.
inline constexpr std::size_t npy_header_size = 128;

/// The header of a file in Fortran order with `shape` of at most two dimensions.
[[nodiscard]] std::string format_npy_header(const std::vector<std::int64_t>& shape);

}  // namespace heddle
