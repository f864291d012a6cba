#include "kernels/cuda/householder_panel.hpp"

#include <algorithm>
#include <cfloat>
#include <cuda_runtime.h>

#include "kernels/cuda/grid_meeting.cuh"

// CTAs meet once for up to four columns j, j + 1, ..., which share a slot (below). In a meeting
// they sum, below the four columns' own rows, the products of these columns with all columns, and
// exchange the four rows. From these every CTA eliminates the columns in the same arithmetic. The
// products of column j give: with itself, its norm; with later columns, their update by the
// reflector v = (1, x / (alpha - beta)); with earlier reflectors, the next column of T. The
// products of the other columns after v follow from the products before it. Where that cancels, the
// remaining columns wait for another meeting, so that at most a few bits are lost.
//
// A warp's lanes stand in 8 rows by 4 columns: lane (down, across) keeps the elements (down + 8 q,
// across + 4 s) of its warp's rows, q < depth, s < slots, in registers. After every fourth column
// the slots rotate, so that the current columns are always in slot 0 and every register's index is
// known to the compiler. `position` s * 4 + across counts columns from the rotation's start.

namespace heddle::kernel::cuda {
namespace {

using namespace meeting;

static_assert(group == across_count, "a meeting serves the columns of a slot");

/// CTAs that a panel takes if it can: other streams keep the other multiprocessors.
constexpr int ctas_preferred = 64;
/// Up to this many CTAs, halving their rows saves more time than a meeting of twice as many costs.
constexpr int ctas_quick = 32;
constexpr int width_max = 32;
constexpr int width_min = 16;
/// Most rows of a lane: with the products of a group, 64 elements are what 255 registers have room
/// for.
template <int width>
constexpr int depth_max = 64 / (width / across_count);
/// Where the panel is not resident: no more than keeps the memory busy.
constexpr int depth_of_chunks = 4;

template <int depth>
constexpr std::int64_t cta_rows{warps * down_count * depth};

/// Below this a sum of squares of a column near 1 has lost bits to underflow.
constexpr double square_min = 0x1p-800;
/// From here on alpha's square overflows, and the part below alpha is negligible.
constexpr double dominant_min = 1e150;

/// A norm's square that is this much less than the terms it was computed from is not used.
constexpr double cancellation_max = 0.1;

struct Launch {
  Panel panel;
  GridWords* words;
  std::uint32_t epoch;
};

/// x * 2^exponent, exact unless the result is out of range; |exponent| <= 2000.
__device__ __forceinline__ double times_power(double x, int exponent) {
  const int half = exponent / 2;
  return x * __hiloint2double((1023 + half) << 20, 0) *
         __hiloint2double((1023 + exponent - half) << 20, 0);
}

__device__ __forceinline__ int exponent_of(double largest) {
  return largest > 0 && largest <= DBL_MAX ? ilogb(largest) : 0;
}

struct Reflector {
  double beta;
  double tau;
  double inverse;  ///< 1 / (alpha - beta)
};

/// What threads of a CTA share. What is made of a meeting each warp makes for itself: that needs no
/// __syncthreads.
template <int width>
struct PanelShared {
  Shared<width> meeting;
  double factor[warps][group][width];  ///< what reflectors take from columns, by position
  Reflector reflectors[warps][group];
  double common[group][width];  ///< what reflectors have in common with earlier ones, by column
  double t[width][width];       ///< T by columns
  int exponent[width];          ///< of the power of two that a column was divided by
};

/// The rows of a chunk that a lane keeps: first + 8 q. `near` counts them from the head's top if
/// the head may be among them, otherwise it is past any head.
struct Rows {
  static constexpr int far = 1 << 20;
  std::int64_t first;
  int near;
};

/// A thread's part. With `resident` the CTAs' registers hold the whole panel; otherwise chunks of
/// it pass through them once per meeting.
template <int width, int depth, bool resident>
class Factorization {
 public:
  __device__ __forceinline__ Factorization(const Launch& launch, PanelShared<width>& shared)
      : p_(launch.panel),
        n_(static_cast<int>(launch.panel.columns)),
        rows_(launch.panel.columns + launch.panel.body_rows),
        shared_(shared),
        meeting_(place_, launch.words, launch.epoch, shared.meeting) {}

