#pragma once

#include <cstdint>
#include <cublasLt.h>
#include <cublas_v2.h>
#include <map>
#include <optional>
#include <tuple>

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

/// Which of cublasLt's kernels large products take. cuBLAS chooses for short runs; in long ones the
/// power limit rules, and a kernel that moves less data for each operation lets the clock stay
/// higher: 51.4 instead of 47.5 TFLOP/s for tiles of 4096 on an H200 (bench/dgemm_gpu).
struct GemmPreference {
  /// Products with fewer rows, columns or terms in a sum are cuBLAS's own choice.
  int size_min = 1536;
  int depth_min = 256;
  cublasLtMatmulTile_t tile = CUBLASLT_MATMUL_TILE_64x128;
  cublasLtMatmulStages_t stages = CUBLASLT_MATMUL_STAGES_16x3;
};

/// The kernels chosen so far on one stream.
class GemmPlans {
 public:
  /// The algorithm for C := alpha op(A) op(B) + beta C with C in place; null where cuBLAS chooses
  /// itself: small products, and where the preferred kernel is not offered.
  [[nodiscard]] const cublasLtMatmulAlgo_t* algorithm(cublasLtHandle_t handle,
                                                      const GemmShape& shape,
                                                      std::size_t workspace_bytes);

 private:
  GemmPreference preference_;
  std::map<GemmShape, std::optional<cublasLtMatmulAlgo_t>> chosen_;
};

/// Descriptions for cublasLt; plain values.
struct GemmDescription {
  explicit GemmDescription(const GemmShape& shape);

  cublasLtMatmulDescOpaque_t operation{};
  cublasLtMatrixLayoutOpaque_t a{};
  cublasLtMatrixLayoutOpaque_t b{};
  cublasLtMatrixLayoutOpaque_t c{};
};

}  // namespace heddle::kernel::cuda
