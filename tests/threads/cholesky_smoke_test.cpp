#include <cmath>
#include <gtest/gtest.h>
#include <vector>

#include "algorithms/cholesky/cholesky.hpp"
#include "algorithms/cholesky/inverses.hpp"
#include "algorithms/matrix/generators.hpp"
#include "algorithms/solve/solve.hpp"
#include "node-runtime/node.hpp"

namespace heddle {
namespace {

double run(std::int64_t n, const std::string& yaml) {
  const Config config = Config::from_text(yaml, "test");
  Node node(config);
  MatrixSpec spec(n, n, Storage::lower);
  auto a = node.matrix<double>(spec);
  auto r = node.matrix<double>(spec);
  GeneratorOptions g;
  g.n = n;
  g.condition = 100;
  const auto source = make_generator(g);
  const auto fill = [&](GlobalRow i, GlobalColumn j, TileView t) {
    source->read(i, j, t);
    for (std::int64_t c = 0; c < t.columns; ++c) {
      for (std::int64_t k = 0; k < t.rows; ++k) {
        if (i.value() + k < j.value() + c) t(k, c) = 0;
      }
    }
  };
  a.fill(fill);
  r.fill(fill);
  auto x = right_hand_sides(a, 3);
  auto y = right_hand_sides(a, 3);
  const auto ones = [&](GlobalRow i, GlobalColumn, TileView t) {
    for (std::int64_t c = 0; c < t.columns; ++c) {
      for (std::int64_t k = 0; k < t.rows; ++k)
        t(k, c) = 1.0 + static_cast<double>(i.value() + k + c);
    }
  };
  x.fill(ones);
  y.fill(ones);
  EXPECT_EQ(node.submit(cholesky(a)).wait().status, JobResult::Status::done);
  EXPECT_EQ(node.submit(solve_cholesky(a, x)).wait().status, JobResult::Status::done);
  node.submit(subtract_symmetric_product(y, r, x)).wait();
  node.submit(subtract_product(r, a)).wait();
  double worst = 0;
  std::mutex m;
  const auto look = [&](TileRow, TileColumn, TileView t) {
    const std::lock_guard lock(m);
    for (std::int64_t c = 0; c < t.columns; ++c) {
      for (std::int64_t k = 0; k < t.rows; ++k) worst = std::max(worst, std::abs(t(k, c)));
    }
  };
  r.for_each_tile(look);
  EXPECT_LT(worst, 1e-12) << "factor";
  y.for_each_tile(look);
  return worst;
}

}  // namespace

TEST(CholeskySmoke, factors_and_solves_on_cpus) {
  EXPECT_LT(run(300, "layout: {tile: 64}\nruntime: {cpu_workers: 2}\n"), 1e-8);
  EXPECT_LT(run(1, "layout: {tile: 64}\nruntime: {cpu_workers: 1}\n"), 1e-8);
  EXPECT_LT(run(333, "layout: {tile: 64, strip: 32, small: 16}\nruntime: {cpu_workers: 2}\n"),
            1e-8);
}

TEST(CholeskySmoke, factors_and_solves_with_emulated_devices) {
  EXPECT_LT(run(333,
                "layout: {tile: 64, strip: 32, small: 16}\nruntime: {cpu_workers: 2, devices: "
                "{backend: emulated, per_node: 2}}\n"),
            1e-8);
}

}  // namespace heddle
