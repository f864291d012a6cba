#include "kernels/cuda/householder_panel.hpp"

#include <algorithm>
#include <cfloat>
#include <cuda_runtime.h>

#include "kernels/cuda/grid_exchange.cuh"

// Column j takes one meeting of all CTAs. They sum the products of the column's part x below the
// diagonal with all columns: with itself it gives the norm, with later columns what the reflector
// v = (1, x / (alpha - beta)) takes from them, with earlier reflectors the next column of T.
//
// A warp's lanes stand in 8 rows by 4 columns: lane (down, across) keeps the elements (down + 8 q,
// across + 4 s) of its warp's rows, q < depth, s < slots, in registers. After every fourth column
// the slots rotate, so that the current column is always in slot 0 and every register's index is
// known to the compiler. `position` s * 4 + across counts columns from the rotation's start.

namespace heddle::kernel::cuda {
namespace {

constexpr int warps = 8;
constexpr int threads = 32 * warps;
constexpr int across_count = 4;
constexpr int down_count = 8;
/// Elements that a thread keeps; with as many other values 255 registers suffice.
constexpr int elements = 64;
/// CTAs that a panel takes if it can: other streams keep the other multiprocessors.
constexpr int ctas_preferred = 64;
constexpr int width_max = 32;
constexpr int width_min = 16;

template <int width>
constexpr std::int64_t cta_rows = warps* down_count*(elements / (width / across_count));

/// Below this a sum of squares of a column near 1 has lost bits to underflow.
constexpr double square_min = 0x1p-800;
/// From here on alpha's square overflows, and the part below alpha is nothing beside it.
constexpr double dominant_min = 1e150;

struct Launch {
  Panel panel;
  GridWords* words;
  std::uint32_t epoch;
};

struct Sum {
  __device__ __forceinline__ double operator()(double a, double b) const { return a + b; }
};
struct Maximum {
  __device__ __forceinline__ double operator()(double a, double b) const { return fmax(a, b); }
};
struct Nothing {
  __device__ __forceinline__ void operator()() const {}
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

/// What threads of a CTA share. Arrays of two alternate by the epoch's parity: a warp may be in the
/// next epoch while another one still reads this one's.
template <int width>
struct Shared {
  double partial[2][warps][width];  ///< a warp's share, by position
  double gathered[warps][width];    ///< what a warp has received, by position
  double row[2][width];             ///< the head's row of the current column, by position
  double factor[warps][width];      ///< a warp's copy of what later columns lose, by position
  double common[width];             ///< what the last reflector has in common, by column
  double t[width][width];           ///< T by columns
  int exponent[width];              ///< of the power of two that a column was divided by
};

struct Reflector {
  double beta;
  double tau;
  double inverse;  ///< 1 / (alpha - beta)
};

/// The rows of a chunk that a lane keeps: first + 8 q. `near` counts them from the head's top if
/// the head may be among them, otherwise it is past any head.
struct Rows {
  static constexpr int far = 1 << 20;
  std::int64_t first;
  int near;
};

/// A thread's part. With `resident` the CTAs' registers hold the whole panel; otherwise chunks of
/// it pass through them once per column.
template <int width, bool resident>
class Factorization {
 public:
  __device__ __forceinline__ Factorization(const Launch& launch, Shared<width>& shared)
      : p_(launch.panel),
        n_(static_cast<int>(launch.panel.columns)),
        rows_(launch.panel.columns + launch.panel.body_rows),
        words_(launch.words),
        epoch_(launch.epoch),
        shared_(shared),
        lane_(static_cast<int>(threadIdx.x) % 32),
        warp_(static_cast<int>(threadIdx.x) / 32),
        across_(lane_ % across_count),
        down_(lane_ / across_count),
        ctas_(static_cast<int>(gridDim.x)),
        cta_(static_cast<int>(blockIdx.x)) {}

