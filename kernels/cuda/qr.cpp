#include <cstdint>

#include "base/assert.hpp"
#include "kernels/cpu/arguments.hpp"
#include "kernels/cuda/definitions.hpp"
#include "kernels/cuda/householder.hpp"
#include "kernels/cuda/launch.hpp"
#include "kernels/cuda/triangles.hpp"
#include "kernels/kernels.hpp"

namespace heddle::kernel::cuda {
namespace {

void check_launch(const CudaLaunch& launch, std::size_t count) {
  kernel::check_tiles({launch.tiles, launch.parameters}, count);
}

/// Where the last tile is optional: one more than `count`, which says where R or D was before.
bool takes_from_elsewhere(const CudaLaunch& launch, std::size_t count) {
  const bool one_more = launch.tiles.size() == count + 1;
  check_launch(launch, one_more ? count + 1 : count);
  return one_more;
}

TileView active(const TileView& a, std::int64_t first) {
  return rows_of(a, first, a.rows - first);
}

void copy_rows_to(Context& context, const TileView& from, const TileView& to) {
  HEDDLE_CHECK(from.rows == to.rows && from.columns == to.columns, "{} x {} to {} x {}", from.rows,
               from.columns, to.rows, to.columns);
  copy_elements(context, from, to);
}

void copy_upper(Context& context, const TileView& from, const TileView& to) {
  HEDDLE_CHECK(from.rows == to.rows && from.columns == to.columns && to.rows == to.columns,
               "{} x {} to {} x {}", from.rows, from.columns, to.rows, to.columns);
  copy_upper_triangle(context, from, to);
}

void run_on_tile_below(const CudaLaunch& launch, Side side) {
  const bool elsewhere = takes_from_elsewhere(launch, 4);
  const auto p = launch.parameters.as<PanelParameters>();
  const TileView& v = launch.tiles[2];
  const TileView d = rows_of(launch.tiles[1], p.row, v.columns);
  if (elsewhere) copy_rows_to(launch.context, rows_of(launch.tiles[4], p.row, v.columns), d);
  apply_tile_below(launch.context, side, v, launch.tiles[3], p.inner, Below::full, d,
                   launch.tiles[0]);
}

/// On the way down C stands in its own tile afterwards, on the way up before.
void run_on_pair(const CudaLaunch& launch, Side side) {
  check_launch(launch, 6);
  const auto p = launch.parameters.as<PanelParameters>();
  const std::int64_t w = launch.tiles[2].columns;
  const TileView v = rows_of(launch.tiles[2], 0, w);
  const std::int64_t out = side == Side::transposed ? 0 : p.row;
  const std::int64_t in = side == Side::transposed ? p.row : 0;
  const TileView c = rows_of(launch.tiles[0], out, w);
  const TileView d = rows_of(launch.tiles[1], p.row, w);
  copy_rows_to(launch.context, rows_of(launch.tiles[4], p.row, w), d);
  copy_rows_to(launch.context, rows_of(launch.tiles[5], in, w), c);
  apply_tile_below(launch.context, side, v, launch.tiles[3], p.inner, Below::triangle, d, c);
}

}  // namespace

void geqrt(const CudaLaunch& launch) {
  check_launch(launch, 3);
  const auto p = launch.parameters.as<PanelParameters>();
  const TileView a = active(launch.tiles[0], p.first);
  factor_tile(launch.context, a, rows_of(launch.tiles[1], p.row, a.columns), launch.tiles[2],
              p.inner);
}

void unmqr(const CudaLaunch& launch) {
  check_launch(launch, 4);
  const auto p = launch.parameters.as<PanelParameters>();
  const TileView c = active(launch.tiles[0], p.first);
  const TileView v = active(launch.tiles[2], p.first);
  apply_tile(launch.context, Side::transposed, v, launch.tiles[3], p.inner, c);
  copy_rows_to(launch.context, rows_of(c, 0, v.columns),
               rows_of(launch.tiles[1], p.row, v.columns));
}

void unmqr_back(const CudaLaunch& launch) {
  check_launch(launch, 4);
  const auto p = launch.parameters.as<PanelParameters>();
  const TileView c = active(launch.tiles[0], p.first);
  const TileView v = active(launch.tiles[2], p.first);
  copy_rows_to(launch.context, rows_of(launch.tiles[1], p.row, v.columns),
               rows_of(c, 0, v.columns));
  apply_tile(launch.context, Side::plain, v, launch.tiles[3], p.inner, c);
}

void tsqrt(const CudaLaunch& launch) {
  const bool elsewhere = takes_from_elsewhere(launch, 3);
  const auto p = launch.parameters.as<PanelParameters>();
  const TileView& a = launch.tiles[0];
  const TileView r = rows_of(launch.tiles[1], p.row, a.columns);
  if (elsewhere) copy_upper(launch.context, rows_of(launch.tiles[3], p.row, a.columns), r);
  factor_tile_below(launch.context, r, a, launch.tiles[2], p.inner, Below::full);
}

void tsmqr(const CudaLaunch& launch) {
  run_on_tile_below(launch, Side::transposed);
}

void tsmqr_back(const CudaLaunch& launch) {
  run_on_tile_below(launch, Side::plain);
}

void ttqrt(const CudaLaunch& launch) {
  check_launch(launch, 5);
  const auto p = launch.parameters.as<PanelParameters>();
  const std::int64_t w = launch.tiles[0].columns;
  const TileView v = rows_of(launch.tiles[0], 0, w);
  const TileView r = rows_of(launch.tiles[1], p.row, w);
  copy_upper(launch.context, rows_of(launch.tiles[3], p.row, w), r);
  copy_upper(launch.context, rows_of(launch.tiles[4], p.row, w), v);
  factor_tile_below(launch.context, r, v, launch.tiles[2], p.inner, Below::triangle);
}

void ttmqr(const CudaLaunch& launch) {
  run_on_pair(launch, Side::transposed);
}

void ttmqr_back(const CudaLaunch& launch) {
  run_on_pair(launch, Side::plain);
}

void copy_rows(const CudaLaunch& launch) {
  check_launch(launch, 2);
  const auto p = launch.parameters.as<PanelParameters>();
  copy_rows_to(launch.context, rows_of(launch.tiles[1], p.row, p.inner),
               rows_of(launch.tiles[0], p.row, p.inner));
}

void copy_triangle(const CudaLaunch& launch) {
  check_launch(launch, 2);
  const auto p = launch.parameters.as<PanelParameters>();
  copy_upper(launch.context, rows_of(launch.tiles[1], p.row, p.inner),
             rows_of(launch.tiles[0], p.row, p.inner));
}

}  // namespace heddle::kernel::cuda
