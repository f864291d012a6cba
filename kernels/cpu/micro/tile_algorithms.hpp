#pragma once

// Compiled once per instruction set (avx2.cpp, avx512.cpp), each with its own compiler flags.
// Everything is in an unnamed namespace and nothing of the standard library is instantiated: an
// inline function that the linker merges would otherwise drag wide instructions into code that
// runs on every processor.

#include <cstddef>
#include <cstdint>

namespace {

/// The three level-3 operations of a tile Cholesky, in vectors of `Width` doubles, `VectorsMax` of
/// them down a block and `ColumnsMax` columns across.
///
/// A block stays in registers while all its inner products run over k. Every element sees its
/// products in the order k = 0, 1, 2, ... with one rounding each (fused multiply and subtract), so
/// the result depends neither on the vectors nor on how the loops around are cut: all
/// instantiations give the same bits.
///
/// A chunk of rows of the left factor is packed (it is read once per block of columns and fits the
/// first-level cache); the other factor is read in place, about one cache line per k.
template <std::size_t Width, std::size_t VectorsMax, std::size_t ColumnsMax>
struct TileAlgorithms {
  using Size = std::int64_t;
  using Vector [[gnu::vector_size(Width * 8), gnu::aligned(8), gnu::may_alias]] = double;

  static constexpr std::size_t chunk_max = Width * VectorsMax;
  /// Columns of the left factor in one pass: 24 rows of them take 36 KiB.
  static constexpr std::size_t depth_max = 192;
  /// Largest triangle solved in one pass; its solved columns are the packed left factor.
  static constexpr std::size_t triangle_max = 256;
  /// Rows of the right factor copied at a time where its columns collide in the caches.
  static constexpr std::size_t copied_max = 64;

  struct Matrix {
    const double* data;
    Size leading;
  };

  static Size smaller(Size a, Size b) { return a < b ? a : b; }

  /// sum -= x * y^T with x (Vectors * Width rows) x k and y columns x k. `packed`, when not null,
  /// gets x with its columns side by side: the loads of the first block hide behind its arithmetic.
  template <std::size_t Vectors, std::size_t Columns>
  [[gnu::always_inline]] static void accumulate(Vector (&sum)[Columns][Vectors], Size k, Matrix x,
                                                Matrix y, double* packed) {
    for (Size p = 0; p < k; ++p) {
      Vector xp[Vectors];
      for (std::size_t v = 0; v < Vectors; ++v) {
        xp[v] = *reinterpret_cast<const Vector*>(x.data + v * Width);
      }
      for (std::size_t j = 0; j < Columns; ++j) {
        for (std::size_t v = 0; v < Vectors; ++v) sum[j][v] -= xp[v] * y.data[j];
      }
      if (packed != nullptr) {
        for (std::size_t v = 0; v < Vectors; ++v) {
          *reinterpret_cast<Vector*>(packed + v * Width) = xp[v];
        }
        packed += Vectors * Width;
      }
      x.data += x.leading;
      y.data += y.leading;
    }
  }

  template <std::size_t Vectors, std::size_t Columns>
  [[gnu::always_inline]] static void load(Vector (&sum)[Columns][Vectors], const double* c,
                                          Size ldc) {
    for (std::size_t j = 0; j < Columns; ++j, c += ldc) {
      for (std::size_t v = 0; v < Vectors; ++v) {
        sum[j][v] = *reinterpret_cast<const Vector*>(c + v * Width);
      }
    }
  }

  template <std::size_t Vectors, std::size_t Columns>
  [[gnu::always_inline]] static void store(const Vector (&sum)[Columns][Vectors], double* c,
                                           Size ldc) {
    for (std::size_t j = 0; j < Columns; ++j, c += ldc) {
      for (std::size_t v = 0; v < Vectors; ++v) {
        *reinterpret_cast<Vector*>(c + v * Width) = sum[j][v];
      }
    }
  }

