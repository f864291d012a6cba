#pragma once

#include "layout/layout.hpp"

#include <cstdint>
#include <vector>

#include "tests/support/program.hpp"

namespace heddle::simulation {

struct QrProgram {
  std::vector<SimulatedMatrix> matrices;  ///< A and T, all tiles column by column
  Program program;
};

/// The statements of 001's heterogeneous tile QR (sections 3.2 and 7.2.2, flat tree) as the paper
/// has them: R and V share the diagonal tile, and tasks below write that tile from where they run,
/// as a minor output. (The product's own program keeps R apart, docs/decisions/012.) R moves on
/// with each of them while updates of the diagonal's row still read V: without renaming they would
/// read what is overwritten.
[[nodiscard]] QrProgram qr_program(const TileLayout& layout, const Distribution& distribution,
                                   std::int32_t spare_count);

/// How many tasks that are: an independent formula for the tests.
[[nodiscard]] std::int64_t qr_task_count(const TileLayout& layout);

}  // namespace heddle::simulation
