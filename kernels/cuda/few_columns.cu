#include "kernels/cuda/few_columns.hpp"

#include <algorithm>
#include <type_traits>

#include "kernels/cuda/invert_block.cuh"
#include "kernels/cuda/mma.cuh"

namespace heddle::kernel::cuda {
namespace {

using device::block_elements;
using device::block_size;
using device::block_stride;
using device::block_threads;

constexpr int warp_size = 32;
/// Right-hand sides that a thread block takes at once.
constexpr int sides_max = 8;

/// Calls launch(count) with the number of right-hand sides at once as a constant.
template <class Launch>
void for_sides(std::int64_t columns, Launch launch) {
  if (columns == 1) return launch(std::integral_constant<int, 1>());
  if (columns == 2) return launch(std::integral_constant<int, 2>());
  if (columns <= 4) return launch(std::integral_constant<int, 4>());
  launch(std::integral_constant<int, sides_max>());
}

unsigned quotient_up(std::int64_t count, std::int64_t each) {
  return static_cast<unsigned>((count + each - 1) / each);
}

__device__ void store(double& y, double alpha, double sum, double beta) {
  y = beta == 0 ? alpha * sum : alpha * sum + beta * y;
}

/// Which elements of a take part.
enum class Part : std::uint8_t { all, lower, strictly_lower };

template <Term term>
__device__ double value_of(double a, double x) {
  if (term == Term::magnitude) return fabs(a) * x;
  const double product = a * x;
  return term == Term::square ? product * product : product;
}

// ---- a * x -------------------------------------------------------------------------------------

/// A thread block has 32 rows; warp w takes columns w, w + 16, ... of them.
constexpr int row_warps = 16;

template <Term term, Part part, int sides>
__global__ void __launch_bounds__(row_warps* warp_size)
    multiply_kernel(double alpha, TileView a, TileView x, double beta, TileView y) {
  __shared__ double sums[row_warps][sides][warp_size];
  const int lane = static_cast<int>(threadIdx.x) % warp_size;
  const int warp = static_cast<int>(threadIdx.x) / warp_size;
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * warp_size + lane;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.y) * sides;
  const auto count = static_cast<int>(min(static_cast<std::int64_t>(sides), x.columns - first));
  const std::int64_t end = part == Part::all ? a.columns : min(a.columns, i + 1);
  double sum[sides] = {};
  if (i < a.rows) {
    const double* const row = a.data + i;
    const double* const side = x.data + first * x.leading;
#pragma unroll 4
    for (std::int64_t k = warp; k < end; k += row_warps) {
      const double element = row[k * a.leading];
#pragma unroll
      for (int c = 0; c < sides; ++c) {
        if (c < count) sum[c] += value_of<term>(element, side[k + c * x.leading]);
      }
    }
  }
#pragma unroll
  for (int c = 0; c < sides; ++c) sums[warp][c][lane] = sum[c];
  __syncthreads();
  if (i >= a.rows) return;
  for (int c = warp; c < count; c += row_warps) {
    double total = 0;
    for (int w = 0; w < row_warps; ++w) total += sums[w][c][lane];
    store(y.data[i + (first + c) * y.leading], alpha, total, beta);
  }
}

// ---- a^T * x -----------------------------------------------------------------------------------

/// Each warp has two columns of a, of which thread blocks in z have this many rows each.
constexpr int dot_warps = 8;
constexpr int dot_columns = 2 * dot_warps;
constexpr std::int64_t dot_rows = 4096;

/// Columns [first, first + sides) of a^T * x over a part of the rows: added to y, or left in
/// `parts`, a.columns x x.columns for each part, where there are several.
template <Term term, Part part, int sides>
__global__ void __launch_bounds__(dot_warps* warp_size)
    multiply_transposed_kernel(double alpha, TileView a, TileView x, double beta, TileView y,
                               double* parts) {
  const int lane = static_cast<int>(threadIdx.x) % warp_size;
  const int warp = static_cast<int>(threadIdx.x) / warp_size;
  const std::int64_t k = static_cast<std::int64_t>(blockIdx.x) * dot_columns + 2 * warp;
  if (k >= a.columns) return;
  const bool has_two = k + 1 < a.columns;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.y) * sides;
  const auto count = static_cast<int>(min(static_cast<std::int64_t>(sides), x.columns - first));
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.z) * dot_rows;
  const std::int64_t end = min(begin + dot_rows, a.rows);
  const double* const left = a.data + k * a.leading;
  const double* const right = has_two ? left + a.leading : left;
  const double* const side = x.data + first * x.leading;
  double sum[2][sides] = {};
