#pragma once

#include <mpi.h>
#include <span>

#include "node-runtime/transport/reduction.hpp"

namespace heddle {

/// The larger and the smaller of two numbers; NaN if either is NaN. Symmetric in the arguments.
[[nodiscard]] double larger_of(double a, double b);
[[nodiscard]] double smaller_of(double a, double b);

/// Gives every NaN the same bits.
void unify_nans(std::span<double> values);

/// MPI's operations for sums, maxima and minima over nodes. MPI_MAX and MPI_MIN may drop a NaN,
/// depending on the order of the nodes; nodes with different results would then diverge. Threads:
/// created and destroyed by threads that may call MPI.
class ReductionOperations {
 public:
  ReductionOperations();
  ReductionOperations(const ReductionOperations&) = delete;
  ReductionOperations& operator=(const ReductionOperations&) = delete;
  ~ReductionOperations();

  [[nodiscard]] MPI_Op of(Reduction reduction) const;

 private:
  MPI_Op maximum_ = MPI_OP_NULL;
  MPI_Op minimum_ = MPI_OP_NULL;
};

}  // namespace heddle