  __device__ __forceinline__ void run() {
    double dots[slots];
    scale(dots);
    Reflector reflector{};
    for (int j = 0; j < n_; ++j) {
      double sum = meet(dots, Sum{}, [&] {
        if (j > 0) extend_t(j - 1, reflector.tau);
      });
      int shift = 0;
      if (__shfl_sync(all, sum, j % across_count) < square_min) shift = rescue(j, sum);
      reflector = reflect(j, sum, shift);
      advance(j, reflector, dots);
    }
    extend_t(n_ - 1, reflector.tau);
    finish();
  }

 private:
  static constexpr unsigned all = 0xffffffffU;
  static constexpr int slots = width / across_count;
  static constexpr int depth = elements / slots;
  static_assert(slots == 4 || slots == 8, "add_down() leaves one position per lane, or per pair");

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
      const std::int64_t step = ctas_ * cta_rows<width>;
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
    const std::int64_t index = chunk * ctas_ + cta_;
    return {index * cta_rows<width> + warp_ * (down_count * depth) + down_,
            index == 0 && warp_ == 0 ? down_ : Rows::far};
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
      const int column = column_at(s * across_count + across_);
#pragma unroll
      for (int q = 0; q < depth; ++q) {
        const std::int64_t row = rows.first + q * down_count;
        a_[q][s] = is_stored(row, column) ? *address(row, column) : 0.0;
      }
    }
  }

  /// The state between two columns, back to where it was loaded from.
  __device__ __forceinline__ void store(const Rows& rows, int base) const {
#pragma unroll
    for (int s = 0; s < slots; ++s) {
      const int column = (base + s) % slots * across_count + across_;
#pragma unroll
      for (int q = 0; q < depth; ++q) {
        const std::int64_t row = rows.first + q * down_count;
        if (is_stored(row, column)) *address(row, column) = a_[q][s];
      }
    }
  }

  /// x_ := the elements of column j in this lane's rows.
  __device__ __forceinline__ void broadcast(int j) {
    const int source = down_ * across_count + j % across_count;
#pragma unroll
    for (int q = 0; q < depth; ++q) x_[q] = __shfl_sync(all, a_[q][0], source);
  }

  /// Adds the products of column j's part below the diagonal with all columns.
  __device__ __forceinline__ void add_products(const Rows& rows, int j, double (&dots)[slots]) {
#pragma unroll
    for (int q = 0; q < depth; ++q) {
      const double x = rows.near + q * down_count > j ? x_[q] : 0.0;
#pragma unroll
      for (int s = 0; s < slots; ++s) dots[s] = fma(x, a_[q][s], dots[s]);
    }
  }

  /// For the next meeting: the head's row j, from who keeps it.
  __device__ __forceinline__ void show_row(const Rows& rows, int j) {
    if (rows.near == Rows::far) return;
    double(&row)[width] = shared_.row[(epoch_ + 1) % 2];
#pragma unroll
    for (int q = 0; q < depth; ++q) {
      if (rows.near + q * down_count != j) continue;
#pragma unroll
      for (int s = 0; s < slots; ++s) row[s * across_count + across_] = a_[q][s];
    }
  }

  /// Combines `values` over the lanes of equal `across`, halving their number with each step. With
  /// 8 slots a lane is left with the one whose position is the lane's number, with 4 slots pairs of
  /// lanes are left with the same one.
  template <class Operation>
  [[nodiscard]] __device__ __forceinline__ double add_down(double (&values)[slots],
                                                           Operation operation) const {
#pragma unroll
    for (int bit = down_count / 2, half = slots / 2; bit > 0; bit /= 2, half /= 2) {
      if (half == 0) {
        const double other = __shfl_xor_sync(all, values[0], bit * across_count);
        values[0] = operation(values[0], other);
        continue;
      }
      const bool upper = (down_ & bit) != 0;
#pragma unroll
      for (int i = 0; i < slots / 2; ++i) {
        if (i >= half) break;
        const double keep = upper ? values[i + half] : values[i];
        const double give = upper ? values[i] : values[i + half];
        values[i] = operation(keep, __shfl_xor_sync(all, give, bit * across_count));
      }
    }
    return values[0];
  }

