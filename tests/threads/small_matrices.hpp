#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "node-runtime/node.hpp"

/// Configurations and matrices of tests that run whole jobs.
namespace heddle::testing {

[[nodiscard]] inline Config configuration(const std::string& runtime,
                                          const std::string& layout = "tile: 32") {
  return Config::from_text("runtime: {" + runtime + "}\nlayout: {" + layout + "}\n", "test");
}

/// Of full rank, and well conditioned.
[[nodiscard]] inline double element(std::int64_t i, std::int64_t j) {
  return std::sin(static_cast<double>(i * 7919 + j * 104729)) + (i == j ? 1.0 : 0.0);
}

/// Symmetric and positive definite, unless `diagonal` says otherwise.
[[nodiscard]] inline Matrix<double> dominant(Node& node, std::int64_t n, double diagonal = 0) {
  MatrixSpec spec(n, n, Storage::lower);
  Matrix<double> a = node.matrix<double>(spec);
  a.fill([=](std::int64_t i, std::int64_t j) {
    return i == j ? (diagonal != 0 ? diagonal : static_cast<double>(n))
                  : 1.0 / static_cast<double>(1 + i - j);
  });
  return a;
}

/// All elements by columns; zero where the matrix has no tiles.
[[nodiscard]] inline std::vector<double> dense(Matrix<double> a) {
  const TileLayout l = a.layout();
  std::vector<double> all(static_cast<std::size_t>(a.rows() * a.columns()));
  a.for_each_tile([&](TileRow i, TileColumn c, TileView tile) {
    for (std::int64_t b = 0; b < tile.columns; ++b) {
      for (std::int64_t r = 0; r < tile.rows; ++r) {
        const std::int64_t row = l.row_begin(i) + r;
        const std::int64_t column = l.column_begin(c) + b;
        all[static_cast<std::size_t>(row + column * a.rows())] = tile(r, b);
      }
    }
  });
  return all;
}

}  // namespace heddle::testing
