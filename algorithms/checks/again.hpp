#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "algorithms/matrix/source.hpp"
#include "algorithms/solve/passing.hpp"
#include "node-runtime/matrix.hpp"
#include "node-runtime/node.hpp"

namespace heddle {

/// `to` := `from`, tile by tile where they live; both are alike.
[[nodiscard]] JobSpec copy_tiles(const Matrix<double>& to, const Matrix<double>& from);

/// A matrix that is multiplied once more after its factorization: a copy of it that was kept, or
/// its source, read or generated again tile by tile and not stored.
class Again {
 public:
  /// `copy` is A.
  [[nodiscard]] static Again of_copy(const Matrix<double>& copy) { return {{copy}, nullptr}; }
  /// `tiles` were made from passing_spec() of the matrix that is read. `source` (null: the products
  /// are only planned) outlives this; `source->prepare` has been called for that matrix.
  [[nodiscard]] static Again of_source(const Matrix<double>& tiles, const MatrixSource* source) {
    return {{tiles}, source};
  }
  /// `tiles` were made from passing_spec() with PassingFrom::generated; `generated` is filled.
  [[nodiscard]] static Again of_generated(const Matrix<double>& tiles,
                                          const GeneratedTiles& generated) {
    return {{tiles, {}, generated}, nullptr};
  }

  /// The job of y -= A x for each of `products`, A symmetric; `set` is what run() gives, or empty
  /// for a job that is only planned.
  [[nodiscard]] JobSpec symmetric_job(const std::vector<Product>& products,
                                      const SetPart& set = {}) const;
  /// That with any A; then y -= A^T x for each of `back`, whose x may be one of the former y.
  [[nodiscard]] JobSpec job(const std::vector<Product>& products, const std::vector<Product>& back,
                            const SetPart& set = {}) const;

  /// Runs the job that `make` returns. What any node cannot read is thrown on all (AgreedError).
  /// Collective.
  void run(Node& node, const std::function<JobSpec(const SetPart& set)>& make) const;

 private:
  Again(MatrixOperand a, const MatrixSource* source) : a_(std::move(a)), source_(source) {}
  [[nodiscard]] MatrixOperand operand(const SetPart& set) const {
    return {a_.tiles, set, a_.generated};
  }

  MatrixOperand a_;
  const MatrixSource* source_;
};

}  // namespace heddle
