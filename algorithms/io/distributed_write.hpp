#pragma once

#include <string>

#include "algorithms/matrix/npy_writer.hpp"
#include "node-runtime/node.hpp"

namespace heddle {

/// Writes the stored tiles of this node where the matrix has them; what is not stored keeps what
/// the new file holds, zeros. Collective; what any node could not write is thrown on all
/// (AgreedError), and so is an element that is NaN or infinite: no file holds such a result.
void write_tiles(Matrix<double> matrix, const NpyWriter& writer);

}  // namespace heddle
