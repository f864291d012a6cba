#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// Which of cuBLAS's kernels large products take, and what there is to choose from. Plain values
/// and no CUDA header, so that measured choices can be handed down to the GPUs from anywhere; a
/// build without CUDA links without_cuda.cpp, which offers no choice.
namespace heddle::kernel::cuda {

/// The implementation of products with at least that many rows and columns. The numbers are
/// cublasLt's (cublasLtMatmulTile_t, cublasLtMatmulStages_t); tile 0: what cuBLAS chooses itself.
struct ProductChoice {
  std::int32_t size_min = 0;
  std::int32_t tile = 0;
  std::int32_t stages = 0;

  [[nodiscard]] bool is_library() const { return tile == 0; }

  friend bool operator==(const ProductChoice&, const ProductChoice&) = default;
};

/// Choices by rising `size_min`; smaller products than the first one's are cuBLAS's own choice.
using ProductChoices = std::vector<ProductChoice>;

/// The default, measured. cuBLAS chooses for short runs; in long ones the power
/// limit rules, and a kernel that moves less data for each operation lets the clock stay higher:
/// 51.4 instead of 47.5 TFLOP/s for tiles of 4096 on an H200 (bench/dgemm_gpu).
[[nodiscard]] ProductChoices built_in_product_choices();

/// The library that products run on, with its version: "cuBLAS 13.1.0". Choices hold for one
/// version: another may number or build its kernels differently. Empty without CUDA.
[[nodiscard]] std::string product_library();

/// The different kernels that the library offers for C := C - A B^T with square tiles of `size` on
/// a GPU (CUDA's number), those that it thinks best first; at most `count_max`. Empty where it
/// offers none, or there is no such GPU. Throws Error(internal) when CUDA fails.
[[nodiscard]] ProductChoices product_candidates(std::int32_t gpu, std::int32_t size,
                                                std::int32_t count_max);

}  // namespace heddle::kernel::cuda
