#include "algorithms/matrix/source.hpp"

#include <gtest/gtest.h>
#include <vector>

#include "algorithms/matrix/matrix_file.hpp"
#include "tests/matrix/files.hpp"

namespace heddle {

namespace {

/// How often each element of an n x n matrix is wanted, by all nodes together.
std::vector<int> wanted_counts(const TileLayout& layout, const Distribution& distribution,
                               WantedPart part) {
  std::vector<int> counts(static_cast<std::size_t>(layout.rows * layout.columns));
  for (std::int32_t node = 0; node < distribution.node_count(); ++node) {
    const WantedRows wanted = wanted_by_node(layout, distribution, NodeId{node}, part);
    for (std::int64_t j = 0; j < layout.columns; ++j) {
      std::vector<RowRange> ranges;
      wanted(GlobalColumn{j}, ranges);
      GlobalRow last{-1};
      for (const RowRange& range : ranges) {
        EXPECT_LT(last, range.begin);
        EXPECT_LT(range.begin, range.end);
        last = range.end;
        for (GlobalRow i = range.begin; i < range.end; ++i) {
          ++counts[static_cast<std::size_t>(i.value() + j * layout.rows)];
        }
      }
    }
  }
  return counts;
}

}  // namespace

TEST(WantedByNode, parts_the_matrix_among_the_nodes) {
  const TileLayout layout{.rows = 23, .columns = 17, .tile = 4, .strip = 2, .small = 1};
  const Distribution distribution{.grid_rows = 2, .grid_columns = 3};
  for (const int count : wanted_counts(layout, distribution, WantedPart::all_tiles)) {
    EXPECT_EQ(count, 1);
  }
}

TEST(WantedByNode, lower_tiles_are_those_on_and_below_the_diagonal_tiles) {
  const TileLayout layout{.rows = 18, .columns = 18, .tile = 4};
  const Distribution distribution{.grid_rows = 2, .grid_columns = 3};
  const auto counts = wanted_counts(layout, distribution, WantedPart::lower_tiles);
  for (std::size_t j = 0; j < 18; ++j) {
    for (std::size_t i = 0; i < 18; ++i) EXPECT_EQ(counts[i + j * 18], i / 4 >= j / 4 ? 1 : 0);
  }
}

TEST(WantedByNode, mirrors_go_to_the_node_of_the_tile_they_mirror) {
  const TileLayout layout{.rows = 18, .columns = 18, .tile = 4};
  const Distribution distribution{.grid_rows = 2, .grid_columns = 2};
  for (const int count : wanted_counts(layout, distribution, WantedPart::lower_tiles_and_mirrors)) {
    EXPECT_EQ(count, 1);
  }
  // Tile (1, 0) is node 2's, and so is its mirror (0, 1).
  std::vector<RowRange> ranges;
  wanted_by_node(layout, distribution, NodeId{2}, WantedPart::lower_tiles_and_mirrors)(
      GlobalColumn{5}, ranges);
  ASSERT_FALSE(ranges.empty());
  EXPECT_EQ(ranges.front(), (RowRange{GlobalRow{0}, GlobalRow{4}}));
}

TEST(WantedByNode, refuses_an_invalid_layout_and_the_lower_tiles_of_a_rectangle) {
  const auto wanted = [](const TileLayout& layout, WantedPart part) {
    static_cast<void>(wanted_by_node(layout, Distribution{}, NodeId{0}, part));
  };
  testing::expect_error(ErrorCode::usage, {"wanted_by_node", "18 x 18 in tiles of 0"}, [&] {
    wanted({.rows = 18, .columns = 18, .tile = 0}, WantedPart::all_tiles);
  });
  testing::expect_error(ErrorCode::usage, {"wanted_by_node", "18 x 12", "square"}, [&] {
    wanted({.rows = 18, .columns = 12, .tile = 4}, WantedPart::lower_tiles_and_mirrors);
  });
}

TEST(OpenMatrixFile, refuses_names_that_tell_no_format) {
  for (const char* name : {"k.csv", "k", "npy", "k.npy.gz"}) {
    testing::expect_error(ErrorCode::usage, {name, ".npy", ".mtx"},
                          [&] { static_cast<void>(open_matrix_file(name)); });
  }
}

TEST(OpenMatrixFile, takes_the_format_from_the_ending) {
  const testing::TemporaryFolder folder;
  const std::string path =
      folder.write("a.MTX", "%%MatrixMarket matrix array real general\n1 1\n4\n");
  const auto source = open_matrix_file(path);
  source->prepare(testing::all_rows(1));
  EXPECT_EQ(testing::read_all(*source)(0, 0), 4.0);
}

}  // namespace heddle