  __device__ __forceinline__ void run() {
    double products[group][slots];
    scale(products);
    int done = 0;  // columns that the last meeting served
    for (int j = 0; j < n_; j += done) {
      double sums[group];
      meeting_.template meet<group, true>(products, sums, Sum{}, [&] { extend_t(j - done, done); });
      done = eliminate(j, sums);
      apply(j, done, products);
    }
    extend_t(n_ - done, done);
    finish();
  }

 private:
  static constexpr unsigned all = 0xffffffffU;
  static constexpr int slots = width / across_count;
  static_assert(down_count * depth >= width, "the head's rows are in one warp");

  [[nodiscard]] __device__ __forceinline__ int column_at(int position) const {
    return (base_ + position / across_count) % slots * across_count + position % across_count;
  }

  /// Calls `work` for each chunk that this CTA keeps, its elements in registers meanwhile.
  /// `rotates`: work leaves the slots rotated by one.
  template <class Work>
  __device__ __forceinline__ void for_chunks(bool rotates, const Work& work) {
    const int base_after = rotates ? (base_ + 1) % slots : base_;
    if constexpr (resident) {
      work(rows_at(0));
    } else {
      const std::int64_t step = place_.ctas * cta_rows<depth>;
      for (std::int64_t chunk = 0; chunk * step < rows_; ++chunk) {
        const Rows rows = rows_at(chunk);
        load(rows);
        work(rows);
        store(rows, base_after);
      }
    }
    base_ = base_after;
  }

  [[nodiscard]] __device__ __forceinline__ Rows rows_at(std::int64_t chunk) const {
    const std::int64_t index = chunk * place_.ctas + place_.cta;
    return {index * cta_rows<depth> + place_.warp * (down_count * depth) + place_.down,
            index == 0 && place_.warp == 0 ? place_.down : Rows::far};
  }

  [[nodiscard]] __device__ __forceinline__ double* address(std::int64_t row, int column) const {
    return row < n_ ? p_.head + row + column * p_.head_leading
                    : p_.body + (row - n_) + column * p_.body_leading;
  }

  /// Whether the panel's memory has this element: a triangular head ends at its diagonal.
  [[nodiscard]] __device__ __forceinline__ bool is_stored(std::int64_t row, int column) const {
    if (row >= rows_ || column >= n_) return false;
    return !(p_.head_is_triangle && row < n_ && row > column);
  }

  __device__ __forceinline__ void load(const Rows& rows) {
#pragma unroll
    for (int s = 0; s < slots; ++s) {
      const int column = column_at(s * across_count + place_.across);
#pragma unroll
      for (int q = 0; q < depth; ++q) {
        const std::int64_t row = rows.first + q * down_count;
        a_[q][s] = is_stored(row, column) ? *address(row, column) : 0.0;
      }
    }
  }

  /// Stores the panel as it is between two columns, where it was loaded from.
  __device__ __forceinline__ void store(const Rows& rows, int base) const {
#pragma unroll
    for (int s = 0; s < slots; ++s) {
      const int column = (base + s) % slots * across_count + place_.across;
#pragma unroll
      for (int q = 0; q < depth; ++q) {
        const std::int64_t row = rows.first + q * down_count;
        if (is_stored(row, column)) *address(row, column) = a_[q][s];
      }
    }
  }

  /// How many columns from j on share a meeting.
  [[nodiscard]] __device__ __forceinline__ int group_at(int j) const {
    return min(group - j % group, n_ - j);
  }

