#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace heddle::testing {

/// A dense matrix in memory, column by column.
struct Dense {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::vector<double> elements;

  Dense() = default;
  Dense(std::int64_t m, std::int64_t n)
      : rows(m), columns(n), elements(static_cast<std::size_t>(m * n), 0.0) {}
  double& operator()(std::int64_t i, std::int64_t j) {
    return elements[static_cast<std::size_t>(i + j * rows)];
  }
  double operator()(std::int64_t i, std::int64_t j) const {
    return elements[static_cast<std::size_t>(i + j * rows)];
  }
};

}  // namespace heddle::testing
