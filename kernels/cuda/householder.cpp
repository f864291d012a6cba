#include "kernels/cuda/householder.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include "base/assert.hpp"
#include "kernels/cuda/gemm.hpp"
#include "kernels/cuda/householder_panel.hpp"
#include "kernels/cuda/triangles.hpp"
#include "kernels/reflector_blocks.hpp"

namespace heddle::kernel::cuda {
namespace {

/// Columns within which single panels update what is right of them. Past that whole blocks of at
/// least this many reflectors do, with which products reach most of their speed.
constexpr std::int64_t base_columns = joined_columns_max;

void check_t(const TileView& t, std::int64_t columns, std::int64_t inner) {
  HEDDLE_CHECK(t.rows >= std::min(inner, columns) && t.columns >= columns,
               "T of {} x {} for {} reflectors in blocks of {}", t.rows, t.columns, columns, inner);
}

/// Pieces of the context's scratch memory, each aligned as the whole is.
template <std::size_t n>
std::array<double*, n> scratch_pieces(Context& context, const std::array<std::int64_t, n>& counts) {
  constexpr std::int64_t alignment = 32;
  std::array<std::int64_t, n> begins{};
  std::int64_t end = 0;
  for (std::size_t i = 0; i < n; ++i) {
    begins[i] = end;
    end += (counts[i] + alignment - 1) / alignment * alignment;
  }
  double* memory = context.scratch(static_cast<std::size_t>(end));
  std::array<double*, n> pieces{};
  for (std::size_t i = 0; i < n; ++i) pieces[i] = memory + begins[i];
  return pieces;
}

/// A matrix without gaps.
TileView packed(double* memory, std::int64_t rows, std::int64_t columns) {
  return {memory, rows, columns, std::max<std::int64_t>(rows, 1)};
}

/// c := alpha * a * b + beta * c.
void add_product(Context& context, double alpha, const TileView& a, const TileView& b, double beta,
                 const TileView& c) {
  HEDDLE_CHECK(a.rows == c.rows && a.columns == b.rows && b.columns == c.columns,
               "{} x {} * {} x {} to {} x {}", a.rows, a.columns, b.rows, b.columns, c.rows,
               c.columns);
  gemm(context, CUBLAS_OP_N, CUBLAS_OP_N, c.rows, c.columns, a.columns, alpha, a.data, a.leading,
       b.data, b.leading, beta, c.data, c.leading);
}

/// c := alpha * a^T * b + beta * c.
void add_transposed_product(Context& context, double alpha, const TileView& a, const TileView& b,
                            double beta, const TileView& c) {
  HEDDLE_CHECK(a.columns == c.rows && a.rows == b.rows && b.columns == c.columns,
               "({} x {})^T * {} x {} to {} x {}", a.rows, a.columns, b.rows, b.columns, c.rows,
               c.columns);
  gemm(context, CUBLAS_OP_T, CUBLAS_OP_N, c.rows, c.columns, a.rows, alpha, a.data, a.leading,
       b.data, b.leading, beta, c.data, c.leading);
}

/// to := op(t) * from with a triangle of T, whose zeros are multiplied too: a product of a square
/// is faster than one of a triangle.
void multiply_t(Context& context, Side side, const TileView& t, const TileView& from,
                const TileView& to) {
  if (side == Side::transposed) {
    add_transposed_product(context, 1, t, from, 0, to);
  } else {
    add_product(context, 1, t, from, 0, to);
  }
}

/// A panel of tiles while it is factored. V is kept clean, with its ones and zeros, and R apart
/// from it: all products are of whole matrices.
class TileFactorization {
 public:
  enum class Kind : std::uint8_t {
    own,      ///< the tile has the diagonal
    full,     ///< the tile is under R
    triangle  ///< as that, an upper triangle
  };

  TileFactorization(Context& context, Kind kind, const TileView& a, const TileView& r,
                    const TileView& t, std::int64_t inner)
      : context_(context), kind_(kind), a_(a), r_(r), t_(t), inner_(inner) {
    const std::int64_t w = a.columns;
    const std::int64_t product_count = std::min(inner, w) * w;
    const auto exchange_count =
        static_cast<std::int64_t>(panel_exchange_count(context.multiprocessors()));
    const auto [exchange, first, second] =
        scratch_pieces<3>(context, {exchange_count, product_count, product_count});
    clear_elements(context, packed(exchange, exchange_count, 1));
    exchange_ = PanelExchange(exchange);
    first_product_ = first;
    second_product_ = second;
    panel_columns_ =
        panel_columns(kind == Kind::own ? a.rows : a.rows + w, context.multiprocessors());
  }

