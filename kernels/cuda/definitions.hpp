#pragma once

#include "kernels/kernel.hpp"

/// The CUDA definitions of the tile kernels, for their declarations' tables. No CUDA header is
/// needed to name them; a build without CUDA links without_cuda.cpp, whose definitions abort.
namespace heddle::kernel::cuda {

// kernels/cholesky.hpp
void potrf(const CudaLaunch& launch);
void trsm(const CudaLaunch& launch);
void gsmm(const CudaLaunch& launch);
void syrk(const CudaLaunch& launch);

// kernels/solve.hpp
void solve_lower(const CudaLaunch& launch);
void solve_lower_transposed(const CudaLaunch& launch);
void solve_upper(const CudaLaunch& launch);
void product(const CudaLaunch& launch);
void product_transposed(const CudaLaunch& launch);
void product_symmetric(const CudaLaunch& launch);
void subtract(const CudaLaunch& launch);
void copy(const CudaLaunch& launch);

// kernels/qr.hpp
void geqrt(const CudaLaunch& launch);
void unmqr(const CudaLaunch& launch);
void unmqr_back(const CudaLaunch& launch);
void tsqrt(const CudaLaunch& launch);
void tsmqr(const CudaLaunch& launch);
void tsmqr_back(const CudaLaunch& launch);
void ttqrt(const CudaLaunch& launch);
void ttmqr(const CudaLaunch& launch);
void ttmqr_back(const CudaLaunch& launch);
void copy_rows(const CudaLaunch& launch);
void copy_triangle(const CudaLaunch& launch);

}  // namespace heddle::kernel::cuda
