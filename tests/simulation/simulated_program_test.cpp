#include "apps/simulation/simulated_program.hpp"

#include <cstdint>
#include <gtest/gtest.h>
#include <limits>

namespace heddle {
namespace {

/// Of a Cholesky on one device of so much memory; 0: as much as is of use.
std::int32_t span_in(std::uint64_t memory_bytes) {
  TileLayout layout;
  layout.rows = layout.columns = 16 * 64;
  layout.tile = 64;
  Distribution distribution;
  distribution.devices = 1;
  return simulated_cholesky(layout.rows, layout, distribution, 0, memory_bytes).spec.priority_span;
}

}  // namespace

TEST(SimulatedCholesky, holds_back_what_is_less_urgent_where_memory_is_short_alone) {
  constexpr auto none = std::numeric_limits<std::int32_t>::max();
  constexpr std::uint64_t all_tiles = 16 * 17 / 2 * std::uint64_t{64} * 64 * sizeof(double);
  EXPECT_EQ(span_in(0), none);
  EXPECT_EQ(span_in(2 * all_tiles), none);
  EXPECT_LT(span_in(all_tiles), none) << "all fit, but nothing beside them";
  EXPECT_LT(span_in(all_tiles / 2), none);
  EXPECT_GT(span_in(all_tiles / 2), span_in(all_tiles)) << "columns are updated in groups";
}

}  // namespace heddle
