#include "algorithms/matrix/npy_file.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <fmt/core.h>
#include <utility>

#include "algorithms/matrix/npy_header.hpp"
#include "base/error.hpp"
#include "base/printable.hpp"

namespace heddle {

static_assert(std::endian::native == std::endian::little, "of '<f8' no bytes are swapped");

namespace {

[[noreturn]] void refuse(const std::string& path, const std::string& reason) {
  throw Error(ErrorCode::usage, fmt::format("cannot read '{}': {}", printable(path), reason));
}

void check_size(const MappedFile& file, const NpyHeader& header, std::int64_t rows,
                std::int64_t columns) {
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(rows, columns, &bytes) || __builtin_mul_overflow(bytes, 8, &bytes)) {
    refuse(file.path(),
           fmt::format("its shape {} is too large for any file: the header is damaged; write the "
                       "file again",
                       format_npy_shape(header.shape)));
  }
  const std::size_t actual = file.content().size() - header.data_offset;
  if (actual != static_cast<std::size_t>(bytes)) {
    refuse(file.path(),
           fmt::format("{}: shape {} needs {} bytes of data, the file has {}; write or copy it "
                       "again",
                       actual < static_cast<std::size_t>(bytes) ? "the file is truncated"
                                                                : "the file is too long",
                       format_npy_shape(header.shape), bytes, actual));
  }
}

/// out(i, j) = element j of the row i that begins at `first + i * row_bytes`.
///
/// Goes through a small buffer, so that each cache line of the file is touched once although rows
/// that are a power of two long all fall into the same cache sets.
void transpose(const char* first, std::size_t row_bytes, TileView out) {
  constexpr std::int64_t block_rows = 16;
  constexpr std::int64_t block_columns = 32;
  std::array<std::array<double, block_columns>, block_rows> buffer{};
  for (std::int64_t j = 0; j < out.columns; j += block_columns) {
    const auto columns = static_cast<std::size_t>(std::min(block_columns, out.columns - j));
    for (std::int64_t i = 0; i < out.rows; i += block_rows) {
      const auto rows = static_cast<std::size_t>(std::min(block_rows, out.rows - i));
      const char* row = first + static_cast<std::size_t>(i) * row_bytes +
                        static_cast<std::size_t>(j) * sizeof(double);
      for (std::size_t bi = 0; bi < rows; ++bi, row += row_bytes) {
        std::memcpy(buffer[bi].data(), row, columns * sizeof(double));
      }
      for (std::size_t bj = 0; bj < columns; ++bj) {
        double* target = &out(i, j + static_cast<std::int64_t>(bj));
        for (std::size_t bi = 0; bi < rows; ++bi) target[bi] = buffer[bi][bj];
      }
    }
  }
}

void swap_bytes(TileView block) {
  for (std::int64_t j = 0; j < block.columns; ++j) {
    for (std::int64_t i = 0; i < block.rows; ++i) {
      block(i, j) =
          std::bit_cast<double>(__builtin_bswap64(std::bit_cast<std::uint64_t>(block(i, j))));
    }
  }
}

}  // namespace

NpySource::NpySource(std::string path, OneDimensional one_dimensional)
    : MatrixSource(0, 0), file_(std::move(path)) {
  file_.interpret([&] { open(one_dimensional); });
}

void NpySource::open(OneDimensional one_dimensional) {
  const NpyHeader header = parse_npy_header(file_.content(), file_.path());
  const std::size_t dimensions = header.shape.size();
  is_vector_ = dimensions == 1;
  if (dimensions != 2 && !(is_vector_ && one_dimensional == OneDimensional::as_column)) {
    refuse(file_.path(),
           fmt::format("its array has {} dimension{}, shape {}; a matrix has 2 (numpy.reshape)",
                       dimensions, dimensions == 1 ? "" : "s", format_npy_shape(header.shape)));
  }
  set_shape(header.shape[0], is_vector_ ? 1 : header.shape[1]);
  check_size(file_, header, rows(), columns());
  data_offset_ = header.data_offset;
  big_endian_ = header.big_endian;
  fortran_order_ = header.fortran_order || is_vector_;
}

std::string NpySource::description() const {
  const std::string path = printable(file_.path());
  const char* const bytes = big_endian_ ? ", big-endian" : "";
  if (is_vector_) return fmt::format("'{}' (NumPy, vector of {}{})", path, rows(), bytes);
  return fmt::format("'{}' (NumPy, {} x {}, {} order{})", path, rows(), columns(),
                     fortran_order_ ? "Fortran" : "C", bytes);
}

void NpySource::read_block(GlobalRow row, GlobalColumn column, TileView out) const {
  const char* data = file_.content().data() + data_offset_;
  const std::int64_t leading = fortran_order_ ? rows() : columns();
  const std::int64_t first = fortran_order_ ? row.value() + column.value() * leading
                                            : column.value() + row.value() * leading;
  data += static_cast<std::size_t>(first) * sizeof(double);
  const std::size_t step = static_cast<std::size_t>(leading) * sizeof(double);
  if (fortran_order_) {
    for (std::int64_t j = 0; j < out.columns; ++j, data += step) {
      std::memcpy(&out(0, j), data, static_cast<std::size_t>(out.rows) * sizeof(double));
    }
  } else {
    transpose(data, step, out);
  }
  if (big_endian_) swap_bytes(out);
  if (file_.is_broken()) file_.check_unchanged();
}

}  // namespace heddle