  void run() {
    const std::int64_t w = a_.columns;
    clear_elements(context_, t_.block(0, 0, t_.rows, w));
    for_blocks(w, inner_, true, [&](Range block) {
      block_begin_ = block.begin;
      factor(block);
      apply(block, {block.end(), w - block.end()});
    });
    if (kind_ == Kind::own) share_r(context_, a_.block(0, 0, w, w), inner_, r_);
  }

 private:
  /// By recursion (Elmroth and Gustavson 2000).
  void factor(Range columns) {
    if (columns.count <= base_columns) return factor_base(columns);
    const std::int64_t half = (columns.count / 2 + base_columns - 1) / base_columns * base_columns;
    const Range left{columns.begin, half};
    const Range right{columns.begin + half, columns.count - half};
    factor(left);
    apply(left, right);
    factor(right);
    join(left, right);
  }

  void factor_base(Range columns) {
    for (std::int64_t begin = columns.begin; begin < columns.end(); begin += panel_columns_) {
      const Range panel{begin, std::min(panel_columns_, columns.end() - begin)};
      factor_panel(context_, panel_of(panel), exchange_);
      apply(panel, {panel.end(), columns.end() - panel.end()});
    }
    if (columns.count <= panel_columns_) return;
    const TileView v = reflectors(columns, rows_of_reflectors(columns));
    const TileView products = packed(first_product_, columns.count, columns.count);
    add_transposed_product(context_, 1, v, v, 0, products);
    join_triangles(context_, products, panel_columns_, t_of(columns));
  }

  [[nodiscard]] Panel panel_of(Range columns) const {
    Panel panel;
    panel.columns = columns.count;
    panel.r = &r_(columns.begin, columns.begin);
    panel.r_leading = r_.leading;
    panel.t = t_of(columns).data;
    panel.t_leading = t_.leading;
    panel.body_leading = a_.leading;
    if (kind_ == Kind::own) {
      panel.head = &a_(columns.begin, columns.begin);
      panel.head_leading = a_.leading;
      panel.body = panel.head + columns.count;
      panel.body_rows = a_.rows - columns.end();
      panel.rows_above = columns.begin - block_begin_;
    } else {
      panel.head = panel.r;
      panel.head_leading = r_.leading;
      panel.head_is_triangle = true;
      panel.body = &a_(0, columns.begin);
      panel.body_rows = rows_of_reflectors(columns).count;
    }
    return panel;
  }

  /// The rows of a_ in which these reflectors are not zero.
  [[nodiscard]] Range rows_of_reflectors(Range columns) const {
    switch (kind_) {
      case Kind::own:
        return {columns.begin, a_.rows - columns.begin};
      case Kind::triangle:
        return {0, std::min(a_.rows, columns.end())};
      case Kind::full:
        break;
    }
    return {0, a_.rows};
  }

  [[nodiscard]] TileView reflectors(Range columns, Range rows) const {
    return a_.block(rows.begin, columns.begin, rows.count, columns.count);
  }

  [[nodiscard]] TileView t_of(Range columns) const {
    return t_.block(columns.begin - block_begin_, columns.begin, columns.count, columns.count);
  }

  /// `columns` := Q^T `columns` with the reflectors of `from`.
  void apply(Range from, Range columns) {
    if (columns.count == 0) return;
    const Range rows = rows_of_reflectors(from);
    const TileView v = reflectors(from, rows);
    const TileView c = reflectors(columns, rows);
    const TileView product = packed(first_product_, from.count, columns.count);
    const TileView change = packed(second_product_, from.count, columns.count);
    const TileView d = kind_ == Kind::own
                           ? TileView{}
                           : r_.block(from.begin, columns.begin, from.count, columns.count);
    if (kind_ != Kind::own) copy_elements(context_, d, product);
    add_transposed_product(context_, 1, v, c, kind_ == Kind::own ? 0 : 1, product);
    multiply_t(context_, Side::transposed, t_of(from), product, change);
    if (kind_ != Kind::own) subtract_elements(context_, change, d);
    add_product(context_, -1, v, change, 1, c);
  }

  /// The block of T between two neighbours: -T1 (V1^T V2) T2.
  void join(Range left, Range right) {
    // Rows in which both are not zero.
    const Range rows = rows_of_reflectors(kind_ == Kind::own ? right : left);
    const TileView product = packed(first_product_, left.count, right.count);
    const TileView half = packed(second_product_, left.count, right.count);
    add_transposed_product(context_, 1, reflectors(left, rows), reflectors(right, rows), 0,
                           product);
    add_product(context_, 1, t_of(left), product, 0, half);
    add_product(context_, -1, half, t_of(right), 0,
                t_.block(left.begin - block_begin_, right.begin, left.count, right.count));
  }

