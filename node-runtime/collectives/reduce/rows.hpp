#pragma once

#include <cmath>
#include <cstdint>

#include "node-runtime/collectives/reduce/host_device.hpp"

/// Elements of a reduction that do not follow each other in memory. GPUs and hosts read them alike.
namespace heddle::reduction {

/// Rows of whole elements, as columns of a matrix or of a triangle are: row r begins r * stride
/// bytes behind the first one and has bytes + r * step of them, more than 0. Without `bytes` all
/// elements follow each other.
struct Rows {
  std::int64_t bytes = 0;
  std::int64_t step = 0;
  std::int64_t stride = 0;
  friend bool operator==(const Rows&, const Rows&) = default;

  /// Bytes of the rows before this one.
  [[nodiscard]] HEDDLE_HOST_DEVICE std::int64_t before(std::int64_t row) const {
    return row * bytes + row * (row - 1) / 2 * step;
  }

  /// The row of a byte of the packed elements.
  [[nodiscard]] HEDDLE_HOST_DEVICE std::int64_t row_of(std::int64_t byte) const {
    if (step == 0) {
      // GPUs divide numbers of 64 bits several times as slowly.
      constexpr std::int64_t short_max = 0xffffffff;
      if (byte > short_max || bytes > short_max) return byte / bytes;
      return static_cast<std::uint32_t>(byte) / static_cast<std::uint32_t>(bytes);
    }
    // The root of before(row) = byte, put right where it was rounded.
    const double b = static_cast<double>(bytes) - static_cast<double>(step) / 2;
    const double square = b * b + 2 * static_cast<double>(step) * static_cast<double>(byte);
    const double root = square > 0 ? std::sqrt(square) : 0;
    auto row = static_cast<std::int64_t>((root - b) / static_cast<double>(step));
    while (before(row) > byte) --row;
    while (before(row + 1) <= byte) ++row;
    return row;
  }
};

/// How the inputs of a reduction lie, or its outputs.
struct Arrangement {
  Rows rows;
  std::int64_t first = 0;  ///< bytes of the packed elements that are not taken, before the others
  friend bool operator==(const Arrangement&, const Arrangement&) = default;

  /// Where a byte of those that are taken lies, from the first row's begin.
  [[nodiscard]] HEDDLE_HOST_DEVICE std::int64_t place_of(std::int64_t byte) const {
    const std::int64_t packed = first + byte;
    if (rows.bytes == 0) return packed;
    const std::int64_t row = rows.row_of(packed);
    return row * rows.stride + packed - rows.before(row);
  }
  /// Bytes from there to its row's end; of those that follow each other: all of them.
  [[nodiscard]] std::int64_t bytes_behind(std::int64_t byte, std::int64_t all) const {
    if (rows.bytes == 0) return all - byte;
    const std::int64_t packed = first + byte;
    return rows.before(rows.row_of(packed) + 1) - packed;
  }
  /// No unit of `unit_bytes` lies in two rows, if units are counted from the first byte taken.
  [[nodiscard]] bool has_whole(std::int64_t unit_bytes) const {
    return rows.bytes == 0 ||
           (rows.bytes % unit_bytes == 0 && rows.step % unit_bytes == 0 && first % unit_bytes == 0);
  }
};

}  // namespace heddle::reduction
