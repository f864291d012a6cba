#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/cholesky/cholesky.hpp"
#include "algorithms/qr/qr.hpp"
#include "algorithms/solve/solve.hpp"
#include "node-runtime/node.hpp"
#include "node-runtime/node_internals.hpp"
#include "node-runtime/threads/engine.hpp"
#include "tests/threads/small_devices.hpp"
#include "tests/threads/small_matrices.hpp"
#include "tests/threads/small_works.hpp"

/// Solves and products with factors that live on devices.
namespace heddle {
namespace {

using testing::expect_done;
using testing::Machine;
using testing::Outcome;
using testing::same_bits;
using testing::Work;

constexpr std::int64_t n = 333;
const std::string square_tiles = "tile: 64";
const std::string with_strips = "tile: 64, strip: 32, small: 16";

double side(std::int64_t i, std::int64_t j) {
  return std::cos(static_cast<double>(i + 7 * j));
}

/// x = inv(A) b, and b - A x.
Work cholesky_solve(const std::string& layout, std::int64_t sides) {
  return {fmt::format("Cholesky, {}, {} right-hand sides", layout, sides), layout,
          [sides](Node& node, Outcome& outcome) {
            Matrix<double> l = testing::dominant(node, n);
            Matrix<double> a = testing::dominant(node, n);
            Matrix<double> x = right_hand_sides(l, sides);
            Matrix<double> rest = right_hand_sides(l, sides);
            x.fill(side);
            rest.fill(side);
            expect_done(node.submit(cholesky(l, std::nullopt)));
            expect_done(node.submit(solve_cholesky(l, x)));
            expect_done(node.submit(subtract_symmetric_product(rest, a, x)));
            outcome.add(x);
            outcome.add(rest);
          }};
}

/// Least squares: x, and A^T (b - A x).
Work qr_solve(const std::string& layout, std::int64_t sides) {
  return {fmt::format("QR, {}, {} right-hand sides", layout, sides), layout,
          [sides](Node& node, Outcome& outcome) {
            const MatrixSpec spec = qr_spec(node, 500, 200);
            Matrix<double> a = node.matrix<double>(spec);
            Matrix<double> factored = node.matrix<double>(spec);
            a.fill(testing::element);
            factored.fill(testing::element);
            const QrFactors q = qr(node, factored);
            QrOperand b = q.operand(sides);
            b.x.fill(side);
            Matrix<double> x = right_hand_sides(q.r(), sides);
            QrOperand rest = q.operand(sides);
            rest.x.fill(side);
            rest.top.fill([](std::int64_t, std::int64_t) { return 0.0; });
            expect_done(node.submit(q.factorize()));
            expect_done(node.submit(q.apply_q_transposed(b)));
            expect_done(node.submit(solve_upper(q.r(), x, b.top)));
            expect_done(node.submit(subtract_product(rest.x, a, x)));
            expect_done(node.submit(subtract_transposed_product(rest.top, a, rest.x)));
            outcome.add(x);
            outcome.add(rest.top);
            expect_done(node.submit(q.apply_q(b)));
            outcome.add(b.x);
          }};
}

/// The largest magnitude in the second of two results of equal size.
double largest_of_second(const Outcome& outcome, std::int64_t size) {
  double most = 0;
  for (std::int64_t k = size; k < 2 * size; ++k) {
    most = std::max(most, std::abs(outcome.elements.at(static_cast<std::size_t>(k))));
  }
  return most;
}

}  // namespace

TEST(SolvesOnDevices, give_the_bits_of_the_host) {
  for (const std::string& layout : {square_tiles, with_strips}) {
    for (const std::int64_t sides : {1, 2, 33, 70}) {
      const Work work = cholesky_solve(layout, sides);
      SCOPED_TRACE(work.name);
      const Outcome expected = testing::outcome_of(work, {});
      EXPECT_LT(largest_of_second(expected, n * sides), 1e-12);
      for (const int devices : {1, 2, 3}) {
        EXPECT_TRUE(same_bits(testing::outcome_of(work, {.devices = devices}), expected))
            << devices << " devices";
      }
    }
  }
}

TEST(SolvesOnDevices, of_least_squares_give_the_bits_of_the_host) {
  const std::string tall = ", virtual: 2, inner: 8, hierarchy: off";
  for (const char* const tree : {"flat", "binomial"}) {
    for (const char* const layout : {"tile: 32", "tile: 32, strip: 16, small: 8"}) {
      for (const std::int64_t sides : {1, 2, 33}) {
        const Work work = qr_solve(layout + tall + ", tree: " + tree, sides);
        SCOPED_TRACE(work.name);
        const Outcome expected = testing::outcome_of(work, {});
        EXPECT_LT(largest_of_second(expected, 200 * sides), 1e-10);
        for (const int devices : {1, 2, 3}) {
          EXPECT_TRUE(same_bits(testing::outcome_of(work, {.devices = devices}), expected))
              << devices << " devices";
        }
      }
    }
  }
}

TEST(SolvesOnDevices, leave_a_factor_of_which_chosen_tiles_are_visited) {
  for (const int devices : {0, 2}) {
    Node node(testing::config_of({.devices = devices}, with_strips));
    Matrix<double> l = testing::dominant(node, n);
    std::mutex mutex;
    std::set<std::pair<std::int32_t, std::int32_t>> visited;
    l.for_each_tile(
        [&](TileRow i, TileColumn c, TileView) {
          const std::lock_guard lock(mutex);
          EXPECT_TRUE(visited.emplace(i.value(), c.value()).second);
        },
        [&](TileRow i, TileColumn c) { return i == l.layout().diagonal_row(c); });
    EXPECT_EQ(std::ssize(visited), l.layout().tile_columns());
    for (const auto& [i, c] : visited) {
      EXPECT_EQ(TileRow{i}, l.layout().diagonal_row(TileColumn{c}));
    }
  }
}

TEST(SolvesOnDevices, copy_blocks_of_right_hand_sides_and_no_tile_of_the_matrix) {
  constexpr std::int64_t tile = 64;
  for (const int devices : {1, 2, 3}) {
    for (const std::int64_t sides : {1, 2, 33}) {
      SCOPED_TRACE(fmt::format("{} devices, {} right-hand sides", devices, sides));
      Node node(testing::config_of({.devices = devices}, square_tiles));
      Matrix<double> l = testing::dominant(node, 6 * tile);
      Matrix<double> a = testing::dominant(node, 6 * tile);
      Matrix<double> x = right_hand_sides(l, sides);
      Matrix<double> y = right_hand_sides(l, sides);
      x.fill(side);
      y.fill(side);
      expect_done(node.submit(cholesky(l, std::nullopt)));
      const auto traffic = [&] { return NodeInternals(node).engine().counters().traffic(); };
      const auto before = traffic();
      expect_done(node.submit(solve_cholesky(l, x)));
      expect_done(node.submit(subtract_symmetric_product(y, a, x)));
      const auto after = traffic();
      const std::uint64_t copies = after.copies - before.copies;
      // Every block of right-hand sides has as many bytes, and a tile of the matrix has more.
      const std::uint64_t block = static_cast<std::uint64_t>(tile * sides) * sizeof(double);
      EXPECT_EQ(after.bytes_copied - before.bytes_copied, copies * block);
      EXPECT_EQ(copies == 0, devices == 1);
    }
  }
}

TEST(SolvesOnDevices, of_least_squares_copy_no_tiles_of_reflectors) {
  constexpr std::uint64_t block = 64 * sizeof(double);  // of one right-hand side
  for (const int devices : {2, 3}) {
    SCOPED_TRACE(fmt::format("{} devices", devices));
    Node node(
        testing::config_of({.devices = devices}, "tile: 32, virtual: 2, inner: 8, hierarchy: off"));
    Matrix<double> a = node.matrix<double>(qr_spec(node, 512, 192));
    a.fill(testing::element);
    const QrFactors q = qr(node, a);
    QrOperand b = q.operand(1);
    b.x.fill(side);
    Matrix<double> x = right_hand_sides(q.r(), 1);
    expect_done(node.submit(q.factorize()));
    const auto traffic = [&] { return NodeInternals(node).engine().counters().traffic(); };
    const auto before = traffic();
    for (const JobSpec& spec :
         {q.apply_q_transposed(b), solve_upper(q.r(), x, b.top), q.apply_q(b)}) {
      expect_done(node.submit(spec));
    }
    const auto after = traffic();
    EXPECT_GT(after.copies, before.copies);
    EXPECT_LE(after.bytes_copied - before.bytes_copied, (after.copies - before.copies) * block);
  }
}

}  // namespace heddle