  template <std::size_t Vectors, std::size_t Columns>
  [[gnu::always_inline]] static void update_block(Size k, Matrix x, Matrix y, double* c, Size ldc,
                                                  double* packed = nullptr) {
    Vector sum[Columns][Vectors];
    load(sum, c, ldc);
    accumulate(sum, k, x, y, packed);
    store(sum, c, ldc);
  }

  /// Any part of a block: `rows` rows, `columns` columns, and of these only the elements (i, j)
  /// with i + shift >= j. Runs on a copy.
  template <std::size_t Vectors>
  static void update_part(Size rows, Size columns, Size shift, Size k, Matrix x, Matrix y,
                          double* c, Size ldc) {
    constexpr Size chunk = Vectors * Width;
    alignas(64) double copy[Vectors * Width * ColumnsMax] = {};
    for (Size j = 0; j < columns; ++j) {
      for (Size i = 0; i < rows; ++i) copy[i + j * chunk] = c[i + j * ldc];
    }
    if (columns == static_cast<Size>(ColumnsMax)) {
      update_block<Vectors, ColumnsMax>(k, x, y, copy, chunk);
    } else {
      for (Size j = 0; j < columns; ++j) {
        update_block<Vectors, 1>(k, x, {y.data + j, y.leading}, copy + j * chunk, chunk);
      }
    }
    for (Size j = 0; j < columns; ++j) {
      for (Size i = j > shift ? j - shift : 0; i < rows; ++i) c[i + j * ldc] = copy[i + j * chunk];
    }
  }

  /// Copies rows x k into columns of `chunk` elements, zeros below.
  static void pack(Size rows, Size chunk, Size k, Matrix a, double* packed) {
    for (Size p = 0; p < k; ++p, a.data += a.leading, packed += chunk) {
      for (Size i = 0; i < rows; ++i) packed[i] = a.data[i];
      for (Size i = rows; i < chunk; ++i) packed[i] = 0;
    }
  }

  /// Up to Vectors * Width rows of an update: c (rows x n) -= a * b^T where i + shift >= j.
  template <std::size_t Vectors>
  static void update_rows(Size rows, Size n, Size k, Matrix a, Matrix b, double* c, Size ldc,
                          Size shift) {
    constexpr Size chunk = Vectors * Width;
    constexpr Size step = ColumnsMax;
    alignas(64) double packed[Vectors * Width * depth_max];
    const Matrix x{packed, chunk};
    Size j = 0;
    if (rows == chunk && n >= step && step <= shift + 1) {
      update_block<Vectors, ColumnsMax>(k, a, b, c, ldc, packed);
      j = step;
    } else {
      pack(rows, chunk, k, a, packed);
    }
    for (; j < n && j < rows + shift; j += step) {
      const Size columns = smaller(step, n - j);
      const Matrix y{b.data + j, b.leading};
      double* block = c + j * ldc;
      if (rows == chunk && columns == step && j + step <= shift + 1) {
        update_block<Vectors, ColumnsMax>(k, x, y, block, ldc);
      } else {
        update_part<Vectors>(rows, columns, shift - j, k, x, y, block, ldc);
      }
    }
  }

  /// c (m x n) -= a (m x k) * b^T, b (n x k), k <= depth_max, for elements with i + shift >= j.
  static void update_pass(Size m, Size n, Size k, Matrix a, Matrix b, double* c, Size ldc,
                          Size shift) {
    static_assert(VectorsMax == 3);
    constexpr Size one = Width;
    constexpr Size step = chunk_max;
    for (Size i = 0; i < m; i += step) {
      const Size rows = smaller(step, m - i);
      const Matrix x{a.data + i, a.leading};
      if (rows > 2 * one) {
        update_rows<3>(rows, n, k, x, b, c + i, ldc, shift + i);
      } else if (rows > one) {
        update_rows<2>(rows, n, k, x, b, c + i, ldc, shift + i);
      } else {
        update_rows<1>(rows, n, k, x, b, c + i, ldc, shift + i);
      }
    }
  }

  /// True when columns this far apart share few sets of the caches.
  static bool collides(Size leading) { return leading % 512 == 0; }

