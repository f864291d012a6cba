#pragma once

#include <cstdint>

#include "kernels/kernels.hpp"

namespace heddle::host {

/// Numbers of rows or columns, a column for each; null where the kind has none.
struct ElementVectors {
  const double* data = nullptr;
  std::int64_t leading = 0;

  [[nodiscard]] const double* operator[](std::int64_t k) const { return data + k * leading; }
};

/// The kernel `generate` (kernels/kernels.hpp): `columns` begins at the part's first column, `rows`
/// at its first row.
void generate(const kernel::GenerateParameters& parameters, const ElementVectors& columns,
              const ElementVectors& rows, const TileView& out);

}  // namespace heddle::host
