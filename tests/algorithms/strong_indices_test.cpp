#include <gtest/gtest.h>
#include <type_traits>

#include "algorithms/walk/own_part.hpp"
#include "node-runtime/matrix.hpp"

namespace heddle {
namespace {

template <class Row, class Column>
concept NamesTile = requires(const Matrix<double>& a, Row i, Column c) {
  a(i, c);
};
template <class Row, class Wide>
concept NamesNode = requires(const Distribution& d, Row i, Wide j) {
  d.node(i, j);
};

static_assert(NamesTile<TileRow, TileColumn>);
static_assert(!NamesTile<WideColumn, TileColumn>);
static_assert(!NamesTile<TileRow, WideColumn>);
static_assert(!NamesTile<TileColumn, TileRow>);
static_assert(!NamesTile<std::int32_t, TileColumn>);
static_assert(NamesNode<TileRow, WideColumn>);
static_assert(!NamesNode<TileRow, TileColumn>);
static_assert(!NamesNode<WideColumn, WideColumn>);
static_assert(!NamesNode<std::int32_t, std::int32_t>);
static_assert(!std::is_convertible_v<WideColumn, TileRow>);
static_assert(std::is_same_v<decltype(TileLayout{}.wide_of(TileColumn{})), WideColumn>);
static_assert(!std::is_invocable_v<decltype(&OwnPart::first_row), OwnPart, WideColumn>);

}  // namespace

TEST(StrongIndices, name_the_row_of_a_wide_columns_diagonal_tile_explicitly) {
  const TileLayout layout{.rows = 12, .columns = 12, .tile = 4, .strip = 2, .small = 1};
  for (TileColumn c{0}; c < layout.end_column(); ++c) {
    EXPECT_EQ(layout.diagonal_wide(layout.diagonal_row(c)), layout.wide_of(c));
    EXPECT_EQ(layout.diagonal_row(c).value(), c.value() / 3);
  }
}

}  // namespace heddle