  static void update_copied(Size m, Size n, Size k, Matrix a, Matrix b, double* c, Size ldc,
                            Size shift) {
    alignas(64) double copy[copied_max * depth_max];
    constexpr Size step = copied_max;
    for (Size j = 0; j < n; j += step) {
      // Rows above the block's first element need nothing.
      const Size first = j > shift ? j - shift : 0;
      if (first >= m) break;
      const Size columns = smaller(step, n - j);
      pack(columns, step, k, {b.data + j, b.leading}, copy);
      update_pass(m - first, columns, k, {a.data + first, a.leading}, {copy, step},
                  c + first + j * ldc, ldc, shift + first - j);
    }
  }

  static void update(Size m, Size n, Size k, Matrix a, Matrix b, double* c, Size ldc, Size shift) {
    constexpr Size depth_limit = depth_max;
    constexpr Size few_rows = 2 * chunk_max;
    Size passes = (k + depth_limit - 1) / depth_limit;
    for (; passes > 0; --passes) {
      // Equal passes: 320 goes as 160 + 160, not as 192 + 128.
      const Size depth = (k + passes - 1) / passes;
      if (collides(b.leading) && m > few_rows) {
        update_copied(m, n, depth, a, b, c, ldc, shift);
      } else {
        update_pass(m, n, depth, a, b, c, ldc, shift);
      }
      a.data += depth * a.leading;
      b.data += depth * b.leading;
      k -= depth;
    }
  }

  /// Columns [k, k + Columns) of a chunk: subtracts what the k solved columns contribute, then
  /// solves with the Columns x Columns triangle in registers. l starts at row k of the triangle.
  template <std::size_t Vectors, std::size_t Columns>
  [[gnu::always_inline]] static void solve_block(Size k, Matrix l, const double* inverse,
                                                 double* solved, double* b, Size ldb) {
    constexpr Size chunk = Vectors * Width;
    Vector sum[Columns][Vectors];
    load(sum, b, ldb);
    accumulate(sum, k, {solved, chunk}, l, nullptr);
    const double* column = l.data + k * l.leading;
    for (std::size_t j = 0; j < Columns; ++j, column += l.leading) {
      for (std::size_t v = 0; v < Vectors; ++v) sum[j][v] *= inverse[j];
      for (std::size_t i = j + 1; i < Columns; ++i) {
        for (std::size_t v = 0; v < Vectors; ++v) sum[i][v] -= sum[j][v] * column[i];
      }
    }
    store(sum, b, ldb);
    store(sum, solved + k * chunk, chunk);
  }

  /// Vectors * Width rows of b (x n) := b * inv(l)^T.
  template <std::size_t Vectors>
  static void solve_chunk(Size n, Matrix l, const double* inverse, double* b, Size ldb) {
    alignas(64) double solved[Vectors * Width * triangle_max];
    constexpr Size step = ColumnsMax;
    Size j = 0;
    for (; j + step <= n; j += step) {
      solve_block<Vectors, ColumnsMax>(j, {l.data + j, l.leading}, inverse + j, solved, b + j * ldb,
                                       ldb);
    }
    for (; j < n; ++j) {
      solve_block<Vectors, 1>(j, {l.data + j, l.leading}, inverse + j, solved, b + j * ldb, ldb);
    }
  }

  /// Fewer rows than a vector has: on a copy.
  static void solve_copied(Size rows, Size n, Matrix l, const double* inverse, double* b,
                           Size ldb) {
    constexpr Size chunk = Width;
    alignas(64) double copy[Width * triangle_max];
    pack(rows, chunk, n, {b, ldb}, copy);
    solve_chunk<1>(n, l, inverse, copy, chunk);
    for (Size j = 0; j < n; ++j) {
      for (Size i = 0; i < rows; ++i) b[i + j * ldb] = copy[i + j * chunk];
    }
  }