  [[nodiscard]] __device__ __forceinline__ GridWords* slot(int cta) const {
    return words_ + ((epoch_ % 2) * (ctas_ + 1) + cta) * width;
  }

  /// All CTAs combine their `values`, in the same order everywhere; returns those of position
  /// lane % width. Afterwards everybody has the row that show_row() gave. `meanwhile` runs while
  /// other CTAs are waited for.
  template <class Operation, class Meanwhile>
  __device__ __forceinline__ double meet(double (&values)[slots], Operation operation,
                                         const Meanwhile& meanwhile) {
    ++epoch_;
    const int position = lane_ % width;
    double(&partial)[warps][width] = shared_.partial[epoch_ % 2];
    const double mine = add_down(values, operation);
    constexpr int lanes_per_position = 32 / width;
    if (down_ % lanes_per_position == 0) {
      partial[warp_][down_ / lanes_per_position * across_count + across_] = mine;
    }
    __syncthreads();
    double total = partial[0][position];
#pragma unroll
    for (int w = 1; w < warps; ++w) total = operation(total, partial[w][position]);
    if (ctas_ == 1) {
      meanwhile();
      return total;
    }
    double& row = shared_.row[epoch_ % 2][position];
    if (lane_ < width) {
      if (warp_ == 0) send(slot(cta_) + lane_, total, epoch_);
      if (warp_ == 1 && cta_ == 0) send(slot(ctas_) + lane_, row, epoch_);
    }
    meanwhile();
    const double received = gather(position, operation);
    if (lane_ < width) {
      shared_.gathered[warp_][lane_] = received;
      if (warp_ == 0 && cta_ != 0) {
        const GridWords* from = slot(ctas_) + lane_;
        row = receive(from, load_words(from), epoch_);
      }
    }
    __syncthreads();
    total = shared_.gathered[0][position];
#pragma unroll
    for (int w = 1; w < warps; ++w) total = operation(total, shared_.gathered[w][position]);
    return total;
  }

  /// The CTAs' values of a position, combined over every eighth CTA from this warp's number on.
  template <class Operation>
  [[nodiscard]] __device__ __forceinline__ double gather(int position, Operation operation) const {
    constexpr int batch = 4;  // loads under way at a time
    double result = 0;        // neutral: of maxima all are of absolute values
    for (int first = warp_; first < ctas_; first += batch * warps) {
      GridWords words[batch];
#pragma unroll
      for (int i = 0; i < batch; ++i) {
        const int cta = min(first + i * warps, ctas_ - 1);
        words[i] = load_words(slot(cta) + position);
      }
#pragma unroll
      for (int i = 0; i < batch; ++i) {
        const int cta = first + i * warps;
        if (cta >= ctas_) break;
        result = operation(result, receive(slot(cta) + position, words[i], epoch_));
      }
    }
    return result;
  }

  /// Loads the panel, divides each column by the power of two that its largest element has, and
  /// begins the first column.
  __device__ __forceinline__ void scale(double (&dots)[slots]) {
    if constexpr (resident) load(rows_at(0));
    double largest[slots] = {};
    for_chunks(false, [&](const Rows& rows) {
#pragma unroll
      for (int q = 0; q < depth; ++q) {
#pragma unroll
        for (int s = 0; s < slots; ++s) largest[s] = fmax(largest[s], fabs(a_[q][s]));
      }
      show_row(rows, 0);
    });
    const double most = meet(largest, Maximum{}, Nothing{});
    if (warp_ == 0 && lane_ < width) shared_.exponent[lane_] = exponent_of(most);
    __syncthreads();
    clear(dots);
    for_chunks(false, [&](const Rows& rows) {
#pragma unroll
      for (int s = 0; s < slots; ++s) {
        const int exponent = -shared_.exponent[s * across_count + across_];
#pragma unroll
        for (int q = 0; q < depth; ++q) a_[q][s] = times_power(a_[q][s], exponent);
      }
      broadcast(0);
      add_products(rows, 0, dots);
      show_row(rows, 0);
    });
  }

