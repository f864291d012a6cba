#include "kernels/cuda/factor.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "kernels/cpu/arguments.hpp"
#include "kernels/cuda/factor_square.hpp"
#include "kernels/cuda/libraries.hpp"
#include "kernels/cuda/own_kernels.hpp"
#include "kernels/cuda/tile_operations.hpp"
#include "kernels/kernels.hpp"

namespace heddle::kernel::cuda {
namespace {

/// Narrower inverse blocks than this make products that are too thin: others are made in scratch
/// memory to work with.
constexpr std::int64_t inner_min = 64;
/// Inverse blocks in scratch memory: wide for large products where they cost nothing, narrower
/// where they are made by a kernel of their own.
constexpr std::int64_t inner_own = 512;
constexpr std::int64_t inner_cusolver = 256;

struct FactorPlan {
  std::int64_t outer;  ///< columns that are factored before the rest is updated
  std::int64_t inner;  ///< of the inverse blocks that the factorization works with; 0: none
  bool in_place;       ///< these are the caller's
};

/// `given` is `inner` of the caller's inverse blocks, 0 without.
FactorPlan plan_own(std::int64_t w, std::int64_t rows_below, std::int64_t given) {
  if (w <= factor_width_max) {
    if (given > 0 && factor_square_gives(given, w)) return {w, given, true};
    if (rows_below == 0) return {w, inner_min, false};
    return {w, std::min(inner_own, (w + inner_min - 1) / inner_min * inner_min), false};
  }
  const bool in_place = given > 0 && given <= factor_width_max && factor_square_gives(given, w);
  const std::int64_t inner = in_place ? given : inner_own;
  return {factor_width_max / inner * inner, inner, in_place};
}

FactorPlan plan_cusolver(std::int64_t w, std::int64_t rows_below, std::int64_t given) {
  if (given > 0 && given >= std::min(inner_min, w)) return {w, given, true};
  return {w, rows_below == 0 ? 0 : std::min(inner_cusolver, w), false};
}

std::int64_t cusolver_scratch(Context& context, const TileView& a) {
  int count = 0;
  check(cusolver().dpotrf_buffer_size(context.solver(), CUBLAS_FILL_MODE_LOWER, to_int(a.columns),
                                      a.data, leading_dimension(a), &count),
        "cusolverDnDpotrf_bufferSize");
  return aligned(count);
}

void factor_cusolver(Context& context, const TileView& a, double* scratch, std::int64_t count,
                     std::int64_t* info) {
  check(cusolver().dpotrf(context.solver(), CUBLAS_FILL_MODE_LOWER, to_int(a.columns), a.data,
                          leading_dimension(a), scratch, to_int(count), context.status()),
        "cusolverDnDpotrf");
  launch_report(context, a, context.status(), info);
}

/// Offsets in scratch memory for the factorization of a piece.
struct FactorMemory {
  double* factor = nullptr;
  std::int64_t factor_count = 0;
  TileView inverses;
  double* solve = nullptr;
};

FactorMemory factor_memory(FactorMethod method, Context& context, const Piece& piece,
                           const FactorPlan& plan, const TileView& given) {
  const std::int64_t w = piece.square.columns;
  const std::int64_t factor_count = method == FactorMethod::own
                                        ? factor_square_scratch(std::min(plan.outer, w))
                                        : cusolver_scratch(context, piece.square);
  const std::int64_t leading = plan.in_place ? 0 : aligned(plan.inner);
  const std::int64_t rows_left = w + piece.below.rows - plan.outer;
  const std::int64_t solve_count = solve_scratch(rows_left, plan.outer);
  double* memory =
      context.scratch(static_cast<std::size_t>(aligned(factor_count) + leading * w + solve_count));
  double* inverses = memory + aligned(factor_count);
  return {
      memory, factor_count,
      plan.in_place ? given : TileView{inverses, plan.inner, w, std::max<std::int64_t>(1, leading)},
      inverses + leading * w};
}

}  // namespace

/// Past this width large products take nearly all of the time, in either implementation.
FactorMethod factor_method(std::int64_t w) {
  return w <= 2 * factor_width_max ? FactorMethod::own : FactorMethod::cusolver;
}

void potrf_by(FactorMethod method, const CudaLaunch& launch) {
  const KernelArguments arguments{launch.tiles, launch.parameters};
  const bool with_inverses = check_tiles_and_inverses(arguments, 1);
  const TileView given = with_inverses ? launch.tiles[1] : TileView{};
  const Piece piece = split(launch.tiles[0], launch.parameters.as<PieceParameters>().offset);
  const std::int64_t w = piece.square.columns;
  if (w == 0) return;
  Context& context = launch.context;
  const bool own = method == FactorMethod::own;
  const FactorPlan plan = own ? plan_own(w, piece.below.rows, given.rows)
                              : plan_cusolver(w, piece.below.rows, given.rows);
  const FactorMemory memory = factor_memory(method, context, piece, plan, given);
  for (std::int64_t begin = 0; begin < w; begin += plan.outer) {
    const std::int64_t count = std::min(plan.outer, w - begin);
    const std::int64_t end = begin + count;
    const TileView square = piece.square.block(begin, begin, count, count);
    const TileView inverses = memory.inverses.block(0, begin, plan.inner, count);
    if (own) {
      HEDDLE_CHECK(count <= factor_width_max && factor_square_gives(plan.inner, count),
                   "{} columns with inverse blocks of {}", count, plan.inner);
      factor_square(context, square, inverses, memory.factor, begin, launch.info);
    } else {
      factor_cusolver(context, square, memory.factor, memory.factor_count, launch.info);
      if (plan.inner > 0) invert_diagonal_blocks(context, square, inverses);
    }
    const std::int64_t rows_left = w - end + piece.below.rows;
    if (rows_left == 0) break;
    const TileView panel = piece.square.block(end, begin, rows_left, count);
    solve_right_transposed(context, square, inverses, panel, memory.solve);
    update_lower(context, piece.square.block(end, end, rows_left, w - end), panel);
  }
  if (with_inverses && !plan.in_place) invert_diagonal_blocks(context, piece.square, given);
}

}  // namespace heddle::kernel::cuda
