#include "kernels/cuda/triangles.hpp"

#include <algorithm>
#include <cstddef>
#include <cuda_runtime.h>

namespace heddle::kernel::cuda {
namespace {

constexpr int threads = 256;
constexpr std::int64_t grid_y_max = 32768;

template <class Work>
struct Elements {
  std::int64_t rows;
  std::int64_t columns;
  Work work;
};

template <class Work>
__global__ void __launch_bounds__(threads)
    for_elements_kernel(const __grid_constant__ Elements<Work> elements) {
  const std::int64_t i =
      static_cast<std::int64_t>(blockIdx.x) * threads + static_cast<int>(threadIdx.x);
  if (i >= elements.rows) return;
  for (std::int64_t j = blockIdx.y; j < elements.columns; j += gridDim.y) elements.work(i, j);
}

/// Calls work(i, j) for each element of a rows x columns matrix.
template <class Work>
void for_elements(Context& context, std::int64_t rows, std::int64_t columns, const Work& work) {
  if (rows == 0 || columns == 0) return;
  Elements<Work> elements{rows, columns, work};
  void* arguments[] = {&elements};
  const dim3 blocks(static_cast<unsigned>((rows + threads - 1) / threads),
                    static_cast<unsigned>(std::min(columns, grid_y_max)));
  check(cudaLaunchKernel(for_elements_kernel<Work>, blocks, dim3(threads), arguments, 0,
                         context.stream()),
        "launch of an elementwise kernel");
}

struct Subtract {
  TileView from;
  TileView to;
  __device__ void operator()(std::int64_t i, std::int64_t j) const {
    to.data[i + j * to.leading] -= from.data[i + j * from.leading];
  }
};

struct CopyUpper {
  TileView from;
  TileView to;
  __device__ void operator()(std::int64_t i, std::int64_t j) const {
    to.data[i + j * to.leading] = i <= j ? from.data[i + j * from.leading] : 0.0;
  }
};

struct CopyHead {
  TileView v;
  std::int64_t inner;
  TileView heads;
  __device__ void operator()(std::int64_t i, std::int64_t j) const {
    const std::int64_t begin = j / inner * inner;
    const bool below = begin + i > j && begin + i < v.columns;
    const double diagonal = begin + i == j ? 1.0 : 0.0;
    heads.data[i + j * heads.leading] = below ? v.data[begin + i + j * v.leading] : diagonal;
  }
};

struct ShareR {
  TileView a;
  std::int64_t inner;
  TileView r;
  __device__ void operator()(std::int64_t i, std::int64_t j) const {
    double& to = r.data[i + j * r.leading];
    double& echo = a.data[i + j * a.leading];
    if (i > j) {
      to = 0;
    } else if (i >= j / inner * inner) {
      echo = to;
    } else {
      to = echo;
    }
  }
};

constexpr int warps = threads / 32;
constexpr int width_max = 32;

struct Join {
  TileView products;
  int width;
  TileView t;
};

/// Row i of T needs no other row: with blocks of columns J, and T's triangles T(J, J),
/// T(i, J) = -(sum over k < J of T(i, k) (V^T V)(k, J)) T(J, J). A warp makes a row, its lanes the
/// columns of a block.
__global__ void __launch_bounds__(threads) join_kernel(const __grid_constant__ Join join) {
  __shared__ double triangle[width_max][width_max + 1];
  __shared__ double rows[warps][joined_columns_max];
  __shared__ double sums[warps][width_max];
  const TileView& t = join.t;
  const TileView& s = join.products;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int count = static_cast<int>(t.columns);
  const int i = static_cast<int>(blockIdx.x) * warps + warp;
  const int own = i / join.width * join.width;  // the first column of row i's own triangle
  double(&row)[joined_columns_max] = rows[warp];
  if (i < count && lane < join.width && own + lane < count) {
    row[own + lane] = t.data[i + (own + lane) * t.leading];
  }
  for (int begin = join.width; begin < count; begin += join.width) {
    const int columns = min(join.width, count - begin);
    __syncthreads();
    for (int e = static_cast<int>(threadIdx.x); e < columns * columns; e += threads) {
      const int k = e % columns;
      const int j = e / columns;
      triangle[k][j] = t.data[begin + k + (begin + j) * t.leading];
    }
    __syncthreads();
    const bool takes_part = i < count && own < begin && lane < columns;
    double sum = 0;
    if (takes_part) {
      // V^T V is read across its diagonal, so that lanes read neighbours.
#pragma unroll 8
      for (int k = i; k < begin; ++k) {
        sum = fma(row[k], s.data[begin + lane + k * s.leading], sum);
      }
      sums[warp][lane] = sum;
    }
    __syncwarp();
    if (takes_part) {
      double value = 0;
      for (int k = 0; k <= lane; ++k) value = fma(sums[warp][k], triangle[k][lane], value);
      row[begin + lane] = -value;
      t.data[i + (begin + lane) * t.leading] = -value;
    }
    __syncwarp();
  }
}

std::size_t bytes(std::int64_t count) {
  return static_cast<std::size_t>(count) * sizeof(double);
}

}  // namespace

void copy_elements(Context& context, const TileView& from, const TileView& to) {
  if (to.rows == 0 || to.columns == 0) return;
  check(cudaMemcpy2DAsync(to.data, bytes(to.leading), from.data, bytes(from.leading),
                          bytes(to.rows), static_cast<std::size_t>(to.columns),
                          cudaMemcpyDeviceToDevice, context.stream()),
        "cudaMemcpy2DAsync");
}

void subtract_elements(Context& context, const TileView& from, const TileView& to) {
  for_elements(context, to.rows, to.columns, Subtract{from, to});
}

void clear_elements(Context& context, const TileView& a) {
  if (a.rows == 0 || a.columns == 0) return;
  check(cudaMemset2DAsync(a.data, bytes(a.leading), 0, bytes(a.rows),
                          static_cast<std::size_t>(a.columns), context.stream()),
        "cudaMemset2DAsync");
}

void copy_upper_triangle(Context& context, const TileView& from, const TileView& to) {
  for_elements(context, to.rows, to.columns, CopyUpper{from, to});
}

void copy_unit_heads(Context& context, const TileView& v, std::int64_t inner,
                     const TileView& heads) {
  for_elements(context, heads.rows, heads.columns, CopyHead{v, inner, heads});
}

void share_r(Context& context, const TileView& a, std::int64_t inner, const TileView& r) {
  for_elements(context, r.rows, r.columns, ShareR{a, inner, r});
}

void join_triangles(Context& context, const TileView& products, std::int64_t width,
                    const TileView& t) {
  if (t.columns <= width) return;
  Join join{products, static_cast<int>(width), t};
  void* arguments[] = {&join};
  check(cudaLaunchKernel(join_kernel, dim3(static_cast<unsigned>((t.columns + warps - 1) / warps)),
                         dim3(threads), arguments, 0, context.stream()),
        "launch of a QR triangle");
}

}  // namespace heddle::kernel::cuda