  Context& context_;
  Kind kind_;
  TileView a_;
  TileView r_;
  TileView t_;
  std::int64_t inner_;
  PanelExchange exchange_{nullptr};
  double* first_product_ = nullptr;
  double* second_product_ = nullptr;
  std::int64_t panel_columns_ = 0;
  std::int64_t block_begin_ = 0;  ///< first column of the block of `inner` in hand
};

}  // namespace

void factor_tile(Context& context, const TileView& a, const TileView& r, const TileView& t,
                 std::int64_t inner) {
  HEDDLE_CHECK(a.rows >= a.columns && r.rows == a.columns && r.columns == a.columns,
               "a panel of {} x {}, R of {} x {}", a.rows, a.columns, r.rows, r.columns);
  check_t(t, a.columns, inner);
  if (a.columns == 0) return;
  TileFactorization(context, TileFactorization::Kind::own, a, r, t, inner).run();
}

void factor_tile_below(Context& context, const TileView& r, const TileView& a, const TileView& t,
                       std::int64_t inner, Below below) {
  HEDDLE_CHECK(r.rows == a.columns && r.columns == a.columns, "R of {} x {} for a panel of {} x {}",
               r.rows, r.columns, a.rows, a.columns);
  check_t(t, a.columns, inner);
  if (a.columns == 0) return;
  const auto kind =
      below == Below::triangle ? TileFactorization::Kind::triangle : TileFactorization::Kind::full;
  TileFactorization(context, kind, a, r, t, inner).run();
}

void apply_tile(Context& context, Side side, const TileView& v, const TileView& t,
                std::int64_t inner, const TileView& c) {
  const std::int64_t w = v.columns;
  HEDDLE_CHECK(v.rows == c.rows && v.rows >= w, "reflectors of {} x {} on {} x {}", v.rows, w,
               c.rows, c.columns);
  check_t(t, w, inner);
  if (w == 0 || c.columns == 0) return;
  const std::int64_t k = std::min(inner, w);
  const auto [head_memory, first, second] =
      scratch_pieces<3>(context, {k * w, k * c.columns, k * c.columns});
  // V's own head holds what others are free to change.
  const TileView heads = packed(head_memory, k, w);
  copy_unit_heads(context, v.block(0, 0, w, w), inner, heads);
  for_blocks(w, inner, side == Side::transposed, [&](Range block) {
    const std::int64_t below = v.rows - block.end();
    const TileView v1 = heads.block(0, block.begin, block.count, block.count);
    const TileView v2 = v.block(block.end(), block.begin, below, block.count);
    const TileView c1 = c.block(block.begin, 0, block.count, c.columns);
    const TileView c2 = c.block(block.end(), 0, below, c.columns);
    const TileView product = packed(first, block.count, c.columns);
    const TileView change = packed(second, block.count, c.columns);
    add_transposed_product(context, 1, v1, c1, 0, product);
    add_transposed_product(context, 1, v2, c2, 1, product);
    multiply_t(context, side, t.block(0, block.begin, block.count, block.count), product, change);
    add_product(context, -1, v1, change, 1, c1);
    add_product(context, -1, v2, change, 1, c2);
  });
}

void apply_tile_below(Context& context, Side side, const TileView& v, const TileView& t,
                      std::int64_t inner, Below below, const TileView& d, const TileView& c) {
  const std::int64_t w = v.columns;
  HEDDLE_CHECK(v.rows == c.rows && d.rows == w && d.columns == c.columns,
               "reflectors of {} x {} on {} x {} and {} x {}", v.rows, w, d.rows, d.columns, c.rows,
               c.columns);
  check_t(t, w, inner);
  if (w == 0 || c.columns == 0) return;
  const std::int64_t k = std::min(inner, w);
  const bool triangle = below == Below::triangle;
  const auto [triangle_memory, first, second] =
      scratch_pieces<3>(context, {triangle ? w * w : 0, k * c.columns, k * c.columns});
  TileView clean = v;
  if (triangle) {
    clean = packed(triangle_memory, w, w);
    copy_upper_triangle(context, v, clean);
  }
  for_blocks(w, inner, side == Side::transposed, [&](Range block) {
    const std::int64_t rows = triangle ? block.end() : v.rows;
    const TileView v1 = clean.block(0, block.begin, rows, block.count);
    const TileView c1 = c.block(0, 0, rows, c.columns);
    const TileView d1 = d.block(block.begin, 0, block.count, c.columns);
    const TileView product = packed(first, block.count, c.columns);
    const TileView change = packed(second, block.count, c.columns);
    copy_elements(context, d1, product);
    add_transposed_product(context, 1, v1, c1, 1, product);
    multiply_t(context, side, t.block(0, block.begin, block.count, block.count), product, change);
    subtract_elements(context, change, d1);
    add_product(context, -1, v1, change, 1, c1);
  });
}

}  // namespace heddle::kernel::cuda
