#include "kernels/cuda/factor_square.hpp"

#include <algorithm>

#include "kernels/cuda/block_grid.cuh"
#include "kernels/cuda/diagonal_block.cuh"
#include "kernels/cuda/mma.cuh"

/// Cholesky of a square in 64 x 64 blocks, in one launch. CTA 0 goes along the diagonal; the time
/// this takes is the kernel's. All that can be done aside is tasks for the other CTAs, one per
/// block of the factor or of the inverse blocks. A task gathers all products that its block needs,
/// in the order of their index, each as soon as its operands are there, and writes the block once:
///
///   x(i, j) = (a(i, j) - sum over k < j of x(i, k) * x(j, k)^T) * inv(l(j, j))^T, i > j + 1
///   b(i, j) = a(i, j) - sum over k < i - 1 of x(i, k) * x(j, k)^T, j = i - 1 and j = i
///   e(i, j) = -inv(l(i, i)) * sum over j <= k < i of x(i, k) * e(k, j), i > j, of the inverse
///             where both are in one inverse block; e(j, j) is inv(l(j, j))
///
/// CTA 0 computes x(i, i - 1) from b(i, i - 1), subtracts x(i, i - 1) * x(i, i - 1)^T from b(i, i),
/// factors the result and inverts it. Meanwhile the other CTAs update the next two b.
///
/// Finished blocks are exchanged in a grid (block_grid.cuh): x(i, j) at (i, j), e(i, j) at (j, i),
/// inv(l(j, j)) at (j, j). b is there too, until CTA 0, its only reader, replaces it. Rows and
/// columns beyond the square are zero in the grid, or rows and columns of the identity.
///
/// No deadlock: tasks are taken in an order in which each needs only earlier tasks, and steps of
/// CTA 0 that need only earlier tasks; a CTA works on its task until it is done. The launch is
/// cooperative, so that CTA 0 and every CTA with a task are running. A task has the same bits in
/// every CTA.
namespace heddle::kernel::cuda {
namespace {

using device::block_elements;
using device::block_size;
using device::block_threads;
using device::BlockShare;

/// Stages of the grid's blocks.
constexpr int stage_begun = 1;  ///< b
constexpr int stage_final = 2;

struct Square {
  double* a;
  std::int64_t lda;
  double* inverses;
  std::int64_t ldi;
  device::BlockGrid grid;
  int* tickets;  ///< number of tasks that were taken, and
  int* left;     ///< number of CTAs that have finished: both zero at first
  std::int64_t* info;
  std::int64_t first_column;
  int w;
  int blocks;        ///< along the diagonal
  int inverse_rows;  ///< of the memory of the inverse blocks
  int per_inverse;   ///< 64 x 64 blocks along an inverse block's diagonal

