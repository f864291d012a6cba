#pragma once

#include <cstdint>
#include <cstring>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <utility>

#include "algorithms/cholesky/cholesky.hpp"
#include "algorithms/cholesky/inverses.hpp"
#include "algorithms/qr/qr_matrix.hpp"
#include "algorithms/solve/solve.hpp"
#include "node-runtime/node_facts.hpp"
#include "node-runtime/node_faults.hpp"
#include "tests/threads/small_devices.hpp"
#include "tests/threads/small_matrices.hpp"

/// What is done on nodes with small devices, whose bits are known from runs without any.
namespace heddle::testing {

[[nodiscard]] inline JobSpec cholesky_of(Node& node, const Matrix<double>& a, std::int64_t inner) {
  if (inner == 0) return cholesky(a, std::nullopt);
  return cholesky(a, node.matrix<double>(inverses_spec(a, inner)));
}

inline void expect_done(Job job) {
  EXPECT_EQ(job.wait().status, JobResult::Status::done);
}

[[nodiscard]] inline Work cholesky_work(std::int64_t n, const std::string& layout,
                                        std::int64_t inner = 0) {
  return {fmt::format("Cholesky of order {}, {}, inverse blocks of {}", n, layout, inner), layout,
          [n, inner](Node& node, Outcome& outcome) {
            Matrix<double> a = dominant(node, n);
            Matrix<double> x = right_hand_sides(a, 3);
            x.fill(element);
            outcome.measure(node, {a, x});
            Job factorization = node.submit(cholesky_of(node, a, inner));
            Job solution = node.submit(solve_cholesky(a, x));
            expect_done(factorization);
            expect_done(solution);
            outcome.add(a);
            outcome.add(x);
          }};
}

[[nodiscard]] inline Work qr_work(std::int64_t m, std::int64_t n, const QrLayout& layout) {
  return {fmt::format("QR of {} x {} with a {} tree", m, n,
                      layout.tree == QrTree::flat ? "flat" : "binomial"),
          "tile: auto", [m, n, layout](Node& node, Outcome& outcome) {
            const QrMatrix q = qr_matrix(node, m, n, layout, node.facts().distribution);
            Matrix<double>(q.a).fill(element);
            QrOperand x = qr_operand(q, 4);
            x.x.fill(element);
            outcome.measure(node, {q.a, q.t, q.r, q.traveling_r, x.x, x.top, x.traveling});
            if (q.pair_v) outcome.measure(node, {*q.pair_v, *q.pair_t});
            for (const JobSpec& spec : {qr(q), apply_q_transposed(q, x), apply_q(q, x)}) {
              expect_done(node.submit(spec));
            }
            outcome.add(q.a);
            outcome.add(q.r);
            outcome.add(x.x);
          }};
}

[[nodiscard]] inline bool same_bits(const Outcome& a, const Outcome& b) {
  return a.elements.size() == b.elements.size() &&
         std::memcmp(a.elements.data(), b.elements.data(), a.elements.size() * sizeof(double)) == 0;
}

/// The faults of a seed: streams that drift against each other, copies that come late, devices that
/// do not reach each other.
[[nodiscard]] inline NodeFaults faults_of(std::uint64_t seed) {
  NodeFaults faults;
  faults.devices.seed = seed;
  if (seed % 3 == 1) faults.devices.delay_us_max = 60;
  faults.devices.refuse_peers = seed % 2 == 1;
  if (seed % 4 == 2) {
    faults.devices.slow_copy = 40;
    faults.devices.slow_copy_us = 20'000;
  }
  if (seed % 5 == 3) faults.extra_blocks_max = 0;
  return faults;
}

inline constexpr QrLayout qr_layout{
    .tile = 16, .strip = 8, .small = 4, .virtual_tiles = 2, .inner = 5};

[[nodiscard]] inline QrLayout with_tree(QrLayout layout, QrTree tree) {
  layout.tree = tree;
  return layout;
}

// ---- streams of users --------------------------------------------------------------------------

[[nodiscard]] inline std::int64_t add_one(const KernelArguments& arguments) {
  const TileView& tile = arguments.tiles[0];
  for (std::int64_t j = 0; j < tile.columns; ++j) {
    for (std::int64_t i = 0; i < tile.rows; ++i) tile(i, j) += 1;
  }
  return 0;
}
[[nodiscard]] inline std::int64_t twice_plus_input(const KernelArguments& arguments) {
  const TileView& tile = arguments.tiles[0];
  for (std::int64_t j = 0; j < tile.columns; ++j) {
    for (std::int64_t i = 0; i < tile.rows; ++i) {
      tile(i, j) = 2 * tile(i, j) + arguments.tiles[1](i, j);
    }
  }
  return 0;
}
inline constexpr Kernel increment{.name = "increment", .host = add_one, .emulated = add_one};
inline constexpr Kernel accumulate{
    .name = "accumulate", .host = twice_plus_input, .emulated = twice_plus_input};
/// The same, but only the CPUs can.
inline constexpr Kernel staged_increment{.name = "staged increment", .host = add_one};
inline constexpr Kernel staged_accumulate{.name = "staged accumulate", .host = twice_plus_input};

/// Writes that overtake readers of the old content, reads across devices, and kernels that devices
/// lack, in chains over the tiles of a matrix.
[[nodiscard]] inline Work stream_work() {
  return {"a stream of a user", "tile: 16, strip: 0", [](Node& node, Outcome& outcome) {
            Matrix<double> m = node.matrix<double>(160, 240);
            m.fill(element);
            outcome.measure(node, {m});
            UserStream stream = node.stream("chains", {m});
            for (int round = 0; round < 5; ++round) {
              for (int c = 0; c < 15; ++c) {
                for (int i = 0; i < 10; ++i) {
                  const TileRef tile = m(TileRow{i}, TileColumn{c});
                  const TileRef left = m(TileRow{(i + round) % 10}, TileColumn{(c + 14) % 15});
                  const bool is_staged = (i + c + round) % 4 == 0;
                  stream.insert(is_staged ? staged_accumulate : accumulate,
                                {read_write(tile), read(left)});
                  stream.insert(is_staged ? increment : staged_increment, {read_write(left)});
                }
              }
            }
            expect_done(stream.end());
            outcome.add(m);
          }};
}

}  // namespace heddle::testing
