#include "kernels/cuda/factor_square.hpp"

#include <algorithm>

#include "kernels/cuda/mma.cuh"

/// Cholesky of a square in 64 x 64 blocks, one launch per block column ("step"). A step costs what
/// its diagonal block costs, which one thread block updates, factors and inverts, while the other
/// multiprocessors bring the rest of the square up to date.
///
/// Step s, with the panel p = s - 1 whose diagonal block step s - 1 has inverted, has these thread
/// blocks, none of which reads what another one writes:
///
///   update   a(i, j) -= x(i) * x(j)^T for s <= j <= i, where x(i) = a(i, p) * inv(l(p, p))^T is
///            computed where it is needed; those of j = s keep x(i) in a panel aside, because
///            others still read a(i, p). The first one, (s, s), factors and inverts.
///   inverse  e(i, j) -= x(i) * f(j) for rows i > p of p's inverse block and j <= p, where
///            f(j) = inv(l(p, p)) * e(p, j) is final: forward substitution on the identity, as far
///            as it has got, in the memory of the inverse blocks.
///   finish   e(p, j) := f(j), a step after its last reader.
///   keep     a(i, p - 1) := x(i) from the panel that the step before has left.
///
/// Step 0 factors the first diagonal block and clears the inverse blocks.
namespace heddle::kernel::cuda {
namespace {

using device::block_elements;
using device::block_size;
using device::block_stride;
using device::block_threads;
using device::BlockShare;

struct Step {
  double* a;
  std::int64_t lda;
  double* inverses;
  std::int64_t ldi;
  double* panels;  ///< two panels of 64 columns and ldp rows, used in turns
  std::int64_t ldp;
  std::int64_t* info;
  std::int64_t first_column;
  int w;
  int blocks;        ///< along the diagonal
  int inverse_rows;  ///< of the memory of the inverse blocks
  int per_inverse;   ///< 64 x 64 blocks along an inverse block's diagonal
  int step;

  /// Rows, or columns, of block i: 64 unless it is the last.
  [[nodiscard]] __device__ int extent(int i) const { return min(block_size, w - i * block_size); }
  [[nodiscard]] __device__ double* block(int i, int j) const {
    return a + i * block_size + j * block_size * lda;
  }
  /// Block (i, j) of the square's inverse, both in one inverse block.
  [[nodiscard]] __device__ double* inverse(int i, int j) const {
    return inverses + i % per_inverse * block_size + j * block_size * ldi;
  }
  [[nodiscard]] __device__ double* panel(int p, int i) const {
    return panels + p % 2 * block_size * ldp + i * block_size;
  }
  /// First block of the inverse block that block i is in, and one past its last.
  [[nodiscard]] __host__ __device__ int inverse_begin(int i) const {
    return i / per_inverse * per_inverse;
  }
  [[nodiscard]] __host__ __device__ int inverse_end(int i) const {
    const int end = inverse_begin(i) + per_inverse;
    return end < blocks ? end : blocks;
  }
};

/// How many thread blocks a step has of each sort, in this order.
struct StepWork {
  int update = 0;
  int inverse = 0;
  int finish_before = 0;  ///< of row p - 1
  int finish = 0;         ///< of row p, if it is the last of its inverse block: nobody reads it
  int keep = 0;
  int clear = 0;