  /// Row q's element in the column that slot 0 has for `across`.
  [[nodiscard]] __device__ __forceinline__ double in_row(int q, int across) const {
    return __shfl_sync(all, a_[q][0], place_.down * across_count + across % across_count);
  }

  /// For the next meeting: adds the products of the columns from j on, below their own rows, with
  /// all columns, and shows the head's rows of these columns.
  __device__ __forceinline__ void prepare(const Rows& rows, int j,
                                          double (&products)[group][slots]) {
    const int count = group_at(j);
#pragma unroll
    for (int q = 0; q < depth; ++q) {
      const bool below = rows.near + q * down_count >= j + count;
#pragma unroll
      for (int i = 0; i < group; ++i) {
        const double element = in_row(q, j + i);
        const double x = below && i < count ? element : 0.0;
#pragma unroll
        for (int s = 0; s < slots; ++s) products[i][s] = fma(x, a_[q][s], products[i][s]);
      }
    }
    if (rows.near == Rows::far) return;
    auto& shown = meeting_.rows_to_show();
#pragma unroll
    for (int q = 0; q < depth; ++q) {
      const int i = rows.near + q * down_count - j;
      if (i < 0 || i >= count) continue;
#pragma unroll
      for (int s = 0; s < slots; ++s) shown[i][s * across_count + place_.across] = a_[q][s];
    }
  }

  /// Loads the panel, divides each column by the power of two that its largest element has, and
  /// prepares the first meeting for columns.
  __device__ __forceinline__ void scale(double (&products)[group][slots]) {
    if constexpr (resident) load(rows_at(0));
    double largest[1][slots] = {};
    for_chunks(false, [&](const Rows&) {
#pragma unroll
      for (int q = 0; q < depth; ++q) {
#pragma unroll
        for (int s = 0; s < slots; ++s) largest[0][s] = fmax(largest[0][s], fabs(a_[q][s]));
      }
    });
    double most[1];
    meeting_.template meet<1, false>(largest, most, Maximum{}, Nothing{});
    if (place_.warp == 0 && place_.lane < width)
      shared_.exponent[place_.lane] = exponent_of(most[0]);
    __syncthreads();
    clear(products);
    for_chunks(false, [&](const Rows& rows) {
#pragma unroll
      for (int s = 0; s < slots; ++s) {
        const int exponent = -shared_.exponent[s * across_count + place_.across];
#pragma unroll
        for (int q = 0; q < depth; ++q) a_[q][s] = times_power(a_[q][s], exponent);
      }
      prepare(rows, 0, products);
    });
  }

  /// Makes reflectors of columns j, j + 1, ... from what the meeting gave: `sums` of products by
  /// position and the head's rows. Returns how many, at least one.
  __device__ __forceinline__ int eliminate(int j, double (&sums)[group]) {
    const int count = group_at(j);
    const int position = place_.lane % width;
    double rows[group];
    double terms[group];  // of the columns' own squares: what they have cancelled from
#pragma unroll
    for (int i = 0; i < group; ++i) {
      rows[i] = i < count ? meeting_.rows()[i][position] : 0.0;
      terms[i] = __shfl_sync(all, sums[i], (j + i) % across_count);
    }
    for (int done = 0;;) {
      const int own = j % across_count + done;  // the column's position
      double sum = sums[0];
#pragma unroll
      for (int i = 1; i < group; ++i) sum = fma(__shfl_sync(all, rows[i], own), rows[i], sum);
      const double square = __shfl_sync(all, sum, own);
      if (done > 0 && !(square >= square_min && square >= cancellation_max * terms[0])) return done;
      int shift = 0;
      if (square < square_min) shift = rescue(j, sum);
      const Reflector h = reflect(j + done, rows[0], sum, shift, done);
      ++done;
      // What rescue() has changed is not in the other products.
      if (done == count || square < square_min) return done;
      pass_on(h, own, done - 1, rows, sums);
#pragma unroll
      for (int i = 1; i < group; ++i) terms[i - 1] = terms[i];
    }
  }

