#pragma once

#include <cstdint>
#include <vector>

#include "algorithms/matrix/source.hpp"
#include "algorithms/reductions/measures.hpp"

/// Checks of factorizations by products with a few random vectors, O(n^2) work without a second
/// matrix (docs/decisions/031-sampled-checks.md). Collective; the same result on all nodes.
namespace heddle {

inline constexpr std::int64_t sample_count = 3;

/// `sample_count` columns of length n, one after the other, whose elements are 1 or -1 by a seed of
/// heddle's own. An error in one element (i, j) of a matrix changes element i of each product by
/// the whole error.
[[nodiscard]] std::vector<double> sample_vectors(std::int64_t n);

/// max |A z - L L^T z| / (n |A| eps) over the elements and the sample vectors z, |A| the 1-norm;
/// 0 for an empty matrix, not a number if an element of A or L is none. Reads the tiles of A that
/// are as those of the factor `l` (Storage::lower) and stores none. `source.prepare` has been
/// called with wanted_of_symmetric(l). Throws what a node cannot read on all nodes (AgreedError).
[[nodiscard]] double sampled_cholesky_residual(Matrix<double> l, const MatrixSource& source);

}  // namespace heddle
