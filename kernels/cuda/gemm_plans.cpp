#include "kernels/cuda/gemm_plans.hpp"

#include <algorithm>
#include <cstdint>
#include <fmt/core.h>
#include <library_types.h>

#include "kernels/cuda/context.hpp"
#include "kernels/cuda/libraries.hpp"

namespace heddle::kernel::cuda {
namespace {

/// Sums of fewer terms are cuBLAS's own choice.
constexpr int depth_min = 256;
constexpr int offers_max = 64;

template <class T>
T attribute(const cublasLtMatmulAlgo_t& algorithm, cublasLtMatmulAlgoConfigAttributes_t which) {
  T value{};
  std::size_t written = 0;
  check(cublas_lt().algorithm_attribute(&algorithm, which, &value, sizeof value, &written),
        "cublasLtMatmulAlgoConfigGetAttribute");
  return value;
}

/// Splitting the sum costs traffic, and reproducibility where it depends on the GPU's load.
bool splits_sum(const cublasLtMatmulAlgo_t& algorithm) {
  return attribute<std::int32_t>(algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM) > 1;
}

/// Its tile and stages, which tell the kernels apart.
ProductChoice kernel_of(const cublasLtMatmulAlgo_t& algorithm) {
  ProductChoice kernel;
  kernel.tile =
      static_cast<std::int32_t>(attribute<std::uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_TILE_ID));
  kernel.stages = static_cast<std::int32_t>(
      attribute<std::uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_STAGES_ID));
  return kernel;
}

bool is_kernel(const cublasLtMatmulAlgo_t& algorithm, const ProductChoice& choice) {
  const ProductChoice kernel = kernel_of(algorithm);
  return kernel.tile == choice.tile && kernel.stages == choice.stages && !splits_sum(algorithm);
}

/// A GPU that is current for a while, with a handle of its own.
class LibraryOnGpu {
 public:
  explicit LibraryOnGpu(int gpu) {
    check(cudaGetDevice(&former_), "cudaGetDevice");
    check(cudaSetDevice(gpu), "cudaSetDevice");
    check(cublas_lt().create(&handle_), "cublasLtCreate");
  }
  LibraryOnGpu(const LibraryOnGpu&) = delete;
  LibraryOnGpu& operator=(const LibraryOnGpu&) = delete;
  ~LibraryOnGpu() {
    static_cast<void>(cublas_lt().destroy(handle_));
    static_cast<void>(cudaSetDevice(former_));
  }
  [[nodiscard]] cublasLtHandle_t handle() const { return handle_; }

 private:
  int former_ = 0;
  cublasLtHandle_t handle_ = nullptr;
};

}  // namespace

GemmDescription::GemmDescription(const GemmShape& shape) {
  const bool plain_a = shape.transa == CUBLAS_OP_N;
  const bool plain_b = shape.transb == CUBLAS_OP_N;
  const auto extent = [](bool plain, int first, int second) {
    return static_cast<std::uint64_t>(plain ? first : second);
  };
  check(cublas_lt().initialise_operation(&operation, sizeof operation, CUBLAS_COMPUTE_64F,
                                         CUDA_R_64F),
        "cublasLtMatmulDescInit");
  check(cublas_lt().set_operation_attribute(&operation, CUBLASLT_MATMUL_DESC_TRANSA, &shape.transa,
                                            sizeof shape.transa),
        "cublasLtMatmulDescSetAttribute");
  check(cublas_lt().set_operation_attribute(&operation, CUBLASLT_MATMUL_DESC_TRANSB, &shape.transb,
                                            sizeof shape.transb),
        "cublasLtMatmulDescSetAttribute");
  check(cublas_lt().initialise_matrix(&a, sizeof a, CUDA_R_64F, extent(plain_a, shape.m, shape.k),
                                      extent(plain_a, shape.k, shape.m), shape.lda),
        "cublasLtMatrixLayoutInit");
  check(cublas_lt().initialise_matrix(&b, sizeof b, CUDA_R_64F, extent(plain_b, shape.k, shape.n),
                                      extent(plain_b, shape.n, shape.k), shape.ldb),
        "cublasLtMatrixLayoutInit");
  check(cublas_lt().initialise_matrix(&c, sizeof c, CUDA_R_64F, static_cast<std::uint64_t>(shape.m),
                                      static_cast<std::uint64_t>(shape.n), shape.ldc),
        "cublasLtMatrixLayoutInit");
}

