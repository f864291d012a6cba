#pragma once

#include <string>
#include <vector>

#include "algorithms/matrix/kept_elements.hpp"
#include "algorithms/matrix/mapped_file.hpp"
#include "algorithms/matrix/mtx_text.hpp"
#include "algorithms/matrix/source.hpp"

namespace heddle {

/// A matrix in a Matrix Market file: array or coordinate, real or integer, general or symmetric.
///
/// Text cannot be addressed, so `prepare` scans the file once, passes over what is not wanted, and
/// keeps the rest and the diagonal: 8 bytes per wanted element (of a symmetric file per wanted
/// pair), plus 1 bit each during the scan of a coordinate file. Both triangles of a symmetric file
/// can be read. Elements that a coordinate file leaves out are 0.
///
/// Each entry has a line of its own; blank lines and comments may stand between them. A coordinate
/// file that is symmetric may give either of (i, j) and (j, i), not both; a position that comes
/// twice is an error that names both lines.
class MtxSource final : public MatrixSource {
 public:
  /// Reads the header. Throws Error(usage) that names the file, the line and what is wrong.
  explicit MtxSource(std::string path);

  [[nodiscard]] std::string description() const override;
  [[nodiscard]] bool is_symmetric() const override { return header_.is_symmetric; }

  /// Throws LineError that names the line of a word that is no number, an index that is out of
  /// range, a position that comes twice, missing or surplus entries.
  void prepare(const WantedRows& wanted) override;

 private:
  void read_block(GlobalRow row, GlobalColumn column, TileView out) const override;
  void read_diagonal_part(std::int64_t begin, std::span<double> out) const override;

  void check_length() const;
  void scan_array();
  void scan_array_column(LineReader& lines, std::int64_t column);
  void scan_coordinates();
  void skip_values(LineReader& lines, std::int64_t count) const;
  [[noreturn]] void refuse_end(std::int64_t line) const;
  [[nodiscard]] double parse_value(std::string_view text, std::int64_t line) const;
  void expect_end(LineReader& lines) const;
  [[noreturn]] void refuse_duplicate(std::int64_t row, std::int64_t column,
                                     std::int64_t line) const;

  MappedFile file_;
  MtxHeader header_;
  bool is_prepared_ = false;
  KeptElements kept_;
  std::vector<double> diagonal_;
};

}  // namespace heddle