  /// What is below the diagonal of column j is zero, or so small that its squares are not to be
  /// trusted: divides it by the power of two of its largest element, whose exponent it returns, and
  /// replaces the column's products.
  __device__ __forceinline__ int rescue(int j, double& sum) {
    const int current = j % across_count;
    double values[slots] = {};
    for_chunks(false, [&](const Rows& rows) {
      broadcast(j);
#pragma unroll
      for (int q = 0; q < depth; ++q) {
        if (rows.near + q * down_count > j) values[0] = fmax(values[0], fabs(x_[q]));
      }
      show_row(rows, j);
    });
    const double most = __shfl_sync(all, meet(values, Maximum{}, Nothing{}), current);
    if (most == 0) return 0;
    const int exponent = exponent_of(most);
    clear(values);
    for_chunks(false, [&](const Rows& rows) {
      broadcast(j);
#pragma unroll
      for (int q = 0; q < depth; ++q) {
        if (rows.near + q * down_count > j) x_[q] = times_power(x_[q], -exponent);
        if (across_ == current) a_[q][0] = x_[q];
      }
      add_products(rows, j, values);
      show_row(rows, j);
    });
    sum = meet(values, Sum{}, Nothing{});
    return exponent;
  }

  /// The reflector of column j from the products of x * 2^-shift, and what it takes from later
  /// columns; for T, what it has in common with earlier ones.
  __device__ __forceinline__ Reflector reflect(int j, double sum, int shift) {
    const double(&row)[width] = shared_.row[epoch_ % 2];
    const int current = j % across_count;
    const int position = lane_ % width;
    const double square = __shfl_sync(all, sum, current);
    const double alpha = times_power(row[current], -shift);
    Reflector h{row[current], 0, 0};
    if (square != 0) {
      const bool dominant = fabs(alpha) > dominant_min;
      const double norm = dominant ? fabs(alpha) : sqrt(fma(alpha, alpha, square));
      const double beta = -copysign(norm, alpha);
      h.beta = dominant ? -row[current] : times_power(beta, shift);
      h.tau = dominant ? 2 : (beta - alpha) / beta;
      h.inverse = 1 / (alpha - beta);
    }
    const int column = column_at(position);
    const double product = fma(h.inverse, sum, row[position]);
    if (lane_ < width) {
      shared_.factor[warp_][lane_] = column > j ? h.tau * product : 0.0;
      if (keeps_t() && column < j) shared_.common[column] = product;
    }
    __syncwarp();
    return h;
  }

