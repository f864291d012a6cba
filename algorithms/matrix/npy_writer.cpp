#include "algorithms/matrix/npy_writer.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <fmt/core.h>
#include <span>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

#include "algorithms/matrix/npy_header.hpp"
#include "base/assert.hpp"
#include "base/error.hpp"
#include "base/replacement.hpp"
#include "base/units.hpp"

namespace heddle {

namespace {

constexpr auto header_bytes = static_cast<std::int64_t>(npy_header_size);
constexpr auto element_bytes = static_cast<std::int64_t>(sizeof(double));

[[noreturn]] void fail(ErrorCode code, const std::string& path, const std::string& reason) {
  throw Error(code, fmt::format("cannot write '{}': {}", path, reason));
}

std::string text_of(int error) {
  return std::generic_category().message(error);
}

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

std::int64_t file_bytes(const std::string& path, std::int64_t rows, std::int64_t columns) {
  HEDDLE_CHECK(rows >= 0 && columns >= 0, "{} x {}", rows, columns);
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(rows, columns, &bytes) ||
      __builtin_mul_overflow(bytes, element_bytes, &bytes) ||
      __builtin_add_overflow(bytes, header_bytes, &bytes)) {
    fail(ErrorCode::usage, path,
         fmt::format("a matrix of {} x {} is too large for any file", rows, columns));
  }
  return bytes;
}

/// Has the file system set the space aside; a full disk shows now and not after the work.
void reserve(int file, const std::string& path, std::int64_t bytes) {
  struct statvfs disk {};
  if (::fstatvfs(file, &disk) == 0) {
    const std::uint64_t available = std::uint64_t{disk.f_bavail} * disk.f_frsize;
    if (static_cast<std::uint64_t>(bytes) > available) {
      fail(ErrorCode::usage, path,
           fmt::format("{} are needed and {} are available in '{}'",
                       format_bytes(static_cast<std::uint64_t>(bytes)), format_bytes(available),
                       folder_of(path)));
    }
  }
  int error = EINTR;
  while (error == EINTR) error = ::posix_fallocate(file, 0, bytes);
  if (error != 0) {
    fail(ErrorCode::usage, path,
         fmt::format("reserving {} failed: {}", format_bytes(static_cast<std::uint64_t>(bytes)),
                     text_of(error)));
  }
}

/// Writes all that the pieces hold, from `position` of the file on; the pieces are used up.
void write_all(int file, const std::string& path, std::span<iovec> pieces, std::int64_t position) {
  while (!pieces.empty()) {
    if (pieces.front().iov_len == 0) {
      pieces = pieces.subspan(1);
      continue;
    }
    const ssize_t written =
        ::pwritev(file, pieces.data(), static_cast<int>(pieces.size()), position);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      const int error = written < 0 ? errno : 0;
      fail(code_of_write_failure(error), path,
           fmt::format("writing at byte {} failed: {}", position,
                       written < 0 ? text_of(error) : "nothing was taken"));
    }
    position += written;
    for (auto left = static_cast<std::size_t>(written); left > 0;) {
      iovec& first = pieces.front();
      const std::size_t used = std::min(left, first.iov_len);
      first.iov_base = static_cast<char*>(first.iov_base) + used;
      first.iov_len -= used;
      left -= used;
      if (first.iov_len == 0) pieces = pieces.subspan(1);
    }
  }
}

/// The `count` elements of `block` from the start of column j on.
iovec piece_of(const TileView& block, std::int64_t j, std::int64_t count) {
  return {&block(0, j), static_cast<std::size_t>(count * element_bytes)};
}

}  // namespace

std::string NpyWriter::temporary_path_of(const std::string& final_path,
                                         const std::string& run_tag) {
  return fmt::format("{}.{}.heddle-part", target_of(final_path), run_tag);
}

NpyWriter::NpyWriter(int file, std::string temporary_path, std::string final_path,
                     std::int64_t rows, std::int64_t columns)
    : file_(file),
      temporary_path_(std::move(temporary_path)),
      final_path_(std::move(final_path)),
      rows_(rows),
      columns_(columns) {}

NpyWriter::NpyWriter(NpyWriter&& other) noexcept
    : file_(std::exchange(other.file_, -1)),
      temporary_path_(std::move(other.temporary_path_)),
      final_path_(std::exchange(other.final_path_, {})),
      rows_(other.rows_),
      columns_(other.columns_) {}

NpyWriter::~NpyWriter() {
  if (!final_path_.empty()) abandon();
  close();
}

void NpyWriter::close() noexcept {
  if (file_ >= 0) ::close(std::exchange(file_, -1));
}