  /// Rows, or columns, of block i: 64 unless it is the last.
  [[nodiscard]] __device__ int extent(int i) const { return min(block_size, w - i * block_size); }
  [[nodiscard]] __device__ double* block(int i, int j) const {
    return a + i * block_size + j * block_size * lda;
  }
  /// Block (i, j) of the square's inverse, both in one inverse block.
  [[nodiscard]] __device__ double* inverse(int i, int j) const {
    return inverses + i % per_inverse * block_size + j * block_size * ldi;
  }
  /// Whether an element of block (i, j) of the matrix is read and written.
  [[nodiscard]] __device__ bool inside(int i, int j, int row, int column) const {
    return row < extent(i) && column < extent(j) && (i != j || row >= column);
  }
  /// First block of the inverse block that block i is in.
  [[nodiscard]] __host__ __device__ int inverse_begin(int i) const {
    return i / per_inverse * per_inverse;
  }
  /// Tasks of column j: b(j + 1, j) and b(j + 1, j + 1), which CTA 0 waits for, the x below, and
  /// row j of the inverse.
  [[nodiscard]] __host__ __device__ int factor_tasks(int j) const {
    return j + 1 < blocks ? blocks - j : 0;
  }
  [[nodiscard]] __host__ __device__ int inverse_tasks(int j) const { return j - inverse_begin(j); }
};

struct Task {
  enum class Kind : std::uint8_t { factor, inverse, clear, none };
  Kind kind;
  int i;
  int j;
};

/// The tasks in the order in which they are handed out; the zeros of the inverse blocks come last,
/// when many CTAs have nothing else to do.
__device__ Task task_of(const Square& s, int ticket) {
  for (int j = 0; j < s.blocks; ++j) {
    if (ticket < s.factor_tasks(j)) {
      if (ticket == 1) return {Task::Kind::factor, j + 1, j + 1};
      return {Task::Kind::factor, j + max(1, ticket), j};
    }
    ticket -= s.factor_tasks(j);
    if (ticket < s.inverse_tasks(j)) {
      return {Task::Kind::inverse, j, s.inverse_begin(j) + ticket};
    }
    ticket -= s.inverse_tasks(j);
  }
  return {ticket < s.blocks ? Task::Kind::clear : Task::Kind::none, 0, ticket};
}

int count_tasks(const Square& s) {
  int count = s.blocks;
  for (int j = 0; j < s.blocks; ++j) count += s.factor_tasks(j) + s.inverse_tasks(j);
  return count;
}

/// Blocks in shared memory: two stages of operands.
constexpr int task_blocks = 4;
constexpr int shared_bytes = task_blocks * block_elements * static_cast<int>(sizeof(double));
static_assert(device::stacked_elements + block_elements <= task_blocks * block_elements,
              "CTA 0 has a stacked block and another one");

/// share := -a(i, j), with zeros for what is not the matrix's.
__device__ void read_negative(const Square& s, int i, int j, BlockShare& share) {
  const double* block = s.block(i, j);
  share.for_each([&](int row, int column, double& value) {
    value = s.inside(i, j, row, column) ? -block[row + column * s.lda] : 0;
  });
}

/// share += the sum over begin <= k < end of x(row, k) times the grid's block (other, k), that
/// transposed or not. The next operands are loaded during a product if they are there by then.
template <bool transposed>
__device__ void add_products(const Square& s, double* memory, BlockShare& share, int row, int other,
                             int begin, int end) {
  const auto ready = [&](int k) {
    return s.grid.has(row, k, stage_final) && s.grid.has(other, k, stage_final);
  };
  const auto start = [&](int k) {
    double* to = memory + k % 2 * (2 * block_elements);
    device::start_block(to, s.grid.block(row, k));
    device::start_block(to + block_elements, s.grid.block(other, k));
    __pipeline_commit();
  };
  int known = begin;  // operands before it are there
  int started = begin;
  for (int k = begin; k < end; ++k) {
    // Each way has a barrier: everybody has done product k - 1 behind it, so that nobody reads the
    // stage that is loaded next.
    if (started == k) {
      known = device::ready_until(k, end, true, ready);
      start(k);
      ++started;
    } else if (known == k + 1 && k + 1 < end) {
      known = device::ready_until(k + 1, end, false, ready);
    } else {
      __syncthreads();
    }
    if (k + 1 < known) {
      start(k + 1);
      ++started;
      __pipeline_wait_prior(1);
    } else {
      __pipeline_wait_prior(0);
    }
    __syncthreads();
    const double* x = memory + k % 2 * (2 * block_elements);
    device::multiply_add<transposed>(share, x, x + block_elements);
  }
  // The caller may use the memory.
  __syncthreads();
}

/// Hands a block over that all threads have written their share of.
__device__ void publish(const Square& s, int i, int j, int stage) {
  __syncthreads();
  if (threadIdx.x == 0) s.grid.publish(i, j, stage);
}

/// share and inv(l(j, j)) to the first two blocks of shared memory, when the latter is there.
__device__ void meet_inverse(const Square& s, double* memory, BlockShare& share, int j) {
  share.store(memory);
  static_cast<void>(
      device::ready_until(j, j + 1, true, [&](int k) { return s.grid.has(k, k, stage_final); }));
  device::start_block(memory + block_elements, s.grid.block(j, j));
  device::wait_for_blocks();
  __syncthreads();
}

/// x(i, j), or b(i, j) next to the diagonal and on it.
__device__ void make_factor_block(const Square& s, double* memory, int i, int j) {
  BlockShare share;
  read_negative(s, i, j, share);
  add_products<true>(s, memory, share, i, j, 0, i == j ? i - 1 : j);
  share.for_each([](int /*row*/, int /*column*/, double& value) { value = -value; });
  if (i <= j + 1) {
    device::write_share(s.grid.block(i, j), share);
    publish(s, i, j, stage_begun);
    return;
  }
  meet_inverse(s, memory, share, j);
  BlockShare solved;
  device::multiply_add_upper<true>(solved, memory, memory + block_elements);
  device::write_share(s.grid.block(i, j), solved);
  publish(s, i, j, stage_final);
  double* block = s.block(i, j);
  solved.for_each([&](int row, int column, double value) {
    if (row < s.extent(i)) block[row + column * s.lda] = value;
  });
}

/// e(i, j).
__device__ void make_inverse_block(const Square& s, double* memory, int i, int j) {
  BlockShare sum;
  add_products<false>(s, memory, sum, i, j, j, i);
  meet_inverse(s, memory, sum, i);
  BlockShare product;
  device::multiply_add<false>(product, memory + block_elements, memory,
                              BlockShare::warp_row() + BlockShare::warp_rows);
  product.for_each([](int /*row*/, int /*column*/, double& value) { value = -value; });
  device::write_share(s.grid.block(j, i), product);
  publish(s, j, i, stage_final);
  double* block = s.inverse(i, j);
  product.for_each([&](int row, int column, double value) {
    if (row < s.extent(i)) block[row + column * s.ldi] = value;
  });
}

/// The zeros of block column j of the inverse blocks: all but what CTA 0 and make_inverse_block
/// write.
__device__ void clear_inverse_column(const Square& s, int j) {
  const int begin = s.inverse_begin(j);
  const int end = min(begin + s.per_inverse, s.blocks);
  const int columns = s.extent(j);
  double* to = s.inverses + j * block_size * s.ldi;
  for (int base = 0; base < s.inverse_rows; base += block_size) {
    const int i = begin + base / block_size;
    const int written = i >= j && i < end ? s.extent(i) : 0;
    device::for_block([&](int row, int column) {
      if (row < written || base + row >= s.inverse_rows || column >= columns) return;
      to[base + row + column * s.ldi] = 0;
    });
  }
}

__device__ void work_on_tasks(const Square& s, double* memory) {
  __shared__ int ticket;
  while (true) {
    if (threadIdx.x == 0) ticket = atomicAdd(s.tickets, 1);
    __syncthreads();
    const Task task = task_of(s, ticket);
    if (task.kind == Task::Kind::none) return;
    if (task.kind == Task::Kind::factor) make_factor_block(s, memory, task.i, task.j);
    if (task.kind == Task::Kind::inverse) make_inverse_block(s, memory, task.i, task.j);
    if (task.kind == Task::Kind::clear) clear_inverse_column(s, task.j);
    // Everybody has read the ticket, and the blocks in shared memory.
    __syncthreads();
  }
}

/// CTA 0 along the diagonal. Its shared memory has a stacked block (diagonal_block.cuh) and
/// x(j, j - 1).
class Diagonal {
 public:
  __device__ Diagonal(const Square& s, double* memory)
      : s_(s), stacked_(memory), x_(memory + device::stacked_elements) {}

