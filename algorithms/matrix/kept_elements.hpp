#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "algorithms/matrix/source.hpp"

namespace heddle {

/// The wanted elements of a matrix, packed column after column: memory is proportional to them.
///
/// With `Stored::lower_triangle` the matrix is square and symmetric and only (i, j) with i >= j are
/// kept, each if (i, j) or (j, i) is wanted.
class KeptElements {
 public:
  enum class Stored : std::uint8_t { all, lower_triangle };

  KeptElements() = default;

  /// All elements start as 0.
  KeptElements(std::int64_t rows, std::int64_t columns, Stored stored, const WantedRows& wanted);

  /// The kept rows of `column`, ascending and disjoint; above the diagonal they are to be ignored
  /// when only the lower triangle is stored.
  [[nodiscard]] std::vector<RowRange> ranges(GlobalColumn column) const;

  /// Where (row, column) is in `values()`; nothing when it is not kept.
  [[nodiscard]] std::optional<std::size_t> find(GlobalRow row, GlobalColumn column) const;

  [[nodiscard]] std::span<double> values() { return values_; }

  /// Fills `out` with the block that begins at (row, column); all of it is kept.
  void read(GlobalRow row, GlobalColumn column, TileView out) const;

 private:
  struct Range {
    std::int64_t begin;
    std::int64_t end;
    std::int64_t before;  ///< kept rows in the earlier ranges of the list
    friend bool operator==(const Range&, const Range&) = default;
  };
  using List = std::vector<Range>;

  static List pack(const std::vector<RowRange>& ranges, std::int64_t rows);
  static std::int64_t kept_before(const List& list, std::int64_t row);
  void add_mirrors(std::int64_t size);
  void place_columns(std::int64_t columns);
  void copy(std::int64_t column, std::int64_t begin, std::int64_t end, double* out,
            std::int64_t step) const;

  Stored stored_ = Stored::all;
  std::vector<List> lists_;                ///< different from one to the next
  std::vector<std::int32_t> column_list_;  ///< each column's list
  /// Position in values_ of what would be each column's first kept row, above the diagonal or not.
  std::vector<std::int64_t> column_offset_;
  std::vector<double> values_;
};

}  // namespace heddle