#pragma unroll 4
  for (std::int64_t i = begin + lane; i < end; i += warp_size) {
    if (part == Part::strictly_lower && i <= k) continue;
    const double l = left[i];
    const double r = part == Part::strictly_lower && i == k + 1 ? 0 : right[i];
#pragma unroll
    for (int c = 0; c < sides; ++c) {
      if (c >= count) continue;
      const double value = side[i + c * x.leading];
      sum[0][c] += value_of<term>(l, value);
      sum[1][c] += value_of<term>(r, value);
    }
  }
#pragma unroll
  for (int q = 0; q < 2; ++q) {
#pragma unroll
    for (int c = 0; c < sides; ++c) {
      double total = sum[q][c];
#pragma unroll
      for (int distance = warp_size / 2; distance > 0; distance /= 2) {
        total += __shfl_xor_sync(0xffffffffU, total, distance);
      }
      if (lane != 0 || c >= count || (q == 1 && !has_two)) continue;
      if (parts == nullptr) {
        store(y.data[k + q + (first + c) * y.leading], alpha, total, beta);
      } else {
        parts[k + q + (first + c + blockIdx.z * x.columns) * a.columns] = total;
      }
    }
  }
}

constexpr int sum_threads = 256;

/// y := alpha * (sum of the parts from the first to the last) + beta * y.
__global__ void __launch_bounds__(sum_threads)
    add_parts_kernel(double alpha, const double* parts, unsigned count, double beta, TileView y) {
  const std::int64_t i =
      static_cast<std::int64_t>(blockIdx.x) * sum_threads + static_cast<int>(threadIdx.x);
  if (i >= y.rows) return;
  const std::int64_t j = blockIdx.y;
  double total = 0;
  for (unsigned p = 0; p < count; ++p) total += parts[i + (j + p * y.columns) * y.rows];
  store(y.data[i + j * y.leading], alpha, total, beta);
}

template <Term term, Part part, int sides>
void launch_multiply(Context& context, double alpha, const TileView& a, const TileView& x,
                     double beta, const TileView& y) {
  if (y.rows == 0 || y.columns == 0) return;
  const dim3 grid(quotient_up(y.rows, warp_size), quotient_up(y.columns, sides));
  multiply_kernel<term, part, sides>
      <<<grid, row_warps * warp_size, 0, context.stream()>>>(alpha, a, x, beta, y);
  check(cudaGetLastError(), "launch of a product with a few columns");
}

template <Term term, Part part, int sides>
void launch_transposed(Context& context, double alpha, const TileView& a, const TileView& x,
                       double beta, const TileView& y) {
  if (y.rows == 0 || y.columns == 0) return;
  const unsigned parts = std::max(1U, quotient_up(a.rows, dot_rows));
  double* memory = nullptr;
  if (parts > 1) memory = context.scratch(std::size_t{parts} * y.rows * y.columns);
  const dim3 grid(quotient_up(y.rows, dot_columns), quotient_up(y.columns, sides), parts);
  multiply_transposed_kernel<term, part, sides>
      <<<grid, dot_warps * warp_size, 0, context.stream()>>>(alpha, a, x, beta, y, memory);
  check(cudaGetLastError(), "launch of a transposed product with a few columns");
  if (parts == 1) return;
  const dim3 all(quotient_up(y.rows, sum_threads), static_cast<unsigned>(y.columns));
  add_parts_kernel<<<all, sum_threads, 0, context.stream()>>>(alpha, memory, parts, beta, y);
  check(cudaGetLastError(), "launch of a sum of parts");
}

// ---- inv(op(t)) * x ----------------------------------------------------------------------------

/// Device integers of one launch and one group of right-hand sides: all zero before, and left so.
struct Progress {
  int* begun;     ///< thread blocks that have begun
  int* ended;     ///< that have ended
  int* is_ready;  ///< by turn: the rows solved in that turn are in x

  __device__ explicit Progress(int* counters)
      : begun(counters), ended(counters + 1), is_ready(counters + 2) {}
};

__device__ void wait_until_set(const int* flag) {
  int value = 0;
  while (value == 0) {
    asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
  }
}

__device__ void set(int* flag) {
  asm volatile("st.release.gpu.global.s32 [%0], %1;" ::"l"(flag), "r"(1) : "memory");
}

/// Four groups of 64 threads each have a quarter of a block's columns.
constexpr int quarters = 4;
constexpr int quarter = block_size / quarters;