  __device__ void run() {
    for (int j = 0; j < s_.blocks; ++j) {
      BlockShare negative;
      if (j == 0) {
        read_negative(s_, 0, 0, negative);
      } else {
        update(j, negative);
      }
      fill_stacked(j, negative);
      __syncthreads();
      loaded_ = false;
      const int failed = device::factor_stacked(stacked_, [&](int strip) {
        if (warp() == publisher && strip == 0 && j > 0) publish_by_warp(j, j - 1);
        if (strip > 0) load_next(j + 1, false);
      });
      if (threadIdx.x == 0 && failed < block_size && *s_.info == 0) {
        *s_.info = s_.first_column + j * block_size + failed + 1;
      }
      hand_over_inverse(j);
      keep(j);
      load_next(j + 1, true);
    }
  }

 private:
  /// Those of the warps that do not eliminate that load b, a quarter each, and the one that
  /// publishes: its fence should not delay the others.
  static constexpr int loaders_begin = 2;
  static constexpr int loaders_end = 6;
  static constexpr int publisher = 7;
  static_assert(loaders_begin >= device::elimination_warps, "warps that have time");

  [[nodiscard]] __device__ static int warp() { return static_cast<int>(threadIdx.x) / 32; }

  /// Behind a barrier of those that have written the block.
  __device__ void publish_by_warp(int i, int j) const {
    if (threadIdx.x % 32 == 0) s_.grid.publish(i, j, stage_final);
    __syncwarp();
  }

