#pragma once

#include <cstdint>

#include "kernels/cuda/context.hpp"
#include "kernels/kernel.hpp"

/// Launches of heddle's own CUDA kernels. Nothing is checked here but the launch: fmt, which
/// assertions print with, does not compile under nvcc. Sizes along which blocks are counted fit an
/// int.
namespace heddle::kernel::cuda {

/// to := from, and to -= from; shapes equal.
void launch_copy(Context& context, const TileView& from, const TileView& to);
void launch_subtract(Context& context, const TileView& from, const TileView& to);

/// The inverse blocks (kernels/kernels.hpp) of the lower triangle of l.
void launch_invert_diagonal_blocks(Context& context, const TileView& l, const TileView& inverses);

/// What cuSOLVER's potrf of a, of which `*status` is the devInfo, tells becomes LAPACK's info where
/// the host sees it, if that is zero. A pivot that is not a number counts, whatever cuSOLVER says.
void launch_report(Context& context, const TileView& a, const int* status, std::int64_t* info);

}  // namespace heddle::kernel::cuda
