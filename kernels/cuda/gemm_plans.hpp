#pragma once

#include <cstddef>
#include <cublasLt.h>
#include <cublas_v2.h>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "kernels/cuda/product_choice.hpp"

namespace heddle::kernel::cuda {

/// A product's shape as cuBLAS sees it.
struct GemmShape {
  cublasOperation_t transa = CUBLAS_OP_N;
  cublasOperation_t transb = CUBLAS_OP_N;
  int m = 0;
  int n = 0;
  int k = 0;
  int lda = 1;
  int ldb = 1;
  int ldc = 1;

  friend bool operator<(const GemmShape& x, const GemmShape& y) {
    return std::tie(x.transa, x.transb, x.m, x.n, x.k, x.lda, x.ldb, x.ldc) <
           std::tie(y.transa, y.transb, y.m, y.n, y.k, y.lda, y.ldb, y.ldc);
  }
};

/// The kernels chosen so far on one stream.
class GemmPlans {
 public:
  explicit GemmPlans(ProductChoices choices) : choices_(std::move(choices)) {}

  /// The algorithm for C := alpha op(A) op(B) + beta C with C in place; null where cuBLAS chooses
  /// itself: where it was measured to be best, small products, other ones than C - A B^T, and where
  /// the chosen kernel is not offered.
  [[nodiscard]] const cublasLtMatmulAlgo_t* algorithm(cublasLtHandle_t handle,
                                                      const GemmShape& shape,
                                                      std::size_t workspace_bytes);

 private:
  [[nodiscard]] const ProductChoice* choice_for(const GemmShape& shape) const;

  ProductChoices choices_;
  std::map<GemmShape, std::optional<cublasLtMatmulAlgo_t>> chosen_;
};

/// The implementations that cublasLt offers for a product within the workspace, best first; empty
/// where it refuses the GPU or the shape.
[[nodiscard]] std::vector<cublasLtMatmulAlgo_t> offered_algorithms(cublasLtHandle_t handle,
                                                                   const GemmShape& shape,
                                                                   std::size_t workspace_bytes,
                                                                   int count_max);

/// Descriptions for cublasLt; plain values.
struct GemmDescription {
  explicit GemmDescription(const GemmShape& shape);

  cublasLtMatmulDescOpaque_t operation{};
  cublasLtMatrixLayoutOpaque_t a{};
  cublasLtMatrixLayoutOpaque_t b{};
  cublasLtMatrixLayoutOpaque_t c{};
};

}  // namespace heddle::kernel::cuda
