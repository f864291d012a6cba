#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "algorithms/io/agreement.hpp"
#include "algorithms/matrix/checks.hpp"
#include "algorithms/matrix/source.hpp"
#include "node-runtime/node.hpp"

/// Filling distributed matrices from a source, each node its own tiles. Collective; errors of any
/// node are thrown on all of them (AgreedError).
namespace heddle {

/// What a node tells the source that it will read of `matrix`: of one with Storage::lower its lower
/// triangle, and what mirrors that in a source that may not be symmetric; otherwise all tiles.
[[nodiscard]] WantedRows wanted_of(const Matrix<double>& matrix, const MatrixSource& source);

/// Each node tells the source what it will read of matrices like this one. If lines of a text are
/// wrong, the error names the first one in the file, with the same message on any number of nodes.
void prepare_reading(MatrixSource& source, const Matrix<double>& matrix);

enum class Checked : std::uint8_t {
  yes,
  before,  ///< this source was read once and found good
};

/// A matrix whose elements are coming in from a source, behind prepare_reading(). Later jobs on it
/// may be submitted meanwhile: they take effect behind the reading tile by tile, and have to be
/// cancelled if finish() throws. The source must outlive this.
///
/// With Storage::lower the source is a symmetric matrix, of which the lower triangle is read;
/// strictly upper parts of diagonal tiles become zero.
class MatrixReading {
 public:
  /// `name` begins messages: "problem.matrix: 'k.npy'". Throws Error(usage) when shapes differ.
  MatrixReading(const MatrixSource& source, const Matrix<double>& matrix, Checked checked,
                std::string name);
  ~MatrixReading();  ///< waits
  MatrixReading(const MatrixReading&) = delete;
  MatrixReading& operator=(const MatrixReading&) = delete;

  /// Waits until all has come in. Throws what went wrong while it was read; unless `checked`
  /// before, Error(usage) with the first element in column-major order that is NaN or infinite, or
  /// else, where the source should be symmetric and is not so by construction, with the worst pair
  /// that is not. Once.
  void finish();

 private:
  const MatrixSource& source_;
  Node& node_;
  bool checks_elements_;
  bool checks_symmetry_;
  std::string name_;
  std::shared_ptr<struct Findings> findings_;
  std::unique_ptr<SettingTogether> setting_;
};

/// Reads all elements of the matrix, as MatrixReading does, and waits.
void read_elements(const MatrixSource& source, const Matrix<double>& matrix, Checked checked,
                   const std::string& name);

}  // namespace heddle