  /// The rows and the products of the columns that follow become what they are when reflector h, of
  /// the column at position `own`, has been applied; they move to the front.
  __device__ __forceinline__ void pass_on(const Reflector& h, int own, int index,
                                          double (&rows)[group], double (&sums)[group]) const {
    const bool is_own = place_.lane % width == own;
    const double factor = shared_.factor[place_.warp][index][place_.lane % width];
    const double mine = h.inverse * sums[0];                      // v with this lane's column
    const double norm = h.inverse * __shfl_sync(all, mine, own);  // v with itself
#pragma unroll
    for (int i = 1; i < group; ++i) {
      const int other = (own + i) % width;
      const double others = __shfl_sync(all, mine, other);
      const double others_factor = __shfl_sync(all, factor, other);
      const double v = h.inverse * __shfl_sync(all, rows[i], own);
      rows[i - 1] = is_own ? v : fma(-v, factor, rows[i]);
      const double applied = sums[i] - others_factor * fma(-factor, norm, mine) - factor * others;
      sums[i - 1] = is_own ? fma(-others_factor, norm, others) : applied;
    }
    rows[group - 1] = 0;
    sums[group - 1] = 0;
  }

  /// What is below the diagonal of column j is zero, or so small that its squares are not to be
  /// trusted: divides it by the power of two of its largest element, whose exponent it returns, and
  /// replaces the sums of its products with all columns.
  __device__ __forceinline__ int rescue(int j, double& sum) {
    const int current = j % across_count;
    double values[1][slots] = {};
    double result[1];
    for_chunks(false, [&](const Rows& rows) {
#pragma unroll
      for (int q = 0; q < depth; ++q) {
        const double x = in_row(q, current);
        if (rows.near + q * down_count > j) values[0][0] = fmax(values[0][0], fabs(x));
      }
    });
    meeting_.template meet<1, false>(values, result, Maximum{}, Nothing{});
    const double most = __shfl_sync(all, result[0], current);
    if (most == 0) return 0;
    const int exponent = exponent_of(most);
    clear(values);
    for_chunks(false, [&](const Rows& rows) {
#pragma unroll
      for (int q = 0; q < depth; ++q) {
        const bool below = rows.near + q * down_count > j;
        const double element = in_row(q, current);  // all lanes take part
        const double x = below ? times_power(element, -exponent) : 0.0;
        if (below && place_.across == current) a_[q][0] = x;
#pragma unroll
        for (int s = 0; s < slots; ++s) values[0][s] = fma(x, a_[q][s], values[0][s]);
      }
    });
    meeting_.template meet<1, false>(values, result, Sum{}, Nothing{});
    sum = result[0];
    return exponent;
  }

  /// The reflector of column j from its row of the head and the sums of the products of what is
  /// below, which were made with x * 2^-shift; kept as the index-th one for apply() and extend_t().
  __device__ __forceinline__ Reflector reflect(int j, double row, double sum, int shift,
                                               int index) {
    const int current = j % across_count;
    const double square = __shfl_sync(all, sum, current);
    const double diagonal = __shfl_sync(all, row, current);
    const double alpha = times_power(diagonal, -shift);
    Reflector h{diagonal, 0, 0};
    if (square != 0) {
      const bool dominant = fabs(alpha) > dominant_min;
      const double norm = dominant ? fabs(alpha) : sqrt(fma(alpha, alpha, square));
      const double beta = -copysign(norm, alpha);
      h.beta = dominant ? -diagonal : times_power(beta, shift);
      h.tau = dominant ? 2 : (beta - alpha) / beta;
      h.inverse = 1 / (alpha - beta);
    }
    const int column = column_at(place_.lane % width);
    const double product = fma(h.inverse, sum, row);
    if (place_.lane < width) {
      shared_.factor[place_.warp][index][place_.lane] = column > j ? h.tau * product : 0.0;
      if (keeps_t() && column < j) shared_.common[index][column] = product;
    }
    if (place_.lane == 0) shared_.reflectors[place_.warp][index] = h;
    __syncwarp();
    return h;
  }

