#include <atomic>
#include <chrono>
#include <cmath>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <limits>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "algorithms/qr/qr_matrix.hpp"
#include "kernels/kernels.hpp"
#include "node-runtime/node.hpp"
#include "node-runtime/node_facts.hpp"
#include "tests/support/dense.hpp"
#include "tests/support/lapack.hpp"
#include "tests/support/seeds.hpp"
#include "tests/threads/small_matrices.hpp"

namespace heddle {
namespace {

using testing::Dense;
using testing::element;
using testing::lapack_r;

/// A matrix of one node as a whole; zero where it has no tiles.
Dense gather(Matrix<double> matrix) {
  Dense all(matrix.rows(), matrix.columns());
  const TileLayout l = matrix.layout();
  matrix.for_each_tile([&](TileRow i, TileColumn c, TileView tile) {  // tiles do not overlap
    for (std::int64_t b = 0; b < tile.columns; ++b) {
      for (std::int64_t a = 0; a < tile.rows; ++a) {
        all(l.row_begin(i) + a, l.column_begin(c) + b) = tile(a, b);
      }
    }
  });
  return all;
}

/// Largest element of q r - a, r upper triangular.
double worst_of_product(const Dense& q, const Dense& r, const Dense& a) {
  double worst = 0;
  for (std::int64_t j = 0; j < a.columns; ++j) {
    for (std::int64_t i = 0; i < a.rows; ++i) {
      double sum = -a(i, j);
      for (std::int64_t k = 0; k <= std::min(j, q.columns - 1); ++k) sum += q(i, k) * r(k, j);
      worst = std::max(worst, std::abs(sum));
    }
  }
  return worst;
}

/// Largest element of q^T q - 1.
double worst_of_orthogonality(const Dense& q) {
  double worst = 0;
  for (std::int64_t j = 0; j < q.columns; ++j) {
    for (std::int64_t i = 0; i <= j; ++i) {
      double sum = i == j ? -1 : 0;
      for (std::int64_t k = 0; k < q.rows; ++k) sum += q(k, i) * q(k, j);
      worst = std::max(worst, std::abs(sum));
    }
  }
  return worst;
}

void check_tree(std::int64_t m, std::int64_t n, const QrLayout& layout, const std::string& yaml) {
  SCOPED_TRACE(fmt::format("{} x {}, tile {} strip {} small {} virtual {} inner {} {}; {}", m, n,
                           layout.tile, layout.strip, layout.small, layout.virtual_tiles,
                           layout.inner, layout.tree == QrTree::flat ? "flat" : "binomial", yaml));
  Node node(Config::from_text(yaml, "test"));
  const QrMatrix q = qr_matrix(node, m, n, layout, node.facts().distribution);
  Matrix<double>(q.a).fill(element);
  const Dense a = gather(q.a);
  Job factorization = node.submit(qr(q));
  ASSERT_EQ(factorization.wait().status, JobResult::Status::done);
  const Dense r = gather(q.r);
  const double within =
      50 * std::numeric_limits<double>::epsilon() * static_cast<double>(m + n + 10);
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t i = j + 1; i < n; ++i) ASSERT_EQ(r(i, j), 0) << i << ", " << j;
  }

  // Q as a matrix, from the identity.
  QrOperand thin = qr_operand(q, n);
  thin.x.fill([](std::int64_t, std::int64_t) { return 0.0; });
  thin.top.fill([](std::int64_t i, std::int64_t j) { return i == j ? 1.0 : 0.0; });
  ASSERT_EQ(node.submit(apply_q(q, thin)).wait().status, JobResult::Status::done);
  const Dense explicit_q = gather(thin.x);
  EXPECT_LT(worst_of_orthogonality(explicit_q), within);
  EXPECT_LT(worst_of_product(explicit_q, r, a), within);