std::vector<cublasLtMatmulAlgo_t> offered_algorithms(cublasLtHandle_t handle,
                                                     const GemmShape& shape,
                                                     std::size_t workspace_bytes, int count_max) {
  GemmDescription d(shape);
  cublasLtMatmulPreference_t wanted = nullptr;
  check(cublas_lt().create_preference(&wanted), "cublasLtMatmulPreferenceCreate");
  check(cublas_lt().set_preference_attribute(wanted, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                             &workspace_bytes, sizeof workspace_bytes),
        "cublasLtMatmulPreferenceSetAttribute");
  std::vector<cublasLtMatmulHeuristicResult_t> offers(static_cast<std::size_t>(count_max));
  int count = 0;
  const cublasStatus_t status = cublas_lt().algorithms(handle, &d.operation, &d.a, &d.b, &d.c, &d.c,
                                                       wanted, count_max, offers.data(), &count);
  static_cast<void>(cublas_lt().destroy_preference(wanted));
  std::vector<cublasLtMatmulAlgo_t> result;
  if (status != CUBLAS_STATUS_SUCCESS) return result;
  offers.resize(static_cast<std::size_t>(count));
  for (const auto& offer : offers) {
    if (offer.state == CUBLAS_STATUS_SUCCESS) result.push_back(offer.algo);
  }
  return result;
}

const ProductChoice* GemmPlans::choice_for(const GemmShape& shape) const {
  const bool is_update = shape.transa == CUBLAS_OP_N && shape.transb == CUBLAS_OP_T;
  if (!is_update || shape.k < depth_min) return nullptr;
  const ProductChoice* choice = nullptr;
  for (const ProductChoice& next : choices_) {
    if (std::min(shape.m, shape.n) >= next.size_min) choice = &next;
  }
  return choice;
}

const cublasLtMatmulAlgo_t* GemmPlans::algorithm(cublasLtHandle_t handle, const GemmShape& shape,
                                                 std::size_t workspace_bytes) {
  const ProductChoice* choice = choice_for(shape);
  if (choice == nullptr || choice->is_library()) return nullptr;
  const auto [entry, is_new] = chosen_.try_emplace(shape);
  if (is_new) {
    const auto offers = offered_algorithms(handle, shape, workspace_bytes, offers_max);
    const auto found = std::find_if(offers.begin(), offers.end(), [choice](const auto& offer) {
      return is_kernel(offer, *choice);
    });
    if (found != offers.end()) entry->second = *found;
  }
  return entry->second ? &*entry->second : nullptr;
}

ProductChoices built_in_product_choices() {
  return {{.size_min = 1536,
           .tile = CUBLASLT_MATMUL_TILE_64x128,
           .stages = CUBLASLT_MATMUL_STAGES_16x3}};
}

std::string product_library() {
  const std::size_t version = cublas_lt().version();
  return fmt::format("cuBLAS {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

ProductChoices product_candidates(std::int32_t gpu, std::int32_t size, std::int32_t count_max) {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || gpu >= count) {
    static_cast<void>(cudaGetLastError());
    return {};
  }
  const LibraryOnGpu library(gpu);
  const GemmShape shape{CUBLAS_OP_N, CUBLAS_OP_T, size, size, size, size, size, size};
  ProductChoices candidates;
  for (const auto& offer :
       offered_algorithms(library.handle(), shape, blas_workspace_bytes, offers_max)) {
    const ProductChoice kernel = kernel_of(offer);
    const bool is_known =
        std::find(candidates.begin(), candidates.end(), kernel) != candidates.end();
    if (is_known || kernel.is_library() || splits_sum(offer)) continue;
    if (candidates.size() < static_cast<std::size_t>(count_max)) candidates.push_back(kernel);
  }
  return candidates;
}

}  // namespace heddle::kernel::cuda
