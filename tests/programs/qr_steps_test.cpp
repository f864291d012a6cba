#include <algorithm>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <map>
#include <utility>
#include <vector>

#include "algorithms/qr/steps.hpp"

namespace heddle::qr_tree {
namespace {

using Kind = Step::Kind;
using Place = std::pair<TileRow, Rows::Slot>;

Place place(const Rows& rows) {
  return {rows.tile, rows.slot};
}

/// All panels of up to 40 tall tiles, with and without a short last one.
template <class Check>
void for_panels(const Check& check) {
  for (const QrTree tree : {QrTree::flat, QrTree::binomial}) {
    for (std::int32_t rows = 1; rows <= 40; ++rows) {
      for (std::int32_t top = std::max(0, rows - 20); top < rows; ++top) {
        for (const bool has_short : {false, true}) {
          if (has_short && top + 1 == rows) continue;
          SCOPED_TRACE(fmt::format("{} top {} rows {} short {}",
                                   tree == QrTree::flat ? "flat" : "binomial", top, rows,
                                   has_short));
          check(tree, TileRow{top}, TileRow{rows}, has_short);
        }
      }
    }
  }
}

}  // namespace

TEST(QrTree, knows_in_closed_form_which_task_takes_the_rows_that_another_one_left) {
  for_panels([](QrTree tree, TileRow top, TileRow end, bool has_short) {
    for (const Way way : {Way::down, Way::up}) {
      for (const Step& step : make_steps(tree, top, end, has_short, way)) {
        const auto taker = [&](const Rows& rows) {
          return taker_of(tree, top, end, has_short, way, rows).value();
        };
        const bool takes_in = way == Way::up || step.kind != Kind::leaf;
        if (takes_in && (way == Way::up || step.in.slot != Rows::Slot::r)) {
          EXPECT_EQ(taker(step.in), step.tile.value());
        }
        if (way == Way::down && step.kind == Kind::pair) {
          EXPECT_EQ(taker(step.own), step.tile.value());
        }
      }
    }
  });
}

TEST(QrTree, joins_the_rows_of_all_tiles_to_one_on_the_way_down) {
  for_panels([](QrTree tree, TileRow top, TileRow end, bool has_short) {
    // Whose rows stand in a slot; each is taken once after it was left.
    std::map<Place, std::vector<TileRow>> standing;
    const auto take = [&](const Rows& from) {
      const auto found = standing.find(place(from));
      EXPECT_NE(found, standing.end()) << "nothing stands where it is taken from";
      if (found == standing.end()) return std::vector<TileRow>{};
      return standing.extract(found).mapped();
    };
    const auto leave = [&](const Rows& to, std::vector<TileRow> tiles) {
      EXPECT_TRUE(standing.emplace(place(to), std::move(tiles)).second) << "still needed";
    };
    bool is_home = end == top + 1;
    for (const Step& step : make_steps(tree, top, end, has_short, Way::down)) {
      std::vector<TileRow> tiles;
      if (step.kind != Kind::leaf) tiles = take(step.in);
      if (step.kind == Kind::pair) {
        const std::vector<TileRow> own = take(step.own);
        EXPECT_TRUE(std::find(own.begin(), own.end(), step.tile) != own.end());
        tiles.insert(tiles.end(), own.begin(), own.end());
      } else if (step.kind != Kind::home) {
        tiles.push_back(step.tile);
      }
      if (step.kind == Kind::home) {
        is_home = true;
        EXPECT_EQ(static_cast<std::int32_t>(tiles.size()), end - top);
      } else {
        // R's tile is written last, so that no panel waits there for the one before it.
        EXPECT_EQ(step.out.slot == Rows::Slot::r, is_home);
        EXPECT_EQ(step.out.tile, step.tile);
        leave(step.out, std::move(tiles));
      }
    }
    EXPECT_TRUE(is_home);
    EXPECT_EQ(standing.size(), end == top + 1 ? 1U : 0U);
  });
}

TEST(QrTree, takes_the_same_steps_backwards_on_the_way_up) {
  for_panels([](QrTree tree, TileRow top, TileRow end, bool has_short) {
    std::map<Kind, std::vector<TileRow>> down;
    std::map<Kind, std::vector<TileRow>> up;
    for (const Step& s : make_steps(tree, top, end, has_short, Way::down)) {
      if (s.kind != Kind::home) down[s.kind].push_back(s.tile);
    }
    std::map<Place, int> standing{{{top, Rows::Slot::r}, 1}};
    const auto take = [&](const Rows& from) { EXPECT_EQ(standing[place(from)]--, 1); };
    for (const Step& s : make_steps(tree, top, end, has_short, Way::up)) {
      up[s.kind].push_back(s.tile);
      take(s.in);
      if (s.kind == Kind::pair) ++standing[place(s.own)];
      if (s.kind != Kind::leaf) ++standing[place(s.out)];
    }
    for (const auto& [where, count] : standing) EXPECT_EQ(count, 0) << "left behind";
    for (auto& [kind, tiles] : down) std::sort(tiles.begin(), tiles.end());
    for (auto& [kind, tiles] : up) std::sort(tiles.begin(), tiles.end());
    EXPECT_EQ(down, up);
  });
}

TEST(QrTree, is_a_chain_or_as_deep_as_the_logarithm) {
  for_panels([](QrTree tree, TileRow top, TileRow end, bool has_short) {
    std::map<Place, int> depth;
    int deepest = 0;
    for (const Step& s : make_steps(tree, top, end, has_short, Way::down)) {
      if (s.kind == Kind::home) continue;
      int here = s.kind == Kind::leaf ? 0 : depth[place(s.in)];
      if (s.kind == Kind::pair) here = std::max(here, depth[place(s.own)]);
      deepest = depth[place(s.out)] = here + 1;
    }
    const int count = end - top;
    if (tree == QrTree::flat) {
      EXPECT_EQ(deepest, count);
    } else {
      int levels = 0;
      for (int joined = 1; joined < count; joined *= 2) ++levels;
      EXPECT_LE(deepest, levels + 2);  // the leaves, and a short last tile
    }
  });
}

TEST(QrTree, crosses_nodes_in_the_last_levels_only_where_tiles_go_round_a_power_of_two_of_them) {
  constexpr std::int32_t nodes = 4;
  constexpr std::int32_t rows = 37;
  for (std::int32_t top = 0; top + nodes < rows; ++top) {
    int crossings = 0;
    for (const Step& s :
         make_steps(QrTree::binomial, TileRow{top}, TileRow{rows}, false, Way::down)) {
      if (s.kind == Kind::pair && s.in.tile.value() % nodes != s.tile.value() % nodes) ++crossings;
    }
    EXPECT_EQ(crossings, nodes - 1) << "top " << top;
  }
}

}  // namespace heddle::qr_tree
