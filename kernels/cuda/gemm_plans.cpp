#include "kernels/cuda/gemm_plans.hpp"

#include <algorithm>
#include <array>

#include "kernels/cuda/context.hpp"

namespace heddle::kernel::cuda {
namespace {

template <class T>
T attribute(const cublasLtMatmulAlgo_t& algorithm, cublasLtMatmulAlgoConfigAttributes_t which) {
  T value{};
  std::size_t written = 0;
  check(cublasLtMatmulAlgoConfigGetAttribute(&algorithm, which, &value, sizeof value, &written),
        "cublasLtMatmulAlgoConfigGetAttribute");
  return value;
}

bool is_preferred(const cublasLtMatmulAlgo_t& algorithm, const GemmPreference& preference) {
  return attribute<std::uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_TILE_ID) == preference.tile &&
         attribute<std::uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_STAGES_ID) == preference.stages &&
         attribute<std::int32_t>(algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM) <= 1;
}

}  // namespace

GemmDescription::GemmDescription(const GemmShape& shape) {
  const bool plain_a = shape.transa == CUBLAS_OP_N;
  const bool plain_b = shape.transb == CUBLAS_OP_N;
  const auto extent = [](bool plain, int first, int second) {
    return static_cast<std::uint64_t>(plain ? first : second);
  };
  check(cublasLtMatmulDescInit(&operation, CUBLAS_COMPUTE_64F, CUDA_R_64F),
        "cublasLtMatmulDescInit");
  check(cublasLtMatmulDescSetAttribute(&operation, CUBLASLT_MATMUL_DESC_TRANSA, &shape.transa,
                                       sizeof shape.transa),
        "cublasLtMatmulDescSetAttribute");
  check(cublasLtMatmulDescSetAttribute(&operation, CUBLASLT_MATMUL_DESC_TRANSB, &shape.transb,
                                       sizeof shape.transb),
        "cublasLtMatmulDescSetAttribute");
  check(cublasLtMatrixLayoutInit(&a, CUDA_R_64F, extent(plain_a, shape.m, shape.k),
                                 extent(plain_a, shape.k, shape.m), shape.lda),
        "cublasLtMatrixLayoutInit");
  check(cublasLtMatrixLayoutInit(&b, CUDA_R_64F, extent(plain_b, shape.k, shape.n),
                                 extent(plain_b, shape.n, shape.k), shape.ldb),
        "cublasLtMatrixLayoutInit");
  check(cublasLtMatrixLayoutInit(&c, CUDA_R_64F, static_cast<std::uint64_t>(shape.m),
                                 static_cast<std::uint64_t>(shape.n), shape.ldc),
        "cublasLtMatrixLayoutInit");
}

const cublasLtMatmulAlgo_t* GemmPlans::algorithm(cublasLtHandle_t handle, const GemmShape& shape,
                                                 std::size_t workspace_bytes) {
  const bool is_update = shape.transa == CUBLAS_OP_N && shape.transb == CUBLAS_OP_T;
  if (!is_update || std::min(shape.m, shape.n) < preference_.size_min ||
      shape.k < preference_.depth_min) {
    return nullptr;
  }
  const auto [entry, is_new] = chosen_.try_emplace(shape);
  if (is_new) {
    GemmDescription d(shape);
    cublasLtMatmulPreference_t wanted = nullptr;
    check(cublasLtMatmulPreferenceCreate(&wanted), "cublasLtMatmulPreferenceCreate");
    check(cublasLtMatmulPreferenceSetAttribute(wanted, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                               &workspace_bytes, sizeof workspace_bytes),
          "cublasLtMatmulPreferenceSetAttribute");
    std::array<cublasLtMatmulHeuristicResult_t, 32> offers;
    int count = 0;
    const cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(handle, &d.operation, &d.a, &d.b, &d.c, &d.c, wanted,
                                       static_cast<int>(offers.size()), offers.data(), &count);
    static_cast<void>(cublasLtMatmulPreferenceDestroy(wanted));
    // A GPU or a shape for which it offers nothing is left to cuBLAS.
    if (status != CUBLAS_STATUS_SUCCESS) count = 0;
    for (int i = 0; i < count && !entry->second; ++i) {
      const auto& offer = offers[static_cast<std::size_t>(i)];
      if (offer.state == CUBLAS_STATUS_SUCCESS && is_preferred(offer.algo, preference_)) {
        entry->second = offer.algo;
      }
    }
  }
  return entry->second ? &*entry->second : nullptr;
}

}  // namespace heddle::kernel::cuda