  static void solve_pass(Size m, Size n, Matrix l, double* b, Size ldb) {
    constexpr Size one = Width;
    constexpr Size step = chunk_max;
    double inverse[triangle_max];
    for (Size j = 0; j < n; ++j) inverse[j] = 1 / l.data[j + j * l.leading];
    Size i = 0;
    for (; i + step <= m; i += step) solve_chunk<VectorsMax>(n, l, inverse, b + i, ldb);
    if (i + 2 * one <= m) {
      solve_chunk<2>(n, l, inverse, b + i, ldb);
      i += 2 * one;
    }
    if (i + one <= m) {
      solve_chunk<1>(n, l, inverse, b + i, ldb);
      i += one;
    }
    if (i < m) solve_copied(m - i, n, l, inverse, b + i, ldb);
  }

  static void solve(Size m, Size n, Matrix l, double* b, Size ldb) {
    constexpr Size limit = triangle_max;
    constexpr Size step = ColumnsMax;
    if (n <= limit) {
      solve_pass(m, n, l, b, ldb);
      return;
    }
    const Size half = (n / 2 + step - 1) / step * step;
    solve(m, half, l, b, ldb);
    update(m, n - half, half, {b, ldb}, {l.data + half, l.leading}, b + half * ldb, ldb, n);
    solve(m, n - half, {l.data + half + half * l.leading, l.leading}, b + half * ldb, ldb);
  }

  /// results[j] := x^T a(:, j) for `Columns` columns: 16 sums each, whatever the vectors' width,
  /// then added in halves, so that all instantiations give the same bits.
  template <std::size_t Columns>
  static void dot_block(Size m, const double* x, Matrix a, double* results) {
    constexpr std::size_t lanes = 16;
    constexpr std::size_t vectors = lanes / Width;
    Vector sum[Columns][vectors] = {};
    Size i = 0;
    for (; i + Size{lanes} <= m; i += Size{lanes}) {
      for (std::size_t v = 0; v < vectors; ++v) {
        const Vector xi = *reinterpret_cast<const Vector*>(x + i + v * Width);
        for (std::size_t j = 0; j < Columns; ++j) {
          const double* column = a.data + static_cast<Size>(j) * a.leading;
          sum[j][v] += xi * *reinterpret_cast<const Vector*>(column + i + v * Width);
        }
      }
    }
    for (std::size_t j = 0; j < Columns; ++j) {
      const double* column = a.data + static_cast<Size>(j) * a.leading;
      double part[lanes];
      for (std::size_t v = 0; v < vectors; ++v) {
        for (std::size_t l = 0; l < Width; ++l) part[v * Width + l] = sum[j][v][l];
      }
      for (Size r = i; r < m; ++r) {
        part[r - i] = __builtin_fma(x[r], column[r], part[r - i]);
      }
      for (std::size_t half = lanes / 2; half > 0; half /= 2) {
        for (std::size_t l = 0; l < half; ++l) part[l] += part[l + half];
      }
      results[j] = part[0];
    }
  }

  static void dots_entry(Size m, Size n, const double* x, const double* a, Size lda,
                         double* results) {
    Size j = 0;
    for (; j + 4 <= n; j += 4) dot_block<4>(m, x, {a + j * lda, lda}, results + j);
    for (; j < n; ++j) dot_block<1>(m, x, {a + j * lda, lda}, results + j);
  }

  template <std::size_t Columns>
  static void subtract_block(Size m, const double* x, const double* factors, double* a, Size lda) {
    Size i = 0;
    for (; i + Size{Width} <= m; i += Size{Width}) {
      const Vector xi = *reinterpret_cast<const Vector*>(x + i);
      for (std::size_t j = 0; j < Columns; ++j) {
        Vector& to = *reinterpret_cast<Vector*>(a + static_cast<Size>(j) * lda + i);
        to -= xi * factors[j];
      }
    }
    for (; i < m; ++i) {
      for (std::size_t j = 0; j < Columns; ++j) {
        double& to = a[static_cast<Size>(j) * lda + i];
        to = __builtin_fma(-x[i], factors[j], to);
      }
    }
  }

