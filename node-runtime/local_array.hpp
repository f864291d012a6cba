#pragma once

#include <cstdint>
#include <vector>

#include "base/index.hpp"
#include "node-runtime/matrix.hpp"

namespace heddle {

/// Where a node's tiles of a matrix lie in its local array (Matrix::local_rows).
///
/// Invariant: the elements of row_begins_ that are not `none` ascend from 0 by the rows of their
/// tile rows and end at rows(); column_begins_ likewise with wide columns and columns().
class LocalArray {
 public:
  LocalArray(const MatrixSpec& spec, NodeId node);

  [[nodiscard]] std::int64_t rows() const { return rows_; }
  [[nodiscard]] std::int64_t columns() const { return columns_; }
  /// Distance of the first element of tile (i, c), which is the node's, from that of the array.
  [[nodiscard]] std::int64_t offset(TileRow i, TileColumn c, std::int64_t leading) const;
  [[nodiscard]] bool is_valid() const;

 private:
  static constexpr std::int64_t none = -1;

  TileLayout layout_;
  std::int64_t rows_ = 0;
  std::int64_t columns_ = 0;
  std::vector<std::int64_t> row_begins_;     ///< by tile row
  std::vector<std::int64_t> column_begins_;  ///< by wide column
};

}  // namespace heddle
