#pragma once

#include <optional>

#include "algorithms/checks/again.hpp"
#include "algorithms/generated/generated_tiles.hpp"
#include "algorithms/io/distributed_read.hpp"
#include "apps/method.hpp"
#include "apps/problem.hpp"
#include "node-runtime/node.hpp"

namespace heddle {

/// Where tiles get the elements of the problem's matrix from: a generated one is made by tasks
/// where its tiles live, all others are read on the host. Collective; errors that all nodes know
/// are thrown as AgreedError.
class MatrixInput {
 public:
  MatrixInput(Node& node, Problem& problem) : node_(node), problem_(problem) {}

  [[nodiscard]] bool is_generated() const { return problem_.generated().has_value(); }

  /// What set() adds to the plan of a run; `a` is only planned.
  void add_to(Undertaking& undertaking, const Matrix<double>& a, const Shadows& shadow);
  /// Before matrices like `a` are set: finds out what there is to read.
  void prepare(const Matrix<double>& a);
  /// Begins to set all tiles of `a`; of one with Storage::lower, those of a symmetric matrix, with
  /// zeros above the diagonal. Jobs on `a` may be submitted before finish().
  void begin(const Matrix<double>& a, Checked checked);
  /// The same for the problem's right-hand sides.
  void begin_sides(const Matrix<double>& sides);
  /// Waits for what has begun. Throws as MatrixReading::finish() does.
  void finish();

  /// For products after the factorization: tiles of a matrix like `a` that pass by, and the matrix
  /// that they are of. After add_to() it is only planned, after prepare() it may run.
  [[nodiscard]] MatrixSpec passing_spec(const MatrixSpec& a) const;
  [[nodiscard]] Again again(const Matrix<double>& tiles) const;

 private:
  Node& node_;
  Problem& problem_;
  std::optional<GeneratedTiles> generated_;
  MatrixSource* source_ = nullptr;  ///< null: nothing is prepared
  std::optional<Job> making_;       ///< of a generated matrix
  std::optional<MatrixReading> reading_;
  std::optional<MatrixReading> reading_sides_;
};

}  // namespace heddle