NpyWriter NpyWriter::create(const std::string& final_path, std::int64_t rows, std::int64_t columns,
                            const std::string& run_tag, NpyShape shape) {
  HEDDLE_CHECK(shape == NpyShape::matrix || columns == 1, "{} columns", columns);
  HEDDLE_CHECK(!run_tag.empty() && run_tag.find('/') == std::string::npos, "'{}'", run_tag);
  check_output_path(final_path);
  const std::int64_t bytes = file_bytes(final_path, rows, columns);
  const std::string temporary_path = temporary_path_of(final_path, run_tag);
  const std::string target = target_of(final_path);
  const int file = create_replacement(temporary_path, target);
  if (file < 0) {
    fail(ErrorCode::usage, final_path,
         errno == EEXIST ? fmt::format("'{}' is there already, left by a run that was killed or "
                                       "used by one that goes on; remove it if none does",
                                       temporary_path)
                         : fmt::format("creating '{}' failed: {}", temporary_path, text_of(errno)));
  }
  // From here on the writer removes the file when something fails.
  NpyWriter writer(file, temporary_path, target, rows, columns);
  reserve(file, final_path, bytes);
  std::string header =
      format_npy_header(shape == NpyShape::vector ? std::vector<std::int64_t>{rows}
                                                  : std::vector<std::int64_t>{rows, columns});
  std::array<iovec, 1> piece{{{header.data(), header.size()}}};
  write_all(file, temporary_path, piece, 0);
  return writer;
}

NpyWriter NpyWriter::open(const std::string& temporary_path, std::int64_t rows,
                          std::int64_t columns) {
  const std::int64_t bytes = file_bytes(temporary_path, rows, columns);
  const int file = ::open(temporary_path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0) {
    fail(ErrorCode::internal, temporary_path,
         fmt::format("another process has created it, opening it here failed: {}; do all nodes see "
                     "the same folder?",
                     text_of(errno)));
  }
  NpyWriter writer(file, temporary_path, {}, rows, columns);
  struct stat status {};
  if (::fstat(file, &status) != 0) fail(ErrorCode::internal, temporary_path, text_of(errno));
  if (status.st_size != bytes) {
    fail(ErrorCode::internal, temporary_path,
         fmt::format("it has {} bytes, {} are expected; do all nodes see the same folder?",
                     status.st_size, bytes));
  }
  return writer;
}

/// Byte of the file where an element begins.
std::int64_t NpyWriter::position(GlobalRow row, GlobalColumn column) const {
  return header_bytes + (row.value() + column.value() * rows_) * element_bytes;
}

void NpyWriter::write(GlobalRow row, GlobalColumn column, TileView block) const {
  HEDDLE_CHECK(file_ >= 0, "{} is closed", temporary_path_);
  HEDDLE_CHECK(row.value() >= 0 && block.rows >= 0 && block.rows <= rows_ - row.value(),
               "rows {} + {} of {}", row.value(), block.rows, rows_);
  HEDDLE_CHECK(
      column.value() >= 0 && block.columns >= 0 && block.columns <= columns_ - column.value(),
      "columns {} + {} of {}", column.value(), block.columns, columns_);
  if (block.rows == 0 || block.columns == 0) return;
  if (block.rows == rows_) {
    write_columns(column, block);
    return;
  }
  for (std::int64_t j = 0; j < block.columns; ++j) {
    std::array<iovec, 1> piece{piece_of(block, j, block.rows)};
    write_all(file_, temporary_path_, piece, position(row, column + j));
  }
}

/// Whole columns follow each other in the file: many go in one call.
void NpyWriter::write_columns(GlobalColumn column, TileView block) const {
  if (block.leading == block.rows) {
    std::array<iovec, 1> piece{piece_of(block, 0, block.rows * block.columns)};
    write_all(file_, temporary_path_, piece, position(GlobalRow{0}, column));
    return;
  }
  std::array<iovec, 256> pieces{};
  const auto batch = static_cast<std::int64_t>(pieces.size());
  for (std::int64_t j = 0; j < block.columns; j += batch) {
    const auto count = static_cast<std::size_t>(std::min(batch, block.columns - j));
    for (std::size_t k = 0; k < count; ++k) {
      pieces[k] = piece_of(block, j + static_cast<std::int64_t>(k), block.rows);
    }
    write_all(file_, temporary_path_, std::span(pieces).first(count),
              position(GlobalRow{0}, column + j));
  }
}

void NpyWriter::flush() const {
  HEDDLE_CHECK(file_ >= 0, "{} is closed", temporary_path_);
  if (::fsync(file_) == 0) return;
  const int error = errno;
  fail(code_of_write_failure(error), temporary_path_, text_of(error));
}

void NpyWriter::commit() {
  HEDDLE_CHECK(!final_path_.empty(), "{} is not this process's to commit", temporary_path_);
  flush();
  if (std::rename(temporary_path_.c_str(), final_path_.c_str()) != 0) {
    fail(ErrorCode::internal, final_path_,
         fmt::format("renaming '{}' failed: {}", temporary_path_, text_of(errno)));
  }
  sync_folder_of(final_path_);
  keep();
}

void NpyWriter::keep() noexcept {
  final_path_.clear();
  close();
}

void NpyWriter::abandon() noexcept {
  ::unlink(temporary_path_.c_str());
  final_path_.clear();
  close();
}

}  // namespace heddle