  static void subtract_multiples_entry(Size m, Size n, const double* x, const double* factors,
                                       double* a, Size lda) {
    Size j = 0;
    for (; j + 4 <= n; j += 4) subtract_block<4>(m, x, factors + j, a + j * lda, lda);
    for (; j < n; ++j) subtract_block<1>(m, x, factors + j, a + j * lda, lda);
  }

  // ---- c += alpha a^T b ------------------------------------------------------------------------
  //
  // Inner products along the columns, in eight sums whatever the vectors' width, so that all
  // instantiations give the same bits: lanes l and l + 4 are added first, then l and l + 2, then
  // the last two. Rows are cut into chunks, whose products are added to c in turn: a chunk of a
  // fits the second-level cache, that of a few columns of b the first.

  static constexpr std::size_t lanes = 8;
  static constexpr std::size_t parts = lanes / Width;
  static constexpr Size inner_chunk = 512;
  static constexpr Size inner_width = 128;  ///< columns of a at one time
  static constexpr std::size_t inner_columns = VectorsMax * 2 * Width / lanes;  ///< of b: 6 or 3
  static constexpr std::size_t inner_rows = 4 * Width / lanes;                  ///< of a: 4 or 2

  using Four [[gnu::vector_size(32), gnu::aligned(8), gnu::may_alias]] = double;
  using FourIndices [[gnu::vector_size(32)]] = long long;

  static Four halves_of(const Vector (&sum)[parts]) {
    if constexpr (parts == 2) {
      return sum[0] + sum[1];
    } else {
      const auto& all = reinterpret_cast<const Four(&)[2]>(sum);
      return all[0] + all[1];
    }
  }

  /// The sums of four times four lanes.
  static Four add_lanes(Four a, Four b, Four c, Four d) {
    constexpr FourIndices low{0, 4, 1, 5};
    constexpr FourIndices high{2, 6, 3, 7};
    const Four ab = __builtin_shuffle(a, b, low) + __builtin_shuffle(a, b, high);
    const Four cd = __builtin_shuffle(c, d, low) + __builtin_shuffle(c, d, high);
    constexpr FourIndices first{0, 1, 4, 5};
    constexpr FourIndices second{2, 3, 6, 7};
    return __builtin_shuffle(ab, cd, first) + __builtin_shuffle(ab, cd, second);
  }

  /// c (Rows x Columns) += alpha * (k rows of Rows columns of a)^T (k rows of Columns columns of
  /// b). First: a comes from memory, and the block after this one is asked for.
  template <std::size_t Rows, std::size_t Columns, bool First>
  [[gnu::always_inline]] static void inner_block(Size k, double alpha, Matrix a, Matrix b,
                                                 double* c, Size ldc) {
    Vector sum[Rows * Columns][parts] = {};
    Size p = 0;
    for (; p + Size{lanes} <= k; p += Size{lanes}) {
      for (std::size_t part = 0; part < parts; ++part) {
        const Size at = p + static_cast<Size>(part * Width);
        Vector left[Rows];
        for (std::size_t i = 0; i < Rows; ++i) {
          const double* from = a.data + static_cast<Size>(i) * a.leading + at;
          left[i] = *reinterpret_cast<const Vector*>(from);
          if constexpr (First) __builtin_prefetch(from + static_cast<Size>(Rows) * a.leading);
        }
        for (std::size_t j = 0; j < Columns; ++j) {
          const Vector right =
              *reinterpret_cast<const Vector*>(b.data + static_cast<Size>(j) * b.leading + at);
          for (std::size_t i = 0; i < Rows; ++i) sum[j * Rows + i][part] += left[i] * right;
        }
      }
    }
    if constexpr (Rows == 4) {
      if (p == k) {  // each sum of four is a piece of a column of c
        for (std::size_t j = 0; j < Columns; ++j) {
          Four* to = reinterpret_cast<Four*>(c + static_cast<Size>(j) * ldc);
          *to += alpha * add_lanes(halves_of(sum[4 * j]), halves_of(sum[4 * j + 1]),
                                   halves_of(sum[4 * j + 2]), halves_of(sum[4 * j + 3]));
        }
        return;
      }
    }
    double products[(Rows * Columns + 3) / 4 * 4];
    for (std::size_t v = 0; v < Rows * Columns; v += 4) {
      Four four[4] = {};
      for (std::size_t l = 0; l < 4 && v + l < Rows * Columns; ++l) four[l] = halves_of(sum[v + l]);
      *reinterpret_cast<Four*>(products + v) = add_lanes(four[0], four[1], four[2], four[3]);
    }
    for (std::size_t j = 0; j < Columns; ++j) {
      for (std::size_t i = 0; i < Rows; ++i) {
        double product = products[j * Rows + i];
        const double* left = a.data + static_cast<Size>(i) * a.leading;
        const double* right = b.data + static_cast<Size>(j) * b.leading;
        for (Size r = p; r < k; ++r) product = __builtin_fma(left[r], right[r], product);
        double& to = c[static_cast<Size>(i) + static_cast<Size>(j) * ldc];
        to = __builtin_fma(alpha, product, to);
      }
    }
  }