  /// Applies `count` reflectors from j on, puts them in their columns' place, and prepares the next
  /// meeting.
  __device__ __forceinline__ void apply(int j, int count, double (&products)[group][slots]) {
    const bool rotates = (j + count) % across_count == 0;
    clear(products);
    for_chunks(rotates, [&](const Rows& rows) {
#pragma unroll 1
      for (int i = 0; i < count; ++i) apply_one(rows, j + i, i);
      if (rotates) rotate();
      if (j + count < n_) prepare(rows, j + count, products);
    });
  }

  __device__ __forceinline__ void apply_one(const Rows& rows, int j, int index) {
    const int current = j % across_count;
    const Reflector h = shared_.reflectors[place_.warp][index];
    double factor[slots];
#pragma unroll
    for (int s = 0; s < slots; ++s) {
      factor[s] = shared_.factor[place_.warp][index][s * across_count + place_.across];
    }
#pragma unroll
    for (int q = 0; q < depth; ++q) {
      const int row = rows.near + q * down_count;
      const double x = in_row(q, current);
      const double v = row > j ? x * h.inverse : (row == j ? 1.0 : 0.0);
#pragma unroll
      for (int s = 0; s < slots; ++s) a_[q][s] = fma(-v, factor[s], a_[q][s]);
      if (place_.across == current && row >= j) a_[q][0] = row > j ? v : h.beta;
    }
  }

  __device__ __forceinline__ void rotate() {
#pragma unroll
    for (int q = 0; q < depth; ++q) {
      const double first = a_[q][0];
#pragma unroll
      for (int s = 0; s + 1 < slots; ++s) a_[q][s] = a_[q][s + 1];
      a_[q][slots - 1] = first;
    }
  }

  template <int count>
  static __device__ __forceinline__ void clear(double (&values)[count][slots]) {
#pragma unroll
    for (int i = 0; i < count; ++i) {
#pragma unroll
      for (int s = 0; s < slots; ++s) values[i][s] = 0;
    }
  }

  /// The warp that makes T, while others wait for other CTAs.
  [[nodiscard]] __device__ __forceinline__ bool keeps_t() const {
    return place_.cta == 0 && place_.warp == warps - 1;
  }

  /// Columns [begin, begin + count) of T, those of the last reflectors, from tau and what earlier
  /// reflectors have in common with them.
  __device__ __forceinline__ void extend_t(int begin, int count) {
    if (!keeps_t()) return;
    const int i = place_.lane % width;
    for (int j = begin; j < begin + count; ++j) {
      const double tau = shared_.reflectors[place_.warp][j - begin].tau;
      double sum = 0;
#pragma unroll 4
      for (int k = 0; k < j; ++k) sum = fma(shared_.t[k][i], shared_.common[j - begin][k], sum);
      if (place_.lane < width) shared_.t[j][i] = i < j ? -tau * sum : (i == j ? tau : 0.0);
      __syncwarp();
    }
  }

  /// Stores V, R and T.
  __device__ __forceinline__ void finish() {
    for_chunks(false, [&](const Rows& rows) { deliver(rows); });
    if (keeps_t() && place_.lane < n_) {
      for (int j = 0; j < n_; ++j) p_.t[place_.lane + j * p_.t_leading] = shared_.t[j][place_.lane];
    }
    const std::int64_t above = p_.rows_above * n_;
    for (std::int64_t e = place_.cta * threads + static_cast<int>(threadIdx.x); e < above;
         e += place_.ctas * threads) {
      const std::int64_t row = e % p_.rows_above - p_.rows_above;
      const std::int64_t column = e / p_.rows_above;
      double& element = p_.head[row + column * p_.head_leading];
      p_.r[row + column * p_.r_leading] = element;
      element = 0;
    }
  }