  // And from the identity as a triangle, cut like A.
  QrOperand square = explicit_q_operand(q);
  square.x.fill([](std::int64_t, std::int64_t) { return 0.0; });
  square.top.fill([](std::int64_t i, std::int64_t j) { return i == j ? 1.0 : 0.0; });
  ASSERT_EQ(node.submit(apply_q_to_triangle(q, square)).wait().status, JobResult::Status::done);
  const Dense again = gather(square.x);
  EXPECT_LT(worst_of_orthogonality(again), within);
  EXPECT_LT(worst_of_product(again, r, a), within);

  // Q^T A is R over nothing, from a matrix that is cut like A but has no panels.
  QrOperand other = qr_operand(q, n);
  other.x.fill(element);
  ASSERT_EQ(node.submit(apply_q_transposed(q, other)).wait().status, JobResult::Status::done);
  const Dense top = gather(other.top);
  const Dense rest = gather(other.x);
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t i = 0; i < n; ++i) ASSERT_NEAR(top(i, j), r(i, j), within);
    for (std::int64_t i = n; i < m; ++i) ASSERT_NEAR(rest(i, j), 0, within);
  }
}

void check(std::int64_t m, std::int64_t n, QrLayout layout, const std::string& yaml) {
  for (const QrTree tree : {QrTree::flat, QrTree::binomial}) {
    layout.tree = tree;
    check_tree(m, n, layout, yaml);
  }
}

// ---- V is read while its tile is overwritten ----

std::atomic<bool> is_overwritten{false};
std::atomic<bool> was_overwritten_meanwhile{false};

/// Applies V once its tile's next version is written; without renaming that would never be, and it
/// goes on after a while.
std::int64_t apply_late(const KernelArguments& arguments) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (!is_overwritten && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  was_overwritten_meanwhile = is_overwritten.load();
  return kernel::unmqr.host(arguments);
}
std::int64_t overwrite(const KernelArguments& arguments) {
  for (std::int64_t j = 0; j < arguments.tiles[0].columns; ++j) {
    for (std::int64_t i = 0; i < arguments.tiles[0].rows; ++i) {
      arguments.tiles[0](i, j) = std::numeric_limits<double>::quiet_NaN();
    }
  }
  is_overwritten = true;
  return 0;
}
constexpr Kernel late_unmqr{.name = "late unmqr", .host = apply_late};
constexpr Kernel overwriting{.name = "overwriting", .host = overwrite};

}  // namespace

TEST(Qr, keeps_v_for_an_update_that_reads_it_while_its_tile_is_overwritten) {
  Node node(Config::from_text("runtime: {cpu_workers: 2}\n", "test"));
  const auto tile = [&] {
    MatrixSpec spec(24, 24);
    spec.layout.tile = 24;
    Matrix<double> matrix = node.matrix<double>(spec);
    matrix.fill(element);
    return matrix;
  };
  Matrix<double> v = tile();
  Matrix<double> r = tile();
  Matrix<double> t = tile();
  Matrix<double> c = tile();
  Matrix<double> d = tile();
  Matrix<double> expected = tile();
  const auto of = [](const Matrix<double>& m) { return m(TileRow{0}, TileColumn{0}); };
  TaskOptions options;
  options.parameters = KernelParameters(kernel::PanelParameters{0, 0, 24});
  UserStream stream = node.stream("renaming", {v, r, t, c, d, expected});
  stream.insert(kernel::geqrt, {read_write(of(v)), read_write(of(r)), write(of(t))}, options);
  stream.insert(kernel::unmqr,
                {read_write(of(expected)), read_write(of(d)), read(of(v)), read(of(t))}, options);
  stream.insert(late_unmqr, {read_write(of(c)), read_write(of(d)), read(of(v)), read(of(t))},
                options);
  stream.insert(overwriting, {write(of(v))}, options);
  ASSERT_EQ(stream.end().wait().status, JobResult::Status::done);
  EXPECT_TRUE(was_overwritten_meanwhile) << "the write waited for the reader";
  EXPECT_EQ(gather(c).elements, gather(expected).elements);
  EXPECT_TRUE(std::isnan(gather(v)(3, 3)));
}

