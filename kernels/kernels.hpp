#pragma once

#include <array>
#include <cstdint>

#include "kernels/kernel.hpp"

/// The tile kernels: their parameters, what each one computes, and the one list of them
/// (HEDDLE_KERNELS), from which come their declarations, the declarations of their CUDA definitions
/// (kernels/cuda/definitions.hpp), the stubs of a build without CUDA, and the table of kernels that
/// machines are measured by. kernels/README.md says how to add one.
///
/// Tiles come in the order of the task's accesses, the main output first. All sizes may be 0;
/// leading dimensions are at least max(1, rows) and fit an int. Shapes that do not match are
/// defects and abort. Kernels use `blas()` (kernels/cpu/blas.hpp) on the calling thread only, at
/// most 256 KiB of stack and, for QR, two scratch buffers per thread. They give the same bits for
/// the same input, wherever the tiles lie and whatever their leading dimensions. Each returns 0
/// unless said otherwise.
namespace heddle::kernel {

/// First column of a diagonal tile's piece within its wide column; 0 for square tiles.
///
/// A *piece* of width w is a tile of w columns that begins at column `offset` of its wide column. A
/// piece of a diagonal tile is stored with all rows of its tile. In a lower triangular or symmetric
/// matrix its rows above `offset` and the strictly upper part of the w x w block at row `offset`
/// are zero, and every kernel leaves them untouched: L11 is the lower triangle of that block, L21
/// the rows beneath it. In an upper triangular matrix, U11 is the upper triangle of that block, U01
/// the rows above it, and nothing below is read.
struct PieceParameters {
  std::int64_t offset = 0;
};

/// First row of tile2 that takes part.
struct UpdateParameters {
  std::int64_t row = 0;
};

/// What a product adds up: for an element a of the matrix and the element x that it meets.
enum class Term : std::int64_t {
  product,    ///< a x
  magnitude,  ///< |a| x, for 1-norms
  square,     ///< (a x)^2, for 2-norms; product_transposed only
};

/// `offset` as in PieceParameters; `accumulate` 0 overwrites the output, otherwise adds to it.
struct ProductParameters {
  std::int64_t offset = 0;
  std::int64_t accumulate = 1;
  Term term = Term::product;
};

/// How a panel of QR lies in the tiles that its kernels see.
struct PanelParameters {
  std::int64_t first = 0;  ///< first row of the tile that takes part
  std::int64_t row = 0;    ///< first row of the panel in R's tile
  std::int64_t inner = 1;  ///< columns of a block of reflectors
};

/// How elements of a generated matrix come about, from numbers of their rows and columns
/// (generate).
enum class ElementKind : std::int16_t {
  uniform,   ///< random in (-1, 1)
  scaled,    ///< the same times the column's number
  combined,  ///< a combination of up to three uniform columns, and some of another one
  powers,    ///< the row's number to the power of the column's index
  ratio,     ///< min(i, j) / max(i, j), counted from 1
  identity,
  low_rank,     ///< a diagonal minus a matrix of rank 4
  matern_half,  ///< Matern correlations of points, smoothness 1/2, 3/2, 5/2
  matern_three_halves,
  matern_five_halves,
};

/// How many numbers generate has for each column and each row of a matrix of this kind.
struct ElementNumbers {
  std::int64_t of_column = 0;
  std::int64_t of_row = 0;
};
[[nodiscard]] constexpr ElementNumbers numbers_of(ElementKind kind) {
  switch (kind) {
    case ElementKind::uniform:
    case ElementKind::ratio:
    case ElementKind::identity:
      break;
    case ElementKind::scaled:
      return {1, 0};
    case ElementKind::combined:
      return {8, 0};
    case ElementKind::powers:
      return {0, 1};
    case ElementKind::low_rank:
      return {4, 5};
    case ElementKind::matern_half:
    case ElementKind::matern_three_halves:
    case ElementKind::matern_five_halves:
      return {4, 2};
  }
  return {};
}

struct GenerateParameters {
  std::uint64_t seed = 0;
  std::int64_t row = 0;     ///< of the tile's first element
  std::int64_t column = 0;  ///< likewise
  std::int32_t offset = 0;  ///< as in PieceParameters
  ElementKind kind = ElementKind::uniform;
  std::int16_t is_lower = 0;  ///< not 0: zeros above the diagonal of the matrix
};

/// # Cholesky and its verification (001 section 3.1)
///
/// *Inverse blocks* of a factored piece of width w: a tile of `inner` x w, inner at least 1, that
/// beside L11 holds the inverses of its diagonal blocks of `inner` columns from the left, the last
/// perhaps narrower. A block of `count` columns has its inverse, a lower triangle, in rows [0,
/// count) of its columns; all else is zero. They turn the triangular solve of trsm, which is slow
/// on GPUs, into products.
///
/// **potrf** PieceParameters. tile0 (rows x w, in/out): L11 := Cholesky factor of the w x w block
/// at row `offset` (lower part read and written), L21 := L21 * inv(L11)^T. 001's POTF2'. tile1
/// (inner x w, out), which may be left out, := the inverse blocks of L11. Returns 0, or LAPACK's
/// info: the first column (from 1, within the piece) whose pivot is not positive or not a number;
/// the content of both tiles is undefined then, tile0's upper part excepted. Its failing element is
/// that pivot.
///
/// **trsm** PieceParameters. tile0 (m x w, in/out) := tile0 * inv(L11)^T, L11 of tile1 (a factored
/// piece). tile2 (inner x w), which may be left out: the inverse blocks of L11. The host does not
/// read it.
///
/// **gsmm** UpdateParameters. tile0 (m x w', in/out) -= tile1 (m x w) * (rows [row, row + w') of
/// tile2)^T, tile2 with w columns.
///
/// **syrk** PieceParameters of tile0. tile0 (m x w', in/out) is a diagonal tile's piece, tile1 (m x
/// w): rows from `offset` of tile0 -= tile1 * (rows [offset, offset + w') of tile1)^T, in the w' x
/// w' block only the lower part.
///
/// # QR (001 sections 3 and 7.2.2): Householder reflectors in compact WY form
///
/// A *panel* is a tile column of w columns. In each tile below the diagonal of the panel its
/// reflectors V stand in the tile itself, R in a tile of its own, so that R may move on while V is
/// still read. A tile is tall where it is a virtual tile: v square tiles treated as one. In a tile
/// that the diagonal passes through, rows from `first` on take part, and V is unit lower
/// trapezoidal there; its upper part keeps a copy of R that is not read. In tiles below, V is a
/// full tile under an identity that is not stored.
///
/// Reflectors come in blocks of `inner` columns, the last one perhaps narrower. T (inner x w) holds
/// the upper triangular factor of each block at its columns, so that a block is I - V T V^T; what
/// is below these triangles is zero. Q is the product of the blocks from left to right.
///
/// R, and the rows that Q^T changes beside it, pass down the panel from tile to tile. A kernel with
/// an additional last tile (in) takes R from there: rows [row, row + w) of tile1 are then only an
/// output. Of a triangle it reads the elements on and above the diagonal: only these travel between
/// nodes. Columns of any scale that double holds are safe. All take PanelParameters.
///
/// **geqrt** tile0 (m x w, in/out), rows from `first`: V below the diagonal; tile1 (in/out): R in
/// rows [row, row + w) of its w columns, zeros below R's diagonal there; tile2 (inner x w, out): T.
/// As many active rows as columns at least.
///
/// **unmqr** C := Q^T C. tile0 = C (m x n, in/out) rows from `first`; tile1 (in/out): rows [row,
/// row
/// + w) := the first w of these rows; tile2 = V (m x w), tile3 = T of geqrt.
///
/// **unmqr_back** The other way: the first w active rows of tile0 are taken from rows [row, row +
/// w) of tile1 (in), then C := Q C.
///
/// **tsqrt** R and a tile under it. tile0 (m x w, in/out): any tile, then V; tile1 (in/out): R in
/// rows [row, row + w); tile2 (inner x w, out): T.
///
/// **tsmqr** [D; C] := Q^T [D; C]. tile0 = C (m x n, in/out); D = rows [row, row + w) of tile1
/// (in/out); tile2 = V (m x w), tile3 = T of tsqrt.
///
/// **tsmqr_back** [D; C] := Q [D; C], tiles as for tsmqr.
///
/// **ttqrt** Two triangles, R and another one under it. tile0 (rows [0, w) of w columns, out): V,
/// an upper triangle, zeros below it there; tile1 (out): R in rows [row, row + w), zeros below its
/// diagonal there; tile2 (inner x w, out): T; tile3 (in): R and tile4 (in): the other triangle,
/// both in rows [row, row + w), where nothing below the diagonal is read.
///
/// **ttmqr** [D; C] := Q^T [D; C], D and C with as many rows as the panel has columns. tile0
/// (in/out): rows [0, w) := the new C; tile1 (out): rows [row, row + w) := the new D; tile2 = V
/// (its upper triangle is read), tile3 = T of ttqrt; tile4 (in): D and tile5 (in): C in rows [row,
/// row + w).
///
/// **ttmqr_back** [D; C] := Q [D; C]. tile0 (out): rows [row, row + w) := the new C; tile1 (out):
/// the same rows := the new D; tile2 and tile3 as for ttmqr; tile4 (in): D in rows [row, row + w);
/// tile5 (in): C in rows [0, w).
///
/// **copy_rows** Rows [row, row + inner) of tile0 (in/out) := the same rows of tile1, with as many
/// columns.
///
/// **copy_triangle** Rows [row, row + inner) of tile0 (in/out) := the upper triangle of the same
/// rows of tile1, which has `inner` columns, and zeros below it.
///
/// # Triangular solves, and products with a few columns
///
/// **solve_lower** PieceParameters of tile1. tile0 = X (rows x nrhs, in/out), tile1 = L (rows x w):
/// X1 := inv(L11) X1 with X1 = rows [offset, offset + w), then rows below: X2 -= L21 X1.
///
/// **solve_lower_transposed** PieceParameters of tile1. tile0 = X (rows x nrhs, in/out):
/// X1 := inv(L11)^T (X1 - L21^T X2).
///
/// **solve_upper** PieceParameters of tile1. tile0 = X (rows x nrhs, in/out), tile1 = U (rows x w):
/// X1 := inv(U11) X1, then the rows above: X0 -= U01 X1.
///
/// **product** ProductParameters. tile0 (m x nrhs) (+)= tile1 (m x w) * rows [offset, offset + w)
/// of tile2.
///
/// **product_transposed** ProductParameters. Rows [offset, offset + w) of tile0 (+)= (w x m,
/// tile1^T) * tile2 (m x nrhs). Without `accumulate` the other rows of tile0 stay as they are.
///
/// **product_symmetric** ProductParameters. tile1 (rows x w) is a piece of a symmetric diagonal
/// tile whose lower part is stored: tile0 (rows x nrhs) (+)= (stored columns and their mirror
/// image) * tile2 (rows x nrhs). Over all pieces of the tile this makes the full symmetric product.
/// Rows above `offset` and the upper part of tile1 are not read.
///
/// All three add up the `term` of their parameters in place of each product of two elements.
///
/// **subtract** No parameters. tile0 (in/out) -= tile1, shapes equal.
///
/// **copy** No parameters. tile0 (out) := tile1, shapes equal.
///
/// # Generated matrices
///
/// **generate** GenerateParameters. tile0 (m x w, out) := a part of a generated matrix. A tile with
/// the numbers of its columns follows, in rows [offset, offset + w), then one with those of its m
/// rows, each if the kind has such (numbers_of). The same bits on every processor and GPU.
/// - scaled: its scale.
/// - combined: how many columns are combined, or -1 for a uniform column; their indices (3), their
///   coefficients (3), the factor of the uniform column of this index.
/// - powers: the row's base.
/// - low_rank: r0 to r3 of a column; l0 to l3 of a row, and the diagonal element.
/// - matern: x, y of the column's point, the scale of distances, the diagonal element; x, y of the
///   row's point.

// clang-format off
/// The kernels that machines are measured by: kernels of factorizations that count operations.
#define HEDDLE_MEASURED_KERNELS(KERNEL) \
  KERNEL(potrf)                        \
  KERNEL(trsm)                         \
  KERNEL(syrk)                         \
  KERNEL(gsmm)                         \
  KERNEL(geqrt)                        \
  KERNEL(tsqrt)                        \
  KERNEL(ttqrt)                        \
  KERNEL(unmqr)                        \
  KERNEL(tsmqr)                        \
  KERNEL(ttmqr)
/// All kernels.
#define HEDDLE_KERNELS(KERNEL)         \
  HEDDLE_MEASURED_KERNELS(KERNEL)      \
  KERNEL(unmqr_back)                   \
  KERNEL(tsmqr_back)                   \
  KERNEL(ttmqr_back)                   \
  KERNEL(copy_rows)                    \
  KERNEL(copy_triangle)                \
  KERNEL(solve_lower)                  \
  KERNEL(solve_lower_transposed)       \
  KERNEL(solve_upper)                  \
  KERNEL(product)                      \
  KERNEL(product_transposed)           \
  KERNEL(product_symmetric)            \
  KERNEL(subtract)                     \
  KERNEL(copy)                         \
  KERNEL(generate)
// clang-format on

#define HEDDLE_DECLARE_KERNEL(name) extern const Kernel name;
HEDDLE_KERNELS(HEDDLE_DECLARE_KERNEL)
#undef HEDDLE_DECLARE_KERNEL

/// Parts of potrf and of ttqrt that only their fine-grain forms run, on the host.
extern const Kernel inverse_blocks;
extern const Kernel ttqrt_panel;
extern const Kernel ttmqr_panel;

}  // namespace heddle::kernel

namespace heddle {

#define HEDDLE_KERNEL_ADDRESS(name) &kernel::name,
inline constexpr auto factorization_kernels =
    std::to_array<const Kernel*>({HEDDLE_MEASURED_KERNELS(HEDDLE_KERNEL_ADDRESS)});
#undef HEDDLE_KERNEL_ADDRESS

}  // namespace heddle
