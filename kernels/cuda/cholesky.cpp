#include <algorithm>

#include "base/assert.hpp"
#include "kernels/cpu/arguments.hpp"
#include "kernels/cuda/definitions.hpp"
#include "kernels/cuda/factor.hpp"
#include "kernels/cuda/launch.hpp"
#include "kernels/cuda/tile_operations.hpp"
#include "kernels/kernels.hpp"

namespace heddle::kernel::cuda {
namespace {

/// Inverse blocks that trsm makes itself, and the narrowest that it takes from others.
constexpr std::int64_t inner_made = 256;
constexpr std::int64_t inner_taken_min = 64;

}  // namespace

void potrf(const CudaLaunch& launch) {
  potrf_by(factor_method(launch.tiles.empty() ? 0 : launch.tiles[0].columns), launch);
}

void trsm(const CudaLaunch& launch) {
  const KernelArguments arguments{launch.tiles, launch.parameters};
  const bool given = check_tiles_and_inverses(arguments, 2);
  const TileView& x = launch.tiles[0];
  const TileView l = split(launch.tiles[1], launch.parameters.as<PieceParameters>().offset).square;
  const std::int64_t w = l.columns;
  HEDDLE_CHECK(x.columns == w, "{} x {} over {} x {}", x.rows, x.columns, w, w);
  if (x.rows == 0 || w == 0) return;
  Context& context = launch.context;
  const std::int64_t solve_count = solve_scratch(x.rows, w);
  if (given && launch.tiles[2].rows >= std::min(inner_taken_min, w)) {
    solve_right_transposed(context, l, launch.tiles[2], x,
                           context.scratch(static_cast<std::size_t>(solve_count)));
    return;
  }
  const std::int64_t inner = std::min(inner_made, w);
  double* memory = context.scratch(static_cast<std::size_t>(solve_count + aligned(inner) * w));
  const TileView inverses{memory + solve_count, inner, w, aligned(inner)};
  invert_diagonal_blocks(context, l, inverses);
  solve_right_transposed(context, l, inverses, x, memory);
}

void gsmm(const CudaLaunch& launch) {
  check_tiles({launch.tiles, launch.parameters}, 3);
  const TileView& c = launch.tiles[0];
  const auto parameters = launch.parameters.as<UpdateParameters>();
  multiply(launch.context, -1, launch.tiles[1], CUBLAS_OP_N,
           rows_of(launch.tiles[2], parameters.row, c.columns), CUBLAS_OP_T, 1, c);
}

void syrk(const CudaLaunch& launch) {
  check_tiles({launch.tiles, launch.parameters}, 2);
  const auto parameters = launch.parameters.as<PieceParameters>();
  const TileView& c = launch.tiles[0];
  const TileView& a = launch.tiles[1];
  HEDDLE_CHECK(c.rows == a.rows, "{} rows -= {} rows", c.rows, a.rows);
  const std::int64_t active = c.rows - parameters.offset;
  update_lower(launch.context, rows_of(c, parameters.offset, active),
               rows_of(a, parameters.offset, active));
}

}  // namespace heddle::kernel::cuda