template <int sides>
struct SolveMemory {
  double side[sides][block_size];
  double parts[quarters][sides][block_size];
};

/// sums[c] += the thread's quarter of row `row` of m * side; element(row, k) is that of m.
template <int sides, class Element>
__device__ void add_quarter(double (&sums)[sides], const SolveMemory<sides>& memory,
                            Element element) {
  const int begin = static_cast<int>(threadIdx.x) / block_size * quarter;
#pragma unroll 4
  for (int k = begin; k < begin + quarter; ++k) {
    const double value = element(static_cast<int>(threadIdx.x) % block_size, k);
#pragma unroll
    for (int c = 0; c < sides; ++c) sums[c] += value * memory.side[c][k];
  }
}

template <int sides>
__device__ void share_quarters(const double (&sums)[sides], SolveMemory<sides>& memory) {
  const int row = static_cast<int>(threadIdx.x) % block_size;
#pragma unroll
  for (int c = 0; c < sides; ++c) memory.parts[threadIdx.x / block_size][c][row] = sums[c];
  __syncthreads();
}

template <int sides>
__device__ double sum_of_quarters(const SolveMemory<sides>& memory, int c, int row) {
  double sum = 0;
#pragma unroll
  for (int q = 0; q < quarters; ++q) sum += memory.parts[q][c][row];
  return sum;
}

/// Calls visit(row, c) for each element of a block of right-hand sides.
template <int sides, class Visit>
__device__ void for_sides_of_block(Visit visit) {
  for (int at = static_cast<int>(threadIdx.x); at < sides * block_size; at += block_threads) {
    visit(at % block_size, at / block_size);
  }
}

/// Each thread block solves 64 rows of x: it takes away what the rows solved before contribute, in
/// their order, and multiplies by the inverse of its diagonal block, which it makes while it waits.
///
/// No deadlock: a thread block takes its turn when it begins, and waits only for earlier turns,
/// whose thread blocks run already.
///
/// Order: all threads of a thread block write their rows of x; after a barrier one of them sets the
/// flag with release order. One thread elsewhere finds it with acquire order, and after a barrier
/// its thread block reads the rows, past the first-level cache.
template <Triangle triangle, int sides>
__global__ void __launch_bounds__(block_threads)
    solve_kernel(TileView t, TileView x, int* all_counters) {
  constexpr bool goes_down = triangle == Triangle::lower;
  constexpr bool is_transposed = triangle == Triangle::lower_transposed;
  extern __shared__ double dynamic_memory[];
  double* const block = dynamic_memory;
  double* const inverse = dynamic_memory + block_elements;
  __shared__ SolveMemory<sides> memory;
  __shared__ int taken_turn;
  const auto turns = static_cast<int>(gridDim.x);
  const Progress progress(all_counters + blockIdx.y * (gridDim.x + 2));
  if (threadIdx.x == 0) taken_turn = atomicAdd(progress.begun, 1);
  __syncthreads();
  const int turn = taken_turn;
  const auto row_of = [&](int at) {
    return static_cast<std::int64_t>(goes_down ? at : turns - 1 - at) * block_size;
  };
  const auto extent = [&](std::int64_t begin) {
    return static_cast<int>(min(static_cast<std::int64_t>(block_size), t.rows - begin));
  };
  const std::int64_t own = row_of(turn);
  const int own_rows = extent(own);
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.y) * sides;
  const auto count = static_cast<int>(min(static_cast<std::int64_t>(sides), x.columns - first));

  // The inverse of the lower triangle l of which the diagonal block is l, l^T, or for an upper
  // triangle l^T too.
  device::for_block([&](int i, int j) {
    double value = i == j ? 1 : 0;
    if (triangle == Triangle::upper) {
      if (j < own_rows && i <= j) value = t.data[own + i + (own + j) * t.leading];
      block[i * block_stride + j] = value;
    } else {
      if (i < own_rows && j <= i) value = t.data[own + i + (own + j) * t.leading];
      block[j * block_stride + i] = value;
    }
  });
  __syncthreads();
  device::invert_block(block, inverse);

  double sums[sides] = {};
  for (int before = 0; before < turn; ++before) {
    const std::int64_t other = row_of(before);
    const int other_rows = extent(other);
    device::for_block([&](int i, int j) {
      if (is_transposed) {
        const bool inside = i < other_rows && j < own_rows;
        block[i * block_stride + j] = inside ? t.data[other + i + (own + j) * t.leading] : 0;
      } else {
        const bool inside = i < own_rows && j < other_rows;
        block[j * block_stride + i] = inside ? t.data[own + i + (other + j) * t.leading] : 0;
      }
    });
    if (threadIdx.x == 0) wait_until_set(progress.is_ready + before);
    __syncthreads();
    for_sides_of_block<sides>([&](int i, int c) {
      const bool inside = i < other_rows && c < count;
      memory.side[c][i] = inside ? __ldcg(x.data + other + i + (first + c) * x.leading) : 0;
    });
    __syncthreads();
    add_quarter(sums, memory, [&](int row, int k) { return block[k * block_stride + row]; });
    __syncthreads();
  }
  share_quarters(sums, memory);
  for_sides_of_block<sides>([&](int i, int c) {
    const bool inside = i < own_rows && c < count;
    memory.side[c][i] =
        inside ? x.data[own + i + (first + c) * x.leading] - sum_of_quarters(memory, c, i) : 0;
  });
  __syncthreads();
  double products[sides] = {};
  // The inverse is stored by rows.
  add_quarter(products, memory, [&](int row, int k) {
    return goes_down ? inverse[row * block_stride + k] : inverse[k * block_stride + row];
  });
  share_quarters(products, memory);
  for_sides_of_block<sides>([&](int i, int c) {
    if (i < own_rows && c < count) {
      x.data[own + i + (first + c) * x.leading] = sum_of_quarters(memory, c, i);
    }
  });
  __syncthreads();
  if (threadIdx.x != 0) return;
  set(progress.is_ready + turn);
  // The last one to end: no other waits any more.
  __threadfence();
  if (atomicAdd(progress.ended, 1) != turns - 1) return;
  for (int k = 0; k < turns; ++k) progress.is_ready[k] = 0;
  *progress.begun = 0;
  *progress.ended = 0;
}