TEST(Qr, agrees_with_lapack_on_random_shapes) {
  for (const std::uint64_t seed : simulation::seeds(120)) {
    std::mt19937_64 random(seed);
    const auto below = [&](std::int64_t end) {
      return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(end));
    };
    const std::int64_t n = 1 + below(70);
    const std::int64_t m = n + below(3) * below(100);
    QrLayout layout;
    layout.tile = 1 + below(40);
    layout.small = 1 + below(layout.tile);
    layout.strip = layout.small * below(layout.tile / layout.small + 1);
    layout.inner = static_cast<std::int32_t>(1 + below(layout.tile));
    layout.virtual_tiles = static_cast<std::int32_t>(1 + below(4));
    layout.tree = below(2) == 0 ? QrTree::flat : QrTree::binomial;
    const std::int64_t devices = below(3);
    Node node(Config::from_text(
        devices == 0 ? "runtime: {cpu_workers: 2}\n"
                     : fmt::format("runtime: {{cpu_workers: 1, devices: {{backend: emulated, "
                                   "per_node: {}, memory: 16MiB}}}}\n",
                                   devices),
        "test"));
    const QrMatrix q = qr_matrix(node, m, n, layout, node.facts().distribution);
    Matrix<double>(q.a).fill([&](std::int64_t i, std::int64_t j) {
      return element(i + static_cast<std::int64_t>(seed), j);
    });
    const Dense expected = lapack_r(gather(q.a));
    ASSERT_EQ(node.submit(qr(q)).wait().status, JobResult::Status::done);
    const Dense r = gather(q.r);
    const double within =
        50 * std::numeric_limits<double>::epsilon() * static_cast<double>(m + n + 10);
    for (std::int64_t i = 0; i < n; ++i) {
      // A row's sign is free; where R is nearly singular, rows are sensitive to rounding.
      if (std::abs(expected(i, i)) < 1e-3) break;
      const double sign = expected(i, i) * r(i, i) < 0 ? -1 : 1;
      for (std::int64_t j = i; j < n; ++j) {
        ASSERT_NEAR(r(i, j), sign * expected(i, j), 1e3 * within)
            << m << " x " << n << " (" << i << ", " << j << ")\n"
            << simulation::replay_hint(seed);
      }
    }
  }
}

TEST(Qr, gives_q_and_r_on_cpus) {
  const std::string two = "runtime: {cpu_workers: 2}\n";
  for (const std::int32_t v : {1, 2, 3, 100}) {
    check(150, 150, {.tile = 32, .virtual_tiles = v, .inner = 32}, two);
    check(233, 117, {.tile = 32, .virtual_tiles = v, .inner = 10}, two);
    check(400, 30, {.tile = 32, .virtual_tiles = v, .inner = 16}, two);
    check(399, 40, {.tile = 32, .virtual_tiles = v, .inner = 32}, two);
  }
  check(120, 100, {.tile = 40, .strip = 16, .small = 8, .virtual_tiles = 2, .inner = 7}, two);
  check(5, 5, {.tile = 64, .virtual_tiles = 4, .inner = 64}, two);
  check(1, 1, {.tile = 8, .virtual_tiles = 1, .inner = 8}, two);
  check(9, 0, {.tile = 8, .virtual_tiles = 1, .inner = 8}, two);
}

TEST(Qr, gives_q_and_r_with_emulated_devices) {
  for (const int devices : {1, 3}) {
    const std::string yaml = fmt::format(
        "runtime: {{cpu_workers: 2, devices: {{backend: emulated, per_node: {}, memory: "
        "64MiB}}}}\n",
        devices);
    check(200, 150, {.tile = 40, .strip = 16, .small = 8, .virtual_tiles = 2, .inner = 20}, yaml);
    check(150, 150, {.tile = 32, .virtual_tiles = 3, .inner = 32}, yaml);
  }
}

}  // namespace heddle
