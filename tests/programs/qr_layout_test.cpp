#include <gtest/gtest.h>
#include <string>

#include "algorithms/qr/layout.hpp"
#include "base/error.hpp"
#include "node-runtime/node_facts.hpp"

namespace heddle {
namespace {

NodeFacts nodes_with(std::int32_t nodes, std::int32_t workers_of_all, std::int32_t own_workers) {
  NodeFacts facts;
  facts.nodes = nodes;
  facts.distribution = {1, nodes, 0};
  facts.cpu_workers = own_workers;
  facts.cpu_workers_of_all = workers_of_all;
  return facts;
}

/// All that nodes have to agree on.
void expect_equal(const QrCut& a, const QrCut& b) {
  EXPECT_EQ(a.layout.tile, b.layout.tile);
  EXPECT_EQ(a.layout.strip, b.layout.strip);
  EXPECT_EQ(a.layout.small, b.layout.small);
  EXPECT_EQ(a.layout.virtual_tiles, b.layout.virtual_tiles);
  EXPECT_EQ(a.layout.inner, b.layout.inner);
  EXPECT_EQ(a.layout.tree, b.layout.tree);
  EXPECT_EQ(a.distribution, b.distribution);
}

}  // namespace

TEST(QrLayout, is_the_same_on_nodes_with_unequal_numbers_of_workers) {
  for (const std::int64_t m : {100, 1000, 4000, 40000, 400000}) {
    for (const std::int64_t n : {10, 100, 500, 4000}) {
      if (m < n) continue;
      SCOPED_TRACE(std::to_string(m) + " x " + std::to_string(n));
      const QrCut few = choose_qr_cut(m, n, {}, nodes_with(2, 33, 1));
      expect_equal(few, choose_qr_cut(m, n, {}, nodes_with(2, 33, 32)));
    }
  }
}

TEST(QrLayout, deals_tall_matrices_out_by_rows_and_joins_them_in_pairs) {
  const QrCut tall = choose_qr_cut(40000, 500, {}, nodes_with(4, 8, 2));
  EXPECT_EQ(tall.distribution.grid_rows, 4);
  EXPECT_EQ(tall.layout.tree, QrTree::binomial);
  const QrCut square = choose_qr_cut(4000, 4000, {}, nodes_with(4, 8, 2));
  EXPECT_EQ(square.distribution.grid_columns, 4);
  EXPECT_EQ(square.layout.tree, QrTree::flat);
}

TEST(QrLayout, has_lower_tiles_the_more_workers_wait_for_a_chain_of_them) {
  const auto rows_on = [](std::int64_t n, std::int32_t nodes, std::int32_t workers) {
    NodeFacts facts = nodes_with(nodes, nodes * workers, workers);
    facts.distribution = nodes == 4 ? Distribution{2, 2, 0} : Distribution{1, nodes, 0};
    const QrLayout layout = choose_qr_cut(n, n, {}, facts).layout;
    return layout.tile * layout.virtual_tiles;
  };
  EXPECT_GT(rows_on(4000, 1, 2), 900);  // good for the kernels
  EXPECT_LT(rows_on(4000, 1, 16), 1000);
  EXPECT_LT(rows_on(4000, 4, 6), 700);
  EXPECT_GE(rows_on(2000, 4, 6), 240);  // fewer cost more than they win
  for (const std::int64_t n : {1000, 2000, 4000, 8000}) {
    EXPECT_LE(rows_on(n, 1, 16), rows_on(n, 1, 2)) << n;
    EXPECT_LE(rows_on(n, 4, 6), rows_on(n, 1, 6)) << n;
  }
  EXPECT_GT(rows_on(20000, 1, 16), 900);  // much to do beside a chain
}

TEST(QrLayout, takes_what_the_configuration_says) {
  config::Layout wanted;
  wanted.tile = 40;
  wanted.inner = 7;
  wanted.virtual_tiles = 3;
  wanted.tree = config::Tree::binomial;
  wanted.grid = config::Grid{1, 2};
  const QrCut cut = choose_qr_cut(40000, 500, wanted, nodes_with(2, 2, 1));
  EXPECT_EQ(cut.layout.tile, 40);
  EXPECT_EQ(cut.layout.inner, 7);
  EXPECT_EQ(cut.layout.virtual_tiles, 3);
  EXPECT_EQ(cut.layout.tree, QrTree::binomial);
  EXPECT_EQ(cut.distribution.grid_columns, 2);
  wanted.inner = 41;
  EXPECT_THROW(static_cast<void>(choose_qr_cut(400, 50, wanted, nodes_with(2, 2, 1))), Error);
}

TEST(QrLayout, is_possible_for_all_sizes) {
  for (std::int64_t n = 0; n < 700; n += 23) {
    for (const std::int64_t m : {n, n + 1, 5 * n, 4000 + n}) {
      const QrCut cut = choose_qr_cut(m, n, {}, nodes_with(3, 6, 2));
      EXPECT_GE(cut.layout.tile, 1);
      EXPECT_GE(cut.layout.virtual_tiles, 1);
      EXPECT_LE(cut.layout.inner, cut.layout.tile);
    }
  }
}

}  // namespace heddle