  /// A loader starts to copy b(j, j - 1) to x if that and b(j, j) are there, or when they are.
  __device__ void load_next(int j, bool wait) {
    if (loaded_ || j == s_.blocks || warp() < loaders_begin || warp() >= loaders_end) return;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    bool there = false;
    do {
      there = __all_sync(0xffffffffU, lane > 1 || s_.grid.has(j, j - 1 + lane, stage_begun)) != 0;
    } while (wait && !there);
    if (!there) return;
    __syncwarp();  // lanes 0 and 1 have looked for all
    loaded_ = true;
    constexpr int pairs = block_size * block_size / 2 / (loaders_end - loaders_begin);
    device::start_pairs<pairs / 32, 32>(x_, s_.grid.block(j, j - 1),
                                        (warp() - loaders_begin) * pairs + lane);
  }

  /// x(j, j - 1), and negative := -(b(j, j) - x(j, j - 1) * x(j, j - 1)^T).
  __device__ void update(int j, BlockShare& negative) {
    device::wait_for_blocks();
    __syncthreads();
    device::read_share(negative, s_.grid.block(j, j));
    BlockShare solved;
    device::multiply_add_upper<false, device::stacked_stride>(solved, x_, stacked_ + block_size);
    __syncthreads();
    solved.store(x_);
    __syncthreads();
    negative.for_each([](int /*row*/, int /*column*/, double& value) { value = -value; });
    device::multiply_add_lower(negative, x_);
    // For the others: published during the factorization.
    device::write_share(s_.grid.block(j, j - 1), solved);
    double* block = s_.block(j, j - 1);
    solved.for_each([&](int row, int column, double value) {
      if (row < s_.extent(j)) block[row + column * s_.lda] = value;
    });
  }

  /// The block to factor, the identity beyond the square, on an identity. The last reader of what
  /// was there is behind a barrier: keep() or update()'s first product.
  __device__ void fill_stacked(int j, BlockShare& negative) const {
    negative.for_each([&](int row, int column, double value) {
      double* to = stacked_ + column * device::stacked_stride + row;
      const double identity = row == column ? 1 : 0;
      to[0] = s_.inside(j, j, row, column) ? -value : identity;
      to[block_size] = identity;
    });
  }

  /// Element (row, column) of inv(l(j, j)).
  [[nodiscard]] __device__ double inverse_at(int row, int column) const {
    return row >= column ? stacked_[row * device::stacked_stride + block_size + column] : 0;
  }

  /// The inverse, which lies transposed: patches of 8 x 4 elements, of which either half of a warp
  /// reads 4 x 4, from different banks.
  template <class Visit>
  __device__ void for_inverse(Visit visit) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll 4
    for (int patch = warp(); patch < block_size * block_size / 32; patch += block_threads / 32) {
      const int row = patch % 8 * 8 + lane / 16 * 4 + lane % 4;
      const int column = patch / 8 * 4 + lane / 4 % 4;
      visit(row, column, inverse_at(row, column));
    }
  }

  __device__ void hand_over_inverse(int j) const {
    double* block = s_.grid.block(j, j);
    for_inverse(
        [&](int row, int column, double value) { block[column * block_size + row] = value; });
    __syncthreads();
    if (warp() == publisher) publish_by_warp(j, j);
  }

