#pragma once

#include <memory>
#include <string>

#include "algorithms/matrix/npy_file.hpp"
#include "algorithms/matrix/source.hpp"

namespace heddle {

/// Opens a matrix file by the end of its name, .npy or .mtx in any case. Throws Error(usage) when
/// it is neither, and what the sources throw.
[[nodiscard]] std::unique_ptr<MatrixSource> open_matrix_file(
    const std::string& path, OneDimensional one_dimensional = OneDimensional::refuse);

}  // namespace heddle