  /// Columns of b at one time, all of a.
  template <std::size_t Columns, bool First>
  static void inner_columns_of(Size m, Size k, double alpha, Matrix a, Matrix b, double* c,
                               Size ldc) {
    constexpr Size step = inner_rows;
    Size i = 0;
    for (; i + step <= m; i += step) {
      inner_block<inner_rows, Columns, First>(k, alpha, {a.data + i * a.leading, a.leading}, b,
                                              c + i, ldc);
    }
    for (; i < m; ++i) {
      inner_block<1, Columns, false>(k, alpha, {a.data + i * a.leading, a.leading}, b, c + i, ldc);
    }
  }

  /// The last `count` columns of b, at most Most.
  template <std::size_t Most>
  static void inner_rest(Size count, Size m, Size k, double alpha, Matrix a, Matrix b, double* c,
                         Size ldc) {
    if constexpr (Most > 0) {
      if (count == static_cast<Size>(Most))
        return inner_columns_of<Most, false>(m, k, alpha, a, b, c, ldc);
      inner_rest<Most - 1>(count, m, k, alpha, a, b, c, ldc);
    }
  }

  static void inner_entry(Size m, Size n, Size k, double alpha, const double* a, Size lda,
                          const double* b, Size ldb, double* c, Size ldc) {
    constexpr Size chunk = inner_chunk;
    constexpr Size columns = inner_width;
    constexpr Size step = inner_columns;
    for (Size p = 0; p < k; p += chunk) {
      const Size depth = smaller(chunk, k - p);
      for (Size i = 0; i < m; i += columns) {
        const Size width = smaller(columns, m - i);
        const Matrix left{a + p + i * lda, lda};
        double* to = c + i;
        Size j = 0;
        if (step <= n) {
          inner_columns_of<inner_columns, true>(width, depth, alpha, left, {b + p, ldb}, to, ldc);
          j = step;
        }
        for (; j + step <= n; j += step) {
          inner_columns_of<inner_columns, false>(width, depth, alpha, left, {b + p + j * ldb, ldb},
                                                 to + j * ldc, ldc);
        }
        inner_rest<inner_columns - 1>(n - j, width, depth, alpha, left, {b + p + j * ldb, ldb},
                                      to + j * ldc, ldc);
      }
    }
  }

  /// The entries of MicroKernels.
  static void update_entry(Size m, Size n, Size k, const double* a, Size lda, const double* b,
                           Size ldb, double* c, Size ldc) {
    update(m, n, k, {a, lda}, {b, ldb}, c, ldc, n);
  }
  static void update_lower_entry(Size m, Size n, Size k, const double* a, Size lda, double* c,
                                 Size ldc) {
    update(m, n, k, {a, lda}, {a, lda}, c, ldc, 0);
  }
  static void solve_entry(Size m, Size n, const double* l, Size ldl, double* b, Size ldb) {
    solve(m, n, {l, ldl}, b, ldb);
  }
};

}  // namespace
