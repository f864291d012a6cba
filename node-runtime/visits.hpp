#pragma once

#include <memory>

#include "node-runtime/matrix.hpp"
#include "node-runtime/node.hpp"

namespace heddle {

struct TileVisit;

/// Visits of a matrix's tiles that were submitted as a job and may still run.
class Visits {
 public:
  /// For those who begin visits, below.
  Visits(std::shared_ptr<TileVisit> visit, Job job);

  /// Waits until all have ended. Throws as Matrix::for_each_tile does. Once; collective.
  void wait();

 private:
  std::shared_ptr<TileVisit> visit_;
  Job job_;
};

/// Matrix::set_columns without the wait: later jobs on the matrix take effect behind it, tile by
/// tile. `visit` is kept until the job has ended. Collective.
[[nodiscard]] Visits begin_set_columns(const Matrix<double>& matrix,
                                       Matrix<double>::ColumnsVisitor visit);

}  // namespace heddle
