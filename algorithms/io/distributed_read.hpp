#pragma once

#include <cstdint>
#include <string>

#include "algorithms/matrix/checks.hpp"
#include "algorithms/matrix/source.hpp"
#include "node-runtime/node.hpp"

/// Filling distributed matrices from a source, each node its own tiles. Collective; errors of any
/// node are thrown on all of them (AgreedError).
namespace heddle {

/// What a node tells the source that it will read of the symmetric `a`.
[[nodiscard]] WantedRows wanted_of_symmetric(const Matrix<double>& a, const MatrixSource& source);
/// The same for a matrix of which it reads all tiles that are its own.
[[nodiscard]] WantedRows wanted_of_tiles(const Matrix<double>& matrix);

/// Each node reads from the source what it wants. If lines of a text are wrong, the error names the
/// first one in the file, with the same message on any number of nodes.
void prepare_together(Node& node, MatrixSource& source, const WantedRows& wanted);

enum class Checked : std::uint8_t {
  yes,
  before,  ///< this source was read once and found good
};

/// Reads the lower triangle of the symmetric matrix `source` into `a` (Storage::lower); strictly
/// upper parts of diagonal tiles become zero. prepare_together() has been called with
/// wanted_of_symmetric.
///
/// Checks all elements, the mirrored ones too where the source is not symmetric by construction:
/// throws Error(usage) that names the first element in column-major order that is NaN or infinite,
/// or else the worst pair that is not symmetric. `name` begins the messages: "problem.matrix:
/// 'k.npy'".
void read_symmetric(const MatrixSource& source, Matrix<double> a, Checked checked,
                    const std::string& name);

/// Reads all of `source` into `matrix`; checks for NaN and infinity. prepare_together() has
/// been called with wanted_of_tiles.
void read_tiles(const MatrixSource& source, Matrix<double> matrix, Checked checked,
                const std::string& name);

}  // namespace heddle
