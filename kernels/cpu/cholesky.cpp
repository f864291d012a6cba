#include <algorithm>

#include "base/assert.hpp"
#include "kernels/cpu/arguments.hpp"
#include "kernels/cpu/defined.hpp"
#include "kernels/cpu/tile_operations.hpp"
#include "kernels/fine/fine_tasks.hpp"
#include "kernels/fine/parts.hpp"
#include "kernels/kernels.hpp"

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

// ---- fine-grain forms --------------------------------------------------------------------------

constexpr PieceParameters square{};
constexpr UpdateParameters from_first_row{};

/// The parts of a piece of w columns at `offset`: columns `j` meet the diagonal in a square, with
/// rows below it.
struct PieceParts {
  std::int64_t offset;
  std::int64_t rows;  ///< of the tile
  std::int64_t w;
  std::int64_t small;

  [[nodiscard]] TileArea area(Range i, Range j) const {
    return {0, i.begin, j.begin, i.count, j.count};
  }
  /// The rows of the block row that meets columns `j` on the diagonal.
  [[nodiscard]] Range rows_at(Range j) const { return {offset + j.begin, j.count}; }
};

/// The inverse blocks of a factored piece (kernels/kernels.hpp): tile0 (inner x w') := those of
/// the square tile1.
std::int64_t run_inverses(const KernelArguments& arguments) {
  check_tiles(arguments, 2);
  host::invert_diagonal_blocks(arguments.tiles[1], arguments.tiles[0]);
  return 0;
}

/// Each inverse block reads only its own diagonal block. One task makes as many of them as `small`
/// columns hold.
void add_inverses(const PieceParts& p, std::int64_t inner, FineTasks& tasks) {
  const std::int64_t step = std::max<std::int64_t>(1, p.small / inner) * inner;
  fine::for_parts(p.w, step, [&](Range j) {
    tasks.add(inverse_blocks, KernelParameters{},
              {writes({1, 0, j.begin, inner, j.count}), reads(p.area(p.rows_at(j), j))});
  });
}

void divide_potrf(const KernelCase& what, std::int64_t small, FineTasks& tasks) {
  const OperandShape& shape = what.operands[0];
  const PieceParts p{what.parameters.as<PieceParameters>().offset, shape.rows, shape.columns,
                     small};
  fine::for_parts(p.w, small, [&](Range j) {
    const Range diagonal = p.rows_at(j);
    tasks.add(potrf, KernelParameters(square), {writes(p.area(diagonal, j))}, j.begin);
    const std::int64_t below = p.rows - diagonal.end();
    fine::for_parts_from(diagonal.end(), below, small, [&](Range i) {
      tasks.add(trsm, KernelParameters(square), {writes(p.area(i, j)), reads(p.area(diagonal, j))});
    });
    fine::for_parts_from(j.end(), p.w - j.end(), small, [&](Range l) {
      const Range at = p.rows_at(l);
      tasks.add(syrk, KernelParameters(square), {writes(p.area(at, l)), reads(p.area(at, j))});
      fine::for_parts_from(at.end(), p.rows - at.end(), small, [&](Range i) {
        tasks.add(gsmm, KernelParameters(from_first_row),
                  {writes(p.area(i, l)), reads(p.area(i, j)), reads(p.area(at, j))});
      });
    });
  });
  if (what.operands.size() > 1) add_inverses(p, what.operands[1].rows, tasks);
}

void divide_trsm(const KernelCase& what, std::int64_t small, FineTasks& tasks) {
  const std::int64_t offset = what.parameters.as<PieceParameters>().offset;
  const std::int64_t m = what.operands[0].rows;
  const std::int64_t w = what.operands[0].columns;
  const auto x = [](Range i, Range j) { return TileArea{0, i.begin, j.begin, i.count, j.count}; };
  const auto l = [offset](Range i, Range j) {
    return TileArea{1, offset + i.begin, j.begin, i.count, j.count};
  };
  fine::for_parts(w, small, [&](Range j) {
    fine::for_parts(m, small, [&](Range i) {
      tasks.add(trsm, KernelParameters(square), {writes(x(i, j)), reads(l(j, j))});
    });
    fine::for_parts_from(j.end(), w - j.end(), small, [&](Range c) {
      fine::for_parts(m, small, [&](Range i) {
        tasks.add(gsmm, KernelParameters(from_first_row),
                  {writes(x(i, c)), reads(x(i, j)), reads(l(c, j))});
      });
    });
  });
}

void divide_gsmm(const KernelCase& what, std::int64_t small, FineTasks& tasks) {
  const std::int64_t row = what.parameters.as<UpdateParameters>().row;
  const std::int64_t inner = what.operands[1].columns;
  fine::for_parts(what.operands[0].columns, small, [&](Range j) {
    fine::for_parts(what.operands[0].rows, small, [&](Range i) {
      tasks.add(
          gsmm, KernelParameters(from_first_row),
          {writes({0, i.begin, j.begin, i.count, j.count}), reads({1, i.begin, 0, i.count, inner}),
           reads({2, row + j.begin, 0, j.count, inner})});
    });
  });
}

void divide_syrk(const KernelCase& what, std::int64_t small, FineTasks& tasks) {
  const OperandShape& shape = what.operands[0];
  const PieceParts p{what.parameters.as<PieceParameters>().offset, shape.rows, shape.columns,
                     small};
  const std::int64_t inner = what.operands[1].columns;
  const auto a = [inner](Range i) { return TileArea{1, i.begin, 0, i.count, inner}; };
  fine::for_parts(p.w, small, [&](Range j) {
    const Range at = p.rows_at(j);
    tasks.add(syrk, KernelParameters(square), {writes(p.area(at, j)), reads(a(at))});
    fine::for_parts_from(at.end(), p.rows - at.end(), small, [&](Range i) {
      tasks.add(gsmm, KernelParameters(from_first_row),
                {writes(p.area(i, j)), reads(a(i)), reads(a(at))});
    });
  });
}

// ---- operations --------------------------------------------------------------------------------

/// Rows below the square of a diagonal tile's piece.
double rows_below(const KernelCase& what) {
  const auto offset = static_cast<double>(what.parameters.as<PieceParameters>().offset);
  return what.rows(0) - offset - what.columns(0);
}
double potrf_flops(const KernelCase& what) {
  const double w = what.columns(0);
  return w * w * w / 3 + rows_below(what) * w * w;
}
double syrk_flops(const KernelCase& what) {
  const double w = what.columns(0);
  return (w + 2 * rows_below(what)) * w * what.columns(1);
}
double trsm_flops(const KernelCase& what) {
  return what.rows(0) * what.columns(0) * what.columns(0);
}
double gsmm_flops(const KernelCase& what) {
  return 2 * what.rows(0) * what.columns(0) * what.columns(1);
}

}  // namespace

constinit const Kernel potrf =
    defined("potrf", run_potrf, cuda::potrf, divide_potrf, potrf_flops, pivot_of_piece);
constinit const Kernel trsm = defined("trsm", run_trsm, cuda::trsm, divide_trsm, trsm_flops);
constinit const Kernel syrk = defined("syrk", run_syrk, cuda::syrk, divide_syrk, syrk_flops);
constinit const Kernel gsmm = defined("gsmm", run_gsmm, cuda::gsmm, divide_gsmm, gsmm_flops);
constinit const Kernel inverse_blocks{.name = "inverse_blocks", .host = run_inverses};

}  // namespace heddle::kernel
