#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "algorithms/reductions/measures.hpp"
#include "base/index.hpp"
#include "kernels/kernel.hpp"
#include "node-runtime/matrix.hpp"

namespace heddle {

/// Norms of the columns of a matrix whose elements pass by in parts, each element once. They have
/// the same bits each time on one grid, whichever thread adds a part first.
///
/// Parts of a wide column are kept until all of it has come, and all wide columns before it: memory
/// is bounded by the parts that come out of turn.
///
/// Locks: mutex_ guards all members; no other function is called while it is held.
class PassingNorms {
 public:
  /// `matrix` is cut and dealt out as the matrix that passes by. Storage::lower: that is symmetric,
  /// and its part on and below the diagonal passes by.
  explicit PassingNorms(const Matrix<double>& matrix);

  /// Columns of a tile of this node, with all of its rows. What lies above the diagonal of a
  /// symmetric matrix is not counted. Any thread.
  void add(GlobalRow row, GlobalColumn column, const TileView& part);

  /// The 1-norm and the 2-norm of each column (the latter of a matrix that is not symmetric), once
  /// all parts of all nodes were added. Not a number for a column with an element that is none.
  /// Collective; the same result on all nodes.
  [[nodiscard]] std::vector<Norm> one_norms(Node& node) const;
  [[nodiscard]] std::vector<Norm> two_norms(Node& node) const;

  /// remaining elements >= 0; wide columns before the next one are folded and hold no part.
  [[nodiscard]] bool is_valid() const;

 private:
  /// Sums of one part: by its columns and, of a symmetric matrix, its rows.
  struct Part {
    std::int64_t row;
    std::int64_t column;
    std::vector<Norm> columns;
    std::vector<Norm> rows;
    std::vector<Norm> squares;
  };
  struct WideParts {
    std::int64_t remaining = 0;  ///< elements of this node that have not come
    std::vector<Part> parts;
  };

  [[nodiscard]] Part sums_of(std::int64_t row, std::int64_t column, const TileView& part) const;
  void fold(WideParts& wide);

  const std::int64_t wide_width_;
  const bool is_symmetric_;
  mutable std::mutex mutex_;
  std::vector<WideParts> wide_;
  std::size_t next_ = 0;  ///< the first wide column that is not folded
  std::vector<Norm> sums_;
  std::vector<Norm> squares_;
};

}  // namespace heddle