  /// The factor and its inverse go where the caller wants them.
  __device__ void keep(int j) const {
    const int extent = s_.extent(j);
    double* factor = s_.block(j, j);
    device::for_block([&](int row, int column) {
      if (row < column || row >= extent) return;
      factor[row + column * s_.lda] = stacked_[column * device::stacked_stride + row];
    });
    double* inverse = s_.inverse(j, j);
    for_inverse([&](int row, int column, double value) {
      if (row < extent && column < extent) inverse[row + column * s_.ldi] = value;
    });
  }

  const Square& s_;
  double* const stacked_;
  double* const x_;
  bool loaded_ = false;  ///< a loader has started to copy the next b
};

/// Makes the counters zero again, as the next kernel expects them, if the other CTAs are done with
/// them.
__device__ void leave(const Square& s) {
  __shared__ bool last;
  // Behind the barrier the CTA has looked at all stages that it needs, and has set its own.
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    last = atomicAdd(s.left, 1) == static_cast<int>(gridDim.x) - 1;
    __threadfence();
  }
  __syncthreads();
  if (!last) return;
  const int stages = s.grid.count * s.grid.count;
  for (int at = static_cast<int>(threadIdx.x); at < stages; at += block_threads) {
    s.grid.stages[at] = 0;
  }
  if (threadIdx.x == 0) {
    *s.tickets = 0;
    *s.left = 0;
  }
}

__global__ void __launch_bounds__(block_threads, 1)
    factor_square_kernel(const __grid_constant__ Square s) {
  extern __shared__ __align__(16) double memory[];
  if (blockIdx.x == 0) {
    Diagonal(s, memory).run();
  } else {
    work_on_tasks(s, memory);
  }
  leave(s);
}

std::int64_t blocks_along(std::int64_t w) {
  return (w + block_size - 1) / block_size;
}

/// Enough to keep pace with CTA 0, and few, because all of them must find a free multiprocessor
/// while other streams' kernels run.
constexpr int workers_per_block = 2;

int count_ctas(const Square& s, int multiprocessors) {
  return std::min({1 + workers_per_block * s.blocks, 1 + count_tasks(s), multiprocessors});
}

}  // namespace

bool factor_square_gives(std::int64_t inner, std::int64_t w) {
  return inner >= w || (inner > 0 && inner % block_size == 0);
}

std::int64_t factor_square_scratch(std::int64_t w) {
  const std::int64_t blocks = blocks_along(w);
  return blocks * blocks * block_size * block_size;
}

void factor_square(Context& context, const TileView& a, const TileView& inverses, double* scratch,
                   std::int64_t first_column, std::int64_t* info) {
  const std::int64_t w = a.columns;
  if (w == 0) return;
  const std::int64_t blocks = blocks_along(w);
  const std::int64_t stages = blocks * blocks;
  int* counters = context.counters(static_cast<std::size_t>(stages + 2));
  Square square{.a = a.data,
                .lda = a.leading,
                .inverses = inverses.data,
                .ldi = inverses.leading,
                .grid = {scratch, counters, static_cast<int>(blocks)},
                .tickets = counters + stages,
                .left = counters + stages + 1,
                .info = info,
                .first_column = first_column,
                .w = static_cast<int>(w),
                .blocks = static_cast<int>(blocks),
                .inverse_rows = static_cast<int>(inverses.rows),
                .per_inverse = static_cast<int>(std::min(blocks_along(inverses.rows), blocks))};
  check(cudaFuncSetAttribute(factor_square_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             shared_bytes),
        "cudaFuncSetAttribute");
  void* arguments[] = {&square};
  const auto ctas = static_cast<unsigned>(count_ctas(square, context.multiprocessors()));
  // Cooperative: the CTAs wait for each other, so that all of them must be running.
  check(cudaLaunchCooperativeKernel(factor_square_kernel, dim3(ctas), dim3(block_threads),
                                    arguments, shared_bytes, context.stream()),
        "launch of potrf's square");
}

}  // namespace heddle::kernel::cuda
