#include "kernels/cuda/generate.hpp"

#include <algorithm>

#include "kernels/element_formulas.hpp"

namespace heddle::kernel::cuda {
namespace {

constexpr int threads = 256;
/// Columns per thread: what is loaded for a row serves all of them.
constexpr int columns_each = 16;

struct Part {
  GenerateParameters parameters;
  TileView out;
  TileView columns;
  TileView rows;

  [[nodiscard]] __device__ double of_column(std::int64_t j, int k) const {
    return columns.data[j + k * columns.leading];
  }
  [[nodiscard]] __device__ double of_row(std::int64_t i, int k) const {
    return rows.data[i + k * rows.leading];
  }
  [[nodiscard]] __device__ double uniform(std::int64_t i, std::int64_t column) const {
    return uniform_element(key_of(parameters.seed), RandomStream::entries,
                           static_cast<std::uint64_t>(parameters.row + i),
                           static_cast<std::uint64_t>(column));
  }
  [[nodiscard]] __device__ bool is_diagonal(std::int64_t i, std::int64_t j) const {
    return parameters.row + i == parameters.column + j;
  }
};

__device__ double combined(const Part& part, std::int64_t i, std::int64_t j) {
  const std::int64_t column = part.parameters.column + j;
  const auto count = static_cast<int>(part.of_column(j, 0));
  if (count < 0) return part.uniform(i, column);
  double sum = 0;
  for (int k = 0; k < count; ++k) {
    const auto from = static_cast<std::int64_t>(part.of_column(j, 1 + k));
    sum += part.of_column(j, 4 + k) * part.uniform(i, from);
  }
  return sum + part.of_column(j, 7) * part.uniform(i, column);
}

__device__ double power(double base, std::int64_t exponent) {
  double result = 1;
  for (std::int64_t digits = exponent; digits > 0; digits /= 2) {
    if (digits % 2 != 0) result *= base;
    base *= base;
  }
  return result;
}

template <ElementKind kind>
__device__ double element(const Part& part, std::int64_t i, std::int64_t j) {
  if constexpr (kind == ElementKind::uniform) {
    return part.uniform(i, part.parameters.column + j);
  } else if constexpr (kind == ElementKind::scaled) {
    return part.uniform(i, part.parameters.column + j) * part.of_column(j, 0);
  } else if constexpr (kind == ElementKind::combined) {
    return combined(part, i, j);
  } else if constexpr (kind == ElementKind::powers) {
    return power(part.of_row(i, 0), part.parameters.column + j);
  } else if constexpr (kind == ElementKind::ratio) {
    return ratio_element(static_cast<double>(part.parameters.row + i + 1),
                         static_cast<double>(part.parameters.column + j + 1));
  } else if constexpr (kind == ElementKind::identity) {
    return part.is_diagonal(i, j) ? 1.0 : 0.0;
  } else if constexpr (kind == ElementKind::low_rank) {
    const double value = low_rank_element(part.of_row(i, 0), part.of_column(j, 0),  //
                                          part.of_row(i, 1), part.of_column(j, 1),  //
                                          part.of_row(i, 2), part.of_column(j, 2),  //
                                          part.of_row(i, 3), part.of_column(j, 3));
    return part.is_diagonal(i, j) ? value + part.of_row(i, 4) : value;
  } else {
    if (part.is_diagonal(i, j)) return part.of_column(j, 3);
    const double s = scaled_distance(part.of_row(i, 0), part.of_row(i, 1), part.of_column(j, 0),
                                     part.of_column(j, 1), part.of_column(j, 2));
    if constexpr (kind == ElementKind::matern_half) return matern_half(s);
    if constexpr (kind == ElementKind::matern_three_halves) return matern_three_halves(s);
    if constexpr (kind == ElementKind::matern_five_halves) return matern_five_halves(s);
  }
}

template <ElementKind kind>
__global__ void __launch_bounds__(threads) generate_kernel(Part part) {
  const std::int64_t i =
      static_cast<std::int64_t>(blockIdx.x) * threads + static_cast<int>(threadIdx.x);
  if (i >= part.out.rows) return;
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.y) * columns_each;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.y) * columns_each;
  const bool is_lower = part.parameters.is_lower != 0;
  for (std::int64_t first = begin; first < part.out.columns; first += step) {
    const std::int64_t end = min(first + columns_each, part.out.columns);
    for (std::int64_t j = first; j < end; ++j) {
      const bool is_above = part.parameters.row + i < part.parameters.column + j;
      part.out.data[i + j * part.out.leading] =
          is_lower && is_above ? 0.0 : element<kind>(part, i, j);
    }
  }
}

template <ElementKind kind>
void launch(Context& context, const Part& part) {
  constexpr std::int64_t grid_max = 65535;
  const auto blocks = static_cast<unsigned>((part.out.rows + threads - 1) / threads);
  const auto columns = static_cast<unsigned>(
      std::min<std::int64_t>((part.out.columns + columns_each - 1) / columns_each, grid_max));
  generate_kernel<kind><<<dim3(blocks, columns), threads, 0, context.stream()>>>(part);
  check(cudaGetLastError(), "launch of generate");
}

}  // namespace

void launch_generate(Context& context, const GenerateParameters& parameters, const TileView& out,
                     const TileView& columns, const TileView& rows) {
  if (out.rows == 0 || out.columns == 0) return;
  const Part part{parameters, out, columns, rows};
  switch (parameters.kind) {
    case ElementKind::uniform:
      return launch<ElementKind::uniform>(context, part);
    case ElementKind::scaled:
      return launch<ElementKind::scaled>(context, part);
    case ElementKind::combined:
      return launch<ElementKind::combined>(context, part);
    case ElementKind::powers:
      return launch<ElementKind::powers>(context, part);
    case ElementKind::ratio:
      return launch<ElementKind::ratio>(context, part);
    case ElementKind::identity:
      return launch<ElementKind::identity>(context, part);
    case ElementKind::low_rank:
      return launch<ElementKind::low_rank>(context, part);
    case ElementKind::matern_half:
      return launch<ElementKind::matern_half>(context, part);
    case ElementKind::matern_three_halves:
      return launch<ElementKind::matern_three_halves>(context, part);
    case ElementKind::matern_five_halves:
      return launch<ElementKind::matern_five_halves>(context, part);
  }
}

}  // namespace heddle::kernel::cuda
