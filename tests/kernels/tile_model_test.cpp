#include "node-runtime/machine/tile_model.hpp"

#include <gtest/gtest.h>
#include <tuple>

#include "kernels/kernels.hpp"

namespace heddle::test {
namespace {

double cube(std::int64_t n) {
  return static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
}

/// Kernels on tiles that run at `rate` GFLOP/s, potrf at `panel_rate`, each `overhead_us` longer.
KernelTimes squares(double rate, double panel_rate, double overhead_us) {
  KernelTimes times;
  for (const std::int64_t b : {256, 512, 1024, 2048, 4096}) {
    times.push_back({&kernel::potrf, b, b, 0, cube(b) / 3 / panel_rate * 1e-3 + overhead_us});
    times.push_back({&kernel::trsm, b, b, 0, cube(b) / rate * 1e-3 + overhead_us});
    times.push_back({&kernel::syrk, b, b, 0, cube(b) / rate * 1e-3 + overhead_us});
    times.push_back({&kernel::gsmm, b, b, 0, 2 * cube(b) / rate * 1e-3 + overhead_us});
  }
  return times;
}

/// Panels of one width whose updates run at `rate` and whose columns take `column_us` each.
void add_panels(KernelTimes& times, std::int64_t width, double rate, double column_us) {
  for (const std::int64_t rows : {4096, 16384}) {
    const auto m = static_cast<double>(rows);
    const auto w = static_cast<double>(width);
    times.push_back(
        {&kernel::geqrt, rows, width, 256, w * column_us + 2 * m * w * w / rate * 1e-3});
    times.push_back({&kernel::unmqr, rows, width, 256, 4 * m * w * w / rate * 1e-3});
  }
}

}  // namespace

TEST(TileModel, interpolates_between_measured_sizes_by_powers) {
  const KernelTimes times{{&kernel::gsmm, 256, 256, 0, 10}, {&kernel::gsmm, 1024, 1024, 0, 640}};
  EXPECT_DOUBLE_EQ(*square_tile_seconds(times, kernel::gsmm, 256), 10e-6);
  EXPECT_NEAR(*square_tile_seconds(times, kernel::gsmm, 512), 80e-6, 1e-12);
  EXPECT_FALSE(square_tile_seconds(times, kernel::gsmm, 128));
  EXPECT_FALSE(square_tile_seconds(times, kernel::gsmm, 2048));
  EXPECT_FALSE(square_tile_seconds(times, kernel::syrk, 512));
}

TEST(TileModel, counts_all_work_of_one_place) {
  // 3 potrf, 3 trsm, 3 syrk; updates below the diagonal as the area of a triangle, 2^2 / 2 + 1 / 2.
  const KernelTimes times{{&kernel::potrf, 256, 256, 0, 1},
                          {&kernel::trsm, 256, 256, 0, 2},
                          {&kernel::syrk, 256, 256, 0, 4},
                          {&kernel::gsmm, 256, 256, 0, 8}};
  EXPECT_NEAR(*cholesky_seconds(times, 768, 256, {}), (3 * 1 + 3 * 2 + 3 * 4 + 2.5 * 8) * 1e-6,
              1e-12);
}

TEST(TileModel, prefers_large_tiles_where_each_kernel_costs_something_and_one_place_works) {
  EXPECT_EQ(best_cholesky_tile(squares(1000, 1000, 20000), 32768, {}), 4096);
}

TEST(TileModel, prefers_smaller_tiles_where_panels_are_slow_and_many_places_wait_for_them) {
  const KernelTimes slow_panels = squares(50000, 1000, 5);
  const auto alone = best_cholesky_tile(slow_panels, 32768, {.places = 1});
  const auto among_eight = best_cholesky_tile(slow_panels, 32768, {.places = 8});
  ASSERT_TRUE(alone && among_eight);
  EXPECT_LT(*among_eight, *alone);
}

TEST(TileModel, grows_tiles_with_the_matrix) {
  const KernelTimes times = squares(50000, 2000, 20);
  std::int64_t last = 0;
  for (const std::int64_t n : {1000, 4000, 16000, 64000}) {
    const auto tile = best_cholesky_tile(times, n, {.places = 4});
    ASSERT_TRUE(tile);
    EXPECT_GE(*tile, last) << n;
    EXPECT_LE(2 * *tile, n);
    last = *tile;
  }
  EXPECT_GT(last, 1000);
}

TEST(TileModel, cuts_a_matrix_into_as_many_tiles_as_are_asked_for_if_there_are_such_sizes) {
  const KernelTimes times = squares(1000, 1000, 20000);  // larger is better
  EXPECT_EQ(best_cholesky_tile(times, 8192, {.tiles_min = 8}), 1024);
  EXPECT_EQ(best_cholesky_tile(times, 65536, {.tiles_min = 8}), 4096);
  EXPECT_EQ(best_cholesky_tile(times, 1024, {.tiles_min = 8}), 256);
  EXPECT_EQ(best_cholesky_tile(times, 1024, {}), 512);
}

TEST(TileModel, takes_larger_tiles_where_they_travel_slowly) {
  const KernelTimes times = squares(50000, 20000, 0);
  const auto near = best_cholesky_tile(times, 16384, {.places = 8, .exchange_rate = 1000});
  const auto far = cholesky_seconds(times, 16384, 512, {.places = 8, .exchange_rate = 1});
  ASSERT_TRUE(near && far);
  EXPECT_GT(*far, *cholesky_seconds(times, 16384, 512, {.places = 8, .exchange_rate = 1000}));
}

TEST(TileModel, takes_no_smaller_tiles_than_one_thread_generates_in_time) {
  const KernelTimes times = squares(50000, 50000, 0);  // the smaller, the shorter the chain
  const auto many = best_cholesky_tile(times, 16384, {.places = 1000});
  const auto few = best_cholesky_tile(times, 16384, {.places = 1000, .nodes = 1000});
  ASSERT_TRUE(many && few);
  EXPECT_GT(*many, *few);
  // In each of 64 steps so many places take no longer than one thread for half a microsecond each
  // of 64 * 65 * 66 / 6 tasks, but for the chains at the end.
  const double least = 45760 * 0.5e-6;
  const double seconds = *cholesky_seconds(squares(5e6, 5e6, 0), 16384, 256, {.places = 1000000});
  EXPECT_GE(seconds, least);
  EXPECT_LE(seconds, 1.01 * least);
}

TEST(TileModel, says_nothing_without_measurements_or_for_tiny_matrices) {
  EXPECT_FALSE(best_cholesky_tile({}, 4000, {}));
  EXPECT_FALSE(best_cholesky_tile({{&kernel::gsmm, 256, 256, 0, 10}}, 4000, {}));
  EXPECT_FALSE(best_cholesky_tile(squares(1000, 1000, 1), 500, {}));
  EXPECT_FALSE(best_panel_cut({}, 4000, 4000, {}));
  EXPECT_FALSE(best_panel_cut(squares(1000, 1000, 1), 4000, 4000, {}));
}

TEST(TileModel, takes_the_width_of_panels_that_their_updates_hide) {
  KernelTimes times;
  add_panels(times, 256, 30000, 10);
  add_panels(times, 1024, 45000, 10);
  // Wide panels have the faster updates: one device is best off with them. Eight wait for panels.
  EXPECT_EQ(best_panel_cut(times, 16384, 16384, {.places = 1}), (PanelCut{1024, 256}));
  EXPECT_EQ(best_panel_cut(times, 16384, 16384, {.places = 64}), (PanelCut{256, 256}));
  EXPECT_FALSE(best_panel_cut(times, 16384, 400, {.places = 1}));
}

TEST(TileModel, lets_the_next_panel_on_cpus_wait_for_one_tall_tile) {
  KernelTimes times;
  for (const std::int64_t rows : {1024, 2048}) {
    for (const auto& [width, panel, update] : {std::tuple{48, 17e3, 42e3}, {96, 23.7e3, 47e3}}) {
      const double flops = 2.0 * static_cast<double>(rows) * width * width;
      times.push_back({&kernel::geqrt, rows, width, 48, flops / panel});
      times.push_back({&kernel::tsmqr, rows, width, 48, 2 * flops / update});
    }
  }
  // A whole column of 4000 rows would hold 16 workers up, and narrow panels be best for all sizes.
  EXPECT_EQ(best_panel_cut(times, 4000, 4000, {.places = 16}), (PanelCut{96, 48}));
  EXPECT_EQ(best_panel_cut(times, 900, 900, {.places = 16}), (PanelCut{48, 48}));  // ten at least
}

TEST(TileModel, cuts_columns_on_cpus_into_tiles_of_the_best_height) {
  KernelTimes times;
  for (const std::int64_t rows : {384, 1152, 1920}) {
    const auto m = static_cast<double>(rows);
    times.push_back({&kernel::geqrt, rows, 96, 48, m});
    times.push_back({&kernel::tsmqr, rows, 96, 48, rows == 1152 ? m : 2 * m});
  }
  const PanelCut cut{96, 48};
  EXPECT_EQ(best_panel_height(times, 10000, 10000, cut, {.places = 1}), 1152);
  EXPECT_FALSE(best_panel_height(times, 10000, 10000, {192, 48}, {}));
  // One panel alone, and one worker: as long as its geqrt, one after the other, and their tops.
  const double top = tall_tile_top(96) / 12;
  EXPECT_NEAR(*qr_seconds(times, 1152, 96, cut, {}), 1152e-6 * (1 + top), 1e-9);
  EXPECT_LE(*qr_seconds(times, 11520, 96, cut, {}), 11520e-6 * (1 + top));
  EXPECT_GE(*qr_seconds(times, 11520, 96, cut, {}), 11520e-6);
}

TEST(TileModel, takes_lower_tiles_the_more_workers_wait_for_a_chain_of_them) {
  KernelTimes times;
  for (const std::int64_t rows : {1024, 2048}) {
    const auto m = static_cast<double>(rows);
    times.push_back({&kernel::geqrt, rows, 96, 48, m});
    times.push_back({&kernel::tsmqr, rows, 96, 48, m});
  }
  const PanelCut cut{96, 48};
  const auto height = [&](std::int64_t n, std::int64_t workers) {
    return *best_panel_height(times, n, n, cut, {.places = workers});
  };
  EXPECT_GT(height(4000, 2), height(4000, 16));
  EXPECT_GT(height(4000, 16), height(4000, 64));
  EXPECT_LT(height(4000, 64), 500);  // below what was measured
  EXPECT_GT(height(20000, 64), height(4000, 64));
}

TEST(TileModel, gives_the_cpus_a_strip_only_where_their_share_is_worth_it) {
  const KernelTimes host{{&kernel::gsmm, 512, 512, 0, 2000}};
  const KernelTimes fast{{&kernel::gsmm, 512, 512, 0, 5}};
  const KernelTimes slow{{&kernel::gsmm, 512, 512, 0, 500}};
  EXPECT_EQ(worthwhile_strip(host, 16, fast, 1, 1024, 64), 0);
  // 4 workers are as fast as the device: half of the tile.
  EXPECT_EQ(worthwhile_strip(host, 4, slow, 1, 1024, 64), 512);
  EXPECT_EQ(worthwhile_strip(host, 4, slow, 1, 1000, 64), 448);
  EXPECT_EQ(worthwhile_strip({}, 4, slow, 1, 1024, 64), 0);
}

}  // namespace heddle::test
