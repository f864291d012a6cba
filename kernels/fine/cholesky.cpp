#include "kernels/cholesky.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "kernels/cpu/arguments.hpp"
#include "kernels/cpu/tile_operations.hpp"
#include "kernels/fine/definitions.hpp"
#include "kernels/fine/parts.hpp"
#include "kernels/piece.hpp"

namespace heddle::kernel::fine {
namespace {

constexpr PieceParameters square{};
constexpr UpdateParameters from_first_row{};

/// Of a piece at `offset`, w columns: the diagonal block of columns `j`, and its rows below, by
/// parts.
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

/// The inverse blocks of a factored piece (kernels/cholesky.hpp): tile0 (inner x w') := those of
/// the square tile1.
std::int64_t run_inverses(const KernelArguments& arguments) {
  check_tiles(arguments, 2);
  host::invert_diagonal_blocks(arguments.tiles[1], arguments.tiles[0]);
  return 0;
}
constinit const Kernel inverse_blocks{"inverse_blocks", run_inverses};

/// Each inverse block reads its own diagonal block alone. As many of them are one task as `small`
/// columns hold.
void add_inverses(const PieceParts& p, std::int64_t inner, FineTasks& tasks) {
  const std::int64_t step = std::max<std::int64_t>(1, p.small / inner) * inner;
  for_parts(p.w, step, [&](Range j) {
    tasks.add(inverse_blocks, KernelParameters{},
              {writes({1, 0, j.begin, inner, j.count}), reads(p.area(p.rows_at(j), j))});
  });
}

}  // namespace

void potrf(const KernelCase& what, std::int64_t small, FineTasks& tasks) {
  const OperandShape& shape = what.operands[0];
  const PieceParts p{what.parameters.as<PieceParameters>().offset, shape.rows, shape.columns,
                     small};
  for_parts(p.w, small, [&](Range j) {
    const Range diagonal = p.rows_at(j);
    tasks.add(kernel::potrf, KernelParameters(square), {writes(p.area(diagonal, j))}, j.begin);
    const std::int64_t below = p.rows - diagonal.end();
    for_parts_from(diagonal.end(), below, small, [&](Range i) {
      tasks.add(kernel::trsm, KernelParameters(square),
                {writes(p.area(i, j)), reads(p.area(diagonal, j))});
    });
    for_parts_from(j.end(), p.w - j.end(), small, [&](Range l) {
      const Range at = p.rows_at(l);
      tasks.add(kernel::syrk, KernelParameters(square),
                {writes(p.area(at, l)), reads(p.area(at, j))});
      for_parts_from(at.end(), p.rows - at.end(), small, [&](Range i) {
        tasks.add(kernel::gsmm, KernelParameters(from_first_row),
                  {writes(p.area(i, l)), reads(p.area(i, j)), reads(p.area(at, j))});
      });
    });
  });
  if (what.operands.size() > 1) add_inverses(p, what.operands[1].rows, tasks);
}

void trsm(const KernelCase& what, std::int64_t small, FineTasks& tasks) {
  const std::int64_t offset = what.parameters.as<PieceParameters>().offset;
  const std::int64_t m = what.operands[0].rows;
  const std::int64_t w = what.operands[0].columns;
  const auto x = [](Range i, Range j) { return TileArea{0, i.begin, j.begin, i.count, j.count}; };
  const auto l = [offset](Range i, Range j) {
    return TileArea{1, offset + i.begin, j.begin, i.count, j.count};
  };
  for_parts(w, small, [&](Range j) {
    for_parts(m, small, [&](Range i) {
      tasks.add(kernel::trsm, KernelParameters(square), {writes(x(i, j)), reads(l(j, j))});
    });
    for_parts_from(j.end(), w - j.end(), small, [&](Range c) {
      for_parts(m, small, [&](Range i) {
        tasks.add(kernel::gsmm, KernelParameters(from_first_row),
                  {writes(x(i, c)), reads(x(i, j)), reads(l(c, j))});
      });
    });
  });
}

void gsmm(const KernelCase& what, std::int64_t small, FineTasks& tasks) {
  const std::int64_t row = what.parameters.as<UpdateParameters>().row;
  const std::int64_t inner = what.operands[1].columns;
  for_parts(what.operands[0].columns, small, [&](Range j) {
    for_parts(what.operands[0].rows, small, [&](Range i) {
      tasks.add(
          kernel::gsmm, KernelParameters(from_first_row),
          {writes({0, i.begin, j.begin, i.count, j.count}), reads({1, i.begin, 0, i.count, inner}),
           reads({2, row + j.begin, 0, j.count, inner})});
    });
  });
}

void syrk(const KernelCase& what, std::int64_t small, FineTasks& tasks) {
  const OperandShape& shape = what.operands[0];
  const PieceParts p{what.parameters.as<PieceParameters>().offset, shape.rows, shape.columns,
                     small};
  const std::int64_t inner = what.operands[1].columns;
  const auto a = [inner](Range i) { return TileArea{1, i.begin, 0, i.count, inner}; };
  for_parts(p.w, small, [&](Range j) {
    const Range at = p.rows_at(j);
    tasks.add(kernel::syrk, KernelParameters(square), {writes(p.area(at, j)), reads(a(at))});
    for_parts_from(at.end(), p.rows - at.end(), small, [&](Range i) {
      tasks.add(kernel::gsmm, KernelParameters(from_first_row),
                {writes(p.area(i, j)), reads(a(i)), reads(a(at))});
    });
  });
}

}  // namespace heddle::kernel::fine
