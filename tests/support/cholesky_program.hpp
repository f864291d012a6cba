#pragma once

#include "layout/layout.hpp"

#include "tests/support/program.hpp"

namespace heddle::simulation {

struct CholeskyProgram {
  SimulatedMatrix matrix;  ///< all tiles column by column; those above the diagonal stay untouched
  Program program;
};

/// The statements of the heterogeneous tile Cholesky factorization (001 section 3.1) of the lower
/// triangle: every tile column, strip pieces and remainders alike, is factored in its diagonal
/// tile, solved below it, and subtracted from all tile columns to its right. `releases` says
/// whether a finished tile column is released after its last reader.
[[nodiscard]] CholeskyProgram cholesky_program(const TileLayout& layout,
                                               const Distribution& distribution, bool releases);

/// How many tasks that are: an independent formula for the tests.
[[nodiscard]] std::int64_t cholesky_task_count(const TileLayout& layout);

}  // namespace heddle::simulation
