#include "kernels/cholesky.hpp"

#include "base/assert.hpp"
#include "kernels/cpu/arguments.hpp"
#include "kernels/cpu/tile_operations.hpp"
#include "kernels/cuda/definitions.hpp"
#include "kernels/fine/definitions.hpp"

namespace heddle::kernel {
namespace {

std::int64_t run_potrf(const KernelArguments& arguments) {
  const bool with_inverses = check_tiles_and_inverses(arguments, 1);
  const auto parameters = arguments.parameters.as<PieceParameters>();
  const Piece piece = split(arguments.tiles[0], parameters.offset);
  if (const std::int64_t info = host::factor(piece.square); info != 0) return info;
  host::solve_right_transposed(piece.square, piece.below);
  if (with_inverses) host::invert_diagonal_blocks(piece.square, arguments.tiles[1]);
  return 0;
}

std::int64_t run_trsm(const KernelArguments& arguments) {
  static_cast<void>(check_tiles_and_inverses(arguments, 2));
  const auto parameters = arguments.parameters.as<PieceParameters>();
  host::solve_right_transposed(split(arguments.tiles[1], parameters.offset).square,
                               arguments.tiles[0]);
  return 0;
}

std::int64_t run_gsmm(const KernelArguments& arguments) {
  check_tiles(arguments, 3);
  const auto parameters = arguments.parameters.as<UpdateParameters>();
  const TileView& c = arguments.tiles[0];
  host::update(c, arguments.tiles[1], rows_of(arguments.tiles[2], parameters.row, c.columns));
  return 0;
}

std::int64_t run_syrk(const KernelArguments& arguments) {
  check_tiles(arguments, 2);
  const auto parameters = arguments.parameters.as<PieceParameters>();
  const TileView& c = arguments.tiles[0];
  const TileView& a = arguments.tiles[1];
  HEDDLE_CHECK(c.rows == a.rows, "{} rows -= {} rows", c.rows, a.rows);
  const std::int64_t active = c.rows - parameters.offset;
  host::update_lower(rows_of(c, parameters.offset, active), rows_of(a, parameters.offset, active));
  return 0;
}

/// potrf's `info` is the first column, from 1, whose pivot is not positive.
TileElement pivot_of_piece(const KernelParameters& parameters, std::int64_t info) {
  return {parameters.as<PieceParameters>().offset + info - 1, info - 1};
}

}  // namespace

// An emulated device computes on the processor too: both definitions are the same function.
constinit const Kernel potrf{"potrf",     run_potrf,   run_potrf,
                             cuda::potrf, fine::potrf, pivot_of_piece};
constinit const Kernel trsm{"trsm", run_trsm, run_trsm, cuda::trsm, fine::trsm};
constinit const Kernel gsmm{"gsmm", run_gsmm, run_gsmm, cuda::gsmm, fine::gsmm};
constinit const Kernel syrk{"syrk", run_syrk, run_syrk, cuda::syrk, fine::syrk};
}  // namespace heddle::kernel
