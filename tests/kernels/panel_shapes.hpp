#pragma once

#include <cstdint>
#include <functional>
#include <gtest/gtest.h>
#include <random>
#include <vector>

/// Shapes of the tiles that QR's kernels see, for tests of their host and GPU definitions.
namespace heddle::test {

struct PanelShape {
  std::int64_t rows;  ///< that take part
  std::int64_t w;     ///< columns of the panel
  std::int64_t n;     ///< columns of what Q is applied to
  std::int64_t inner;
  std::int64_t first;  ///< rows of the tile before those
  std::int64_t row;    ///< rows of R's tile before R
};

/// A tile under R may have fewer rows than R: here some have.
inline std::vector<PanelShape> with_short_tiles(std::vector<PanelShape> shapes) {
  for (PanelShape& s : shapes) {
    if (s.rows % 3 == 0 && s.rows < 2000) s.rows /= 7;
  }
  return shapes;
}

/// Calls `body` for each shape, with random numbers of its own.
inline void for_shapes(const std::vector<PanelShape>& shapes,
                       const std::function<void(const PanelShape&, std::mt19937_64&)>& body) {
  std::uint64_t seed = 1;
  for (const PanelShape& s : shapes) {
    SCOPED_TRACE(::testing::Message()
                 << "rows " << s.rows << " w " << s.w << " n " << s.n << " inner " << s.inner
                 << " first " << s.first << " row " << s.row << " seed " << seed);
    std::mt19937_64 random(seed++);
    body(s, random);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace heddle::test