constexpr int solve_bytes = 2 * block_elements * static_cast<int>(sizeof(double));

template <Triangle triangle>
void launch_solve(Context& context, const TileView& t, const TileView& x) {
  const unsigned turns = quotient_up(t.rows, block_size);
  for_sides(x.columns, [&](auto sides) {
    const unsigned groups = quotient_up(x.columns, sides);
    const auto kernel = solve_kernel<triangle, sides>;
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, solve_bytes),
          "cudaFuncSetAttribute");
    int* const counters = context.counters(std::size_t{groups} * (turns + 2));
    kernel<<<dim3(turns, groups), block_threads, solve_bytes, context.stream()>>>(t, x, counters);
  });
  check(cudaGetLastError(), "launch of a solve with a few right-hand sides");
}

}  // namespace

void launch_multiply_few(Context& context, double alpha, const TileView& a, const TileView& x,
                         double beta, const TileView& y, Term term) {
  if (term == Term::magnitude) {
    return launch_multiply<Term::magnitude, Part::all, 1>(context, alpha, a, x, beta, y);
  }
  for_sides(y.columns, [&](auto sides) {
    launch_multiply<Term::product, Part::all, sides>(context, alpha, a, x, beta, y);
  });
}

void launch_multiply_transposed_few(Context& context, double alpha, const TileView& a,
                                    const TileView& x, double beta, const TileView& y, Term term) {
  if (term == Term::magnitude) {
    return launch_transposed<Term::magnitude, Part::all, 1>(context, alpha, a, x, beta, y);
  }
  if (term == Term::square) {
    return launch_transposed<Term::square, Part::all, 1>(context, alpha, a, x, beta, y);
  }
  for_sides(y.columns, [&](auto sides) {
    launch_transposed<Term::product, Part::all, sides>(context, alpha, a, x, beta, y);
  });
}

void launch_magnitudes_symmetric(Context& context, const TileView& a, const TileView& x,
                                 const TileView& y) {
  const TileView first = x.block(0, 0, a.columns, x.columns);
  launch_multiply<Term::magnitude, Part::lower, 1>(context, 1, a, first, 1, y);
  launch_transposed<Term::magnitude, Part::strictly_lower, 1>(context, 1, a, x, 1,
                                                              y.block(0, 0, a.columns, y.columns));
}

void launch_solve_few(Context& context, Triangle triangle, const TileView& t, const TileView& x) {
  if (x.rows == 0 || x.columns == 0) return;
  switch (triangle) {
    case Triangle::lower:
      return launch_solve<Triangle::lower>(context, t, x);
    case Triangle::lower_transposed:
      return launch_solve<Triangle::lower_transposed>(context, t, x);
    case Triangle::upper:
      return launch_solve<Triangle::upper>(context, t, x);
  }
}

}  // namespace heddle::kernel::cuda