  __host__ __device__ explicit StepWork(const Step& s) {
    const int p = s.step - 1;
    if (p < 0) {
      update = 1;
      clear = (s.inverse_rows + block_size - 1) / block_size * s.blocks;
      return;
    }
    const int left = s.blocks - s.step;
    update = left * (left + 1) / 2;
    inverse = (s.inverse_end(p) - s.step) * (p - s.inverse_begin(p) + 1);
    if (p + 1 == s.inverse_end(p)) finish = p - s.inverse_begin(p);
    if (p > s.inverse_begin(p)) finish_before = p - 1 - s.inverse_begin(p);
    if (p > 0) keep = s.blocks - p;
  }
  [[nodiscard]] __host__ __device__ int total() const {
    return update + inverse + finish_before + finish + keep + clear;
  }
};

/// The three blocks that a thread block has in shared memory.
struct Blocks {
  double* x;
  double* y;
  double* z;
};

constexpr int three_blocks_bytes = 3 * block_elements * static_cast<int>(sizeof(double));

/// Thread (ti, tj) of 16 x 16 has the elements congruent to (ti, tj).
struct CyclicShare {
  double value[4][4];
};

/// Eliminates the columns of a symmetric block one after the other, in place, as Gauss and Jordan
/// do: behind column k stand the columns of the inverse of the unit lower factor, ahead of it is
/// what remains of the matrix. columns(i, k), i >= k, are the columns at their turn: those of the
/// factor times the root of their pivot, columns(k, k). rows(k, j), j < k, are scratch.
/// Returns the first column whose pivot is not positive or not a number; 64 if there is none.
__device__ int eliminate(CyclicShare& share, double* columns, double* rows) {
  const int ti = static_cast<int>(threadIdx.x) % 16;
  const int tj = static_cast<int>(threadIdx.x) / 16;
  int failed = block_size;
#pragma unroll
  for (int kb = 0; kb < 4; ++kb) {
#pragma unroll 1
    for (int t = 0; t < 16; ++t) {
      const int k = 16 * kb + t;
      double* column = columns + k * block_stride;
      double* row = rows + k * block_stride;
      // Every step has its own column and row in shared memory, so that one barrier does: nobody
      // overwrites what a slower thread still reads.
      if (tj == t) {
#pragma unroll
        for (int a = kb; a < 4; ++a) {
          const int i = ti + 16 * a;
          if (i < k) continue;
          column[i] = share.value[a][kb];
          row[i] = i == k ? 1 : share.value[a][kb];
        }
      }
      if (ti == t) {
#pragma unroll
        for (int b = 0; b <= kb; ++b) {
          if (tj + 16 * b < k) row[tj + 16 * b] = share.value[kb][b];
        }
      }
      __syncthreads();
      const double pivot = column[k];
      if (!(pivot > 0) && failed == block_size) failed = k;
      const double reciprocal = 1 / pivot;
#pragma unroll
      for (int a = kb; a < 4; ++a) {
        const int i = ti + 16 * a;
        if (i <= k) continue;
        const double factor = column[i] * reciprocal;
#pragma unroll
        for (int b = 0; b < 4; ++b) {
          // The identity's column k comes in where the matrix's goes out.
          const double before = b == kb && tj == t ? 0 : share.value[a][b];
          share.value[a][b] = before - factor * row[tj + 16 * b];
        }
      }
    }
  }
  return failed;
}

/// Factors the block in memory.x, whose upper part is zero and which is the identity beyond the
/// square, and writes it and its inverse.
__device__ void factor_block(const Step& s, const Blocks& memory) {
  __shared__ double roots[block_size];  // one over those of the pivots
  const int ti = static_cast<int>(threadIdx.x) % 16;
  const int tj = static_cast<int>(threadIdx.x) / 16;
  CyclicShare share;
#pragma unroll
  for (int a = 0; a < 4; ++a) {
#pragma unroll
    for (int b = 0; b < 4; ++b) {
      share.value[a][b] = memory.x[(tj + 16 * b) * block_stride + ti + 16 * a];
    }
  }
  const int failed = eliminate(share, memory.y, memory.z);
  if (failed < block_size && threadIdx.x == 0 && *s.info == 0) {
    *s.info = s.first_column + s.step * block_size + failed + 1;
  }
  if (threadIdx.x < block_size) {
    const int k = static_cast<int>(threadIdx.x);
    roots[k] = 1 / sqrt(memory.y[k * block_stride + k]);
  }
  __syncthreads();
  const int extent = s.extent(s.step);
  double* factor = s.block(s.step, s.step);
  device::for_block([&](int i, int j) {
    if (i < j || i >= extent) return;
    factor[i + j * s.lda] = memory.y[j * block_stride + i] * roots[j];
  });
  double* inverse = s.inverse(s.step, s.step);
#pragma unroll
  for (int a = 0; a < 4; ++a) {
#pragma unroll
    for (int b = 0; b < 4; ++b) {
      const int i = ti + 16 * a;
      const int j = tj + 16 * b;
      if (i >= extent || j >= extent) continue;
      const double unit = i > j ? share.value[a][b] : (i == j ? 1 : 0);
      inverse[i + j * s.ldi] = unit * roots[i];
    }
  }
}

/// x := x * inverse^T in shared memory. Returns the thread's share; the others' can be read after
/// __syncthreads.
__device__ BlockShare solve_block(double* x, const double* inverse) {
  BlockShare share;
  device::multiply_add<true>(share, x, inverse);
  __syncthreads();
  share.store(x);
  return share;
}

/// The part of block (i, j) of the matrix that is read and written.
__device__ bool inside(const Step& s, int i, int j, int row, int column) {
  return row < s.extent(i) && column < s.extent(j) && (i != j || row >= column);
}

__device__ void update_block(const Step& s, const Blocks& memory, int index) {
  const int p = s.step - 1;
  const device::TriangleIndex place = device::triangle_index(index);
  const int i = s.step + place.row;
  const int j = s.step + place.column;
  device::load_block(memory.z, s.inverse(p, p), s.ldi, block_size, block_size);
  device::load_block(memory.x, s.block(i, p), s.lda, s.extent(i), block_size);
  if (i != j) device::load_block(memory.y, s.block(j, p), s.lda, s.extent(j), block_size);
  BlockShare negative;
  double* block = s.block(i, j);
  negative.for_each([&](int row, int column, double& value) {
    value = inside(s, i, j, row, column) ? -block[row + column * s.lda] : 0;
  });
  device::wait_for_blocks();
  __syncthreads();
  BlockShare solved = solve_block(memory.x, memory.z);
  if (j == s.step) {
    double* panel = s.panel(p, i);
    solved.for_each([&](int row, int column, double value) {
      if (row < s.extent(i)) panel[row + column * s.ldp] = value;
    });
  }
  if (i != j) static_cast<void>(solve_block(memory.y, memory.z));
  __syncthreads();
  device::multiply_add<true>(negative, memory.x, i == j ? memory.x : memory.y);
  if (index > 0) {
    negative.for_each([&](int row, int column, double value) {
      if (inside(s, i, j, row, column)) block[row + column * s.lda] = -value;
    });
    return;
  }
  __syncthreads();
  negative.for_each([&](int row, int column, double value) {
    memory.x[column * block_stride + row] =
        inside(s, i, j, row, column) ? -value : (row == column ? 1 : 0);
  });
  __syncthreads();
  factor_block(s, memory);
}

__device__ void factor_first_block(const Step& s, const Blocks& memory) {
  device::for_block([&](int row, int column) {
    memory.x[column * block_stride + row] =
        inside(s, 0, 0, row, column) ? s.a[row + column * s.lda] : (row == column ? 1 : 0);
  });
  __syncthreads();
  factor_block(s, memory);
}

__device__ void update_inverse(const Step& s, const Blocks& memory, int index) {
  const int p = s.step - 1;
  const int begin = s.inverse_begin(p);
  const int columns = p - begin + 1;
  const int i = s.step + index / columns;
  const int j = begin + index % columns;
  device::load_block(memory.z, s.inverse(p, p), s.ldi, block_size, block_size);
  device::load_block(memory.x, s.block(i, p), s.lda, s.extent(i), block_size);
  // Column p is the identity so far: its row p becomes the inverse itself, and below is zero.
  if (j < p) device::load_block(memory.y, s.inverse(p, j), s.ldi, block_size, block_size);
  BlockShare negative;
  double* block = s.inverse(i, j);
  if (j < p) {
    negative.for_each([&](int row, int column, double& value) {
      value = row < s.extent(i) ? -block[row + column * s.ldi] : 0;
    });
  }
  device::wait_for_blocks();
  __syncthreads();
  static_cast<void>(solve_block(memory.x, memory.z));
  if (j < p) {
    BlockShare row_p;
    device::multiply_add<false>(row_p, memory.z, memory.y);
    __syncthreads();
    row_p.store(memory.y);
  }
  __syncthreads();
  device::multiply_add<false>(negative, memory.x, j < p ? memory.y : memory.z);
  negative.for_each([&](int row, int column, double value) {
    if (row < s.extent(i)) block[row + column * s.ldi] = -value;
  });
}

/// Row `row` of the inverse, column `index` of its inverse block.
__device__ void finish_inverse(const Step& s, const Blocks& memory, int row_block, int index) {
  const int rows = s.extent(row_block);
  double* block = s.inverse(row_block, s.inverse_begin(row_block) + index);
  device::load_block(memory.z, s.inverse(row_block, row_block), s.ldi, rows, rows);
  device::load_block(memory.y, block, s.ldi, rows, block_size);
  device::wait_for_blocks();
  __syncthreads();
  BlockShare product;
  device::multiply_add<false>(product, memory.z, memory.y);
  product.for_each([&](int row, int column, double value) {
    if (row < rows) block[row + column * s.ldi] = value;
  });
}

/// Block `index` of the panel that the step before has left.
__device__ void keep_panel(const Step& s, int index) {
  const int p = s.step - 2;
  const int i = p + 1 + index;
  const int rows = s.extent(i);
  const double* panel = s.panel(p, i);
  double* block = s.block(i, p);
  device::for_block([&](int row, int column) {
    if (row < rows) block[row + column * s.lda] = panel[row + column * s.ldp];
  });
}

/// The inverse blocks' memory, but for what the first diagonal block writes meanwhile.
__device__ void clear_inverses(const Step& s, int index) {
  const int row_first = index / s.blocks * block_size;
  const int column_first = index % s.blocks * block_size;
  const int extent = s.extent(0);
  device::for_block([&](int i, int j) {
    const int row = row_first + i;
    const int column = column_first + j;
    if (row >= s.inverse_rows || column >= s.w || (row < extent && column < extent)) return;
    s.inverses[row + column * s.ldi] = 0;
  });
}

__global__ void __launch_bounds__(block_threads, 2) factor_step_kernel(Step s) {
  extern __shared__ double shared[];
  const Blocks memory{shared, shared + block_elements, shared + 2 * block_elements};
  const StepWork work(s);
  int index = static_cast<int>(blockIdx.x);
  if (index < work.update) {
    if (s.step == 0) return factor_first_block(s, memory);
    return update_block(s, memory, index);
  }
  index -= work.update;
  if (index < work.inverse) return update_inverse(s, memory, index);
  index -= work.inverse;
  if (index < work.finish_before) return finish_inverse(s, memory, s.step - 2, index);
  index -= work.finish_before;
  if (index < work.finish) return finish_inverse(s, memory, s.step - 1, index);
  index -= work.finish;
  if (index < work.keep) return keep_panel(s, index);
  index -= work.keep;
  clear_inverses(s, index);
}

std::int64_t blocks_along(std::int64_t w) {
  return (w + block_size - 1) / block_size;
}

}  // namespace

bool factor_square_gives(std::int64_t inner, std::int64_t w) {
  return inner >= w || (inner > 0 && inner % block_size == 0);
}

std::int64_t factor_square_scratch(std::int64_t w) {
  return 2 * block_size * blocks_along(w) * block_size;
}

void factor_square(Context& context, const TileView& a, const TileView& inverses, double* scratch,
                   std::int64_t first_column, std::int64_t* info) {
  const std::int64_t w = a.columns;
  if (w == 0) return;
  const std::int64_t blocks = blocks_along(w);
  Step step{.a = a.data,
            .lda = a.leading,
            .inverses = inverses.data,
            .ldi = inverses.leading,
            .panels = scratch,
            .ldp = blocks * block_size,
            .info = info,
            .first_column = first_column,
            .w = static_cast<int>(w),
            .blocks = static_cast<int>(blocks),
            .inverse_rows = static_cast<int>(inverses.rows),
            .per_inverse = static_cast<int>(std::min(blocks_along(inverses.rows), blocks)),
            .step = 0};
  check(cudaFuncSetAttribute(factor_step_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             three_blocks_bytes),
        "cudaFuncSetAttribute");
  for (step.step = 0; step.step <= step.blocks; ++step.step) {
    const int count = StepWork(step).total();
    if (count == 0) continue;
    factor_step_kernel<<<static_cast<unsigned>(count), block_threads, three_blocks_bytes,
                         context.stream()>>>(step);
    check(cudaGetLastError(), "launch of a step of potrf");
  }
}

}  // namespace heddle::kernel::cuda