  /// Applies reflector j, puts it in its column's place, and begins column j + 1.
  __device__ __forceinline__ void advance(int j, const Reflector& h, double (&dots)[slots]) {
    const int current = j % across_count;
    const bool rotates = current == across_count - 1;
    double factor[slots];
#pragma unroll
    for (int s = 0; s < slots; ++s) factor[s] = shared_.factor[warp_][s * across_count + across_];
    clear(dots);
    for_chunks(rotates, [&](const Rows& rows) {
      if constexpr (!resident) broadcast(j);
#pragma unroll
      for (int q = 0; q < depth; ++q) {
        const int row = rows.near + q * down_count;
        const double v = row > j ? x_[q] * h.inverse : (row == j ? 1.0 : 0.0);
#pragma unroll
        for (int s = 0; s < slots; ++s) a_[q][s] = fma(-v, factor[s], a_[q][s]);
        if (across_ == current && row >= j) a_[q][0] = row > j ? v : h.beta;
      }
      if (rotates) rotate();
      broadcast(j + 1);
      add_products(rows, j + 1, dots);
      show_row(rows, j + 1);
    });
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

  static __device__ __forceinline__ void clear(double (&values)[slots]) {
#pragma unroll
    for (int s = 0; s < slots; ++s) values[s] = 0;
  }

  /// The warp that makes T, while others wait for other CTAs.
  [[nodiscard]] __device__ __forceinline__ bool keeps_t() const {
    return cta_ == 0 && warp_ == warps - 1;
  }

  /// Column j of T from tau and what earlier reflectors have in common with this one.
  __device__ __forceinline__ void extend_t(int j, double tau) {
    if (!keeps_t()) return;
    const int i = lane_ % width;
    double sum = 0;
#pragma unroll 4
    for (int k = 0; k < j; ++k) sum = fma(shared_.t[k][i], shared_.common[k], sum);
    if (lane_ < width) shared_.t[j][i] = i < j ? -tau * sum : (i == j ? tau : 0.0);
    __syncwarp();
  }

  /// Everything to where it belongs.
  __device__ __forceinline__ void finish() {
    for_chunks(false, [&](const Rows& rows) { deliver(rows); });
    if (keeps_t() && lane_ < n_) {
      for (int j = 0; j < n_; ++j) p_.t[lane_ + j * p_.t_leading] = shared_.t[j][lane_];
    }
    const std::int64_t above = p_.rows_above * n_;
    for (std::int64_t e = cta_ * threads + static_cast<int>(threadIdx.x); e < above;
         e += ctas_ * threads) {
      const std::int64_t row = e % p_.rows_above - p_.rows_above;
      const std::int64_t column = e / p_.rows_above;
      double& element = p_.head[row + column * p_.head_leading];
      p_.r[row + column * p_.r_leading] = element;
      element = 0;
    }
  }

  /// R to `r`, in its scale; what of V is there instead.
  __device__ __forceinline__ void deliver(const Rows& rows) {
#pragma unroll
    for (int s = 0; s < slots; ++s) {
      const int column = column_at(s * across_count + across_);
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
  GridWords* const words_;
  std::uint32_t epoch_;
  Shared<width>& shared_;
  const int lane_;
  const int warp_;
  const int across_;
  const int down_;
  const int ctas_;
  const int cta_;
  int base_ = 0;  ///< how far the slots are rotated
  double a_[depth][slots];
  double x_[depth];  ///< the current column in this lane's rows
};

template <int width, bool resident>
__global__ void __launch_bounds__(threads, 1)
    factor_panel_kernel(const __grid_constant__ Launch launch) {
  __shared__ Shared<width> shared;
  Factorization<width, resident>(launch, shared).run();
}

/// Epochs of one panel at most: one for the scales, and per column one, and two where its part
/// below the diagonal is nearly zero.
constexpr std::uint32_t epochs(std::int64_t columns) {
  return static_cast<std::uint32_t>(1 + 3 * columns);
}

template <int width, bool resident>
void launch_panel(Context& context, const Launch& launch, std::int64_t rows) {
  const std::int64_t ctas = std::min<std::int64_t>((rows + cta_rows<width> - 1) / cta_rows<width>,
                                                   context.multiprocessors());
  Launch copy = launch;
  void* arguments[] = {&copy};
  // Cooperative: the CTAs wait for each other, so that all of them must be running.
  check(cudaLaunchCooperativeKernel(factor_panel_kernel<width, resident>,
                                    dim3(static_cast<unsigned>(ctas)), dim3(threads), arguments, 0,
                                    context.stream()),
        "launch of a QR panel");
}

}  // namespace

std::int64_t panel_columns(std::int64_t rows, int multiprocessors) {
  return rows <= std::min(ctas_preferred, multiprocessors) * cta_rows<width_max> ? width_max
                                                                                 : width_min;
}

std::size_t panel_exchange_count(int multiprocessors) {
  const auto slots = 2 * (static_cast<std::size_t>(multiprocessors) + 1) * width_max;
  return slots * sizeof(GridWords) / sizeof(double);
}

void factor_panel(Context& context, const Panel& panel, PanelExchange& exchange) {
  const std::int64_t rows = panel.columns + panel.body_rows;
  const Launch launch{panel, reinterpret_cast<GridWords*>(exchange.memory_), exchange.epoch_};
  exchange.epoch_ += epochs(panel.columns);
  if (panel.columns > width_min) {
    launch_panel<width_max, true>(context, launch, rows);
  } else if (rows <= context.multiprocessors() * cta_rows<width_min>) {
    launch_panel<width_min, true>(context, launch, rows);
  } else {
    launch_panel<width_min, false>(context, launch, rows);
  }
}

}  // namespace heddle::kernel::cuda
