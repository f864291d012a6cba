#pragma once

#include <mpi.h>
#include <span>

#include "node-runtime/transport/reduction.hpp"

namespace heddle {

/// The larger and the smaller of two numbers, whatever their order; not a number if either is none.
[[nodiscard]] double larger_of(double a, double b);
[[nodiscard]] double smaller_of(double a, double b);

/// Gives every value that is not a number the same bits.
void unify_nans(std::span<double> values);

/// MPI's operations for sums, maxima and minima over nodes. With MPI_MAX and MPI_MIN it depends on
/// the order of the nodes whether a value that is not a number gets lost, and nodes that see
/// different results go different ways. Made and ended by threads that may call MPI.
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