  /// Stores R in `r`, in its scale, and V's elements in its place.
  __device__ __forceinline__ void deliver(const Rows& rows) {
#pragma unroll
    for (int s = 0; s < slots; ++s) {
      const int column = column_at(s * across_count + place_.across);
      const int exponent = shared_.exponent[column];
#pragma unroll
      for (int q = 0; q < depth; ++q) {
        const std::int64_t row = rows.first + q * down_count;
        if (row > column || column >= n_) continue;
        const double r = times_power(a_[q][s], exponent);
        p_.r[row + column * p_.r_leading] = r;
        a_[q][s] = p_.head_is_triangle ? r : (row == column ? 1.0 : 0.0);
      }
    }
    if constexpr (resident) store(rows, base_);
  }

  const Panel& p_;
  const int n_;
  const std::int64_t rows_;
  const Place place_;
  PanelShared<width>& shared_;
  Meeting<width> meeting_;
  int base_ = 0;  ///< how far the slots are rotated
  double a_[depth][slots];
};

template <int width, int depth, bool resident>
__global__ void __launch_bounds__(threads, 1)
    factor_panel_kernel(const __grid_constant__ Launch launch) {
  __shared__ PanelShared<width> shared;
  Factorization<width, depth, resident>(launch, shared).run();
}

/// Epochs of one panel at most: one for the scales, and per column one, and two where its part
/// below the diagonal is nearly zero.
constexpr std::uint32_t epochs(std::int64_t columns) {
  return static_cast<std::uint32_t>(1 + 3 * columns);
}

template <int width, int depth, bool resident>
void launch_panel(Context& context, const Launch& launch, std::int64_t rows) {
  const std::int64_t ctas = std::min<std::int64_t>((rows + cta_rows<depth> - 1) / cta_rows<depth>,
                                                   context.multiprocessors());
  Launch copy = launch;
  void* arguments[] = {&copy};
  // Cooperative: the CTAs wait for each other, so that all of them must be running.
  check(cudaLaunchCooperativeKernel(factor_panel_kernel<width, depth, resident>,
                                    dim3(static_cast<unsigned>(ctas)), dim3(threads), arguments, 0,
                                    context.stream()),
        "launch of a QR panel");
}

}  // namespace

std::int64_t panel_columns(std::int64_t rows, int multiprocessors) {
  return rows <= std::min(ctas_preferred, multiprocessors) * cta_rows<depth_max<width_max>>
             ? width_max
             : width_min;
}

std::size_t panel_exchange_count(int multiprocessors) {
  const auto slots = 2 * (static_cast<std::size_t>(multiprocessors) + 1) * group * width_max;
  return slots * sizeof(GridWords) / sizeof(double);
}

void factor_panel(Context& context, const Panel& panel, PanelExchange& exchange) {
  const std::int64_t rows = panel.columns + panel.body_rows;
  const Launch launch{panel, reinterpret_cast<GridWords*>(exchange.memory_), exchange.epoch_};
  exchange.epoch_ += epochs(panel.columns);
  const int multiprocessors = context.multiprocessors();
  if (panel.columns > width_min &&
      rows <= std::min(ctas_quick, multiprocessors) * cta_rows<depth_max<width_max> / 2>) {
    launch_panel<width_max, depth_max<width_max> / 2, true>(context, launch, rows);
  } else if (panel.columns > width_min) {
    launch_panel<width_max, depth_max<width_max>, true>(context, launch, rows);
  } else if (rows <= multiprocessors * cta_rows<depth_max<width_min>>) {
    launch_panel<width_min, depth_max<width_min>, true>(context, launch, rows);
  } else {
    launch_panel<width_min, depth_of_chunks, false>(context, launch, rows);
  }
}

}  // namespace heddle::kernel::cuda
