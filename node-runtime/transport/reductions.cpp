#include "node-runtime/transport/reductions.hpp"

#include <cmath>
#include <limits>

#include "node-runtime/transport/communicator.hpp"

namespace heddle {
namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

// MPI's signature for operations.
void take_larger(void* in, void* in_out, int* count, MPI_Datatype* /*type*/) {
  const auto* theirs = static_cast<const double*>(in);
  auto* mine = static_cast<double*>(in_out);
  for (int i = 0; i < *count; ++i) mine[i] = larger_of(theirs[i], mine[i]);
}

void take_smaller(void* in, void* in_out, int* count, MPI_Datatype* /*type*/) {
  const auto* theirs = static_cast<const double*>(in);
  auto* mine = static_cast<double*>(in_out);
  for (int i = 0; i < *count; ++i) mine[i] = smaller_of(theirs[i], mine[i]);
}

}  // namespace

double larger_of(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return not_a_number;
  if (a == b) return std::signbit(a) ? b : a;  // zeros have signs
  return a > b ? a : b;
}

double smaller_of(double a, double b) {
  return -larger_of(-a, -b);
}

void unify_nans(std::span<double> values) {
  for (double& value : values) {
    if (std::isnan(value)) value = not_a_number;
  }
}

ReductionOperations::ReductionOperations() {
  constexpr int commutes = 1;
  check_mpi(MPI_Op_create(take_larger, commutes, &maximum_), "MPI_Op_create");
  check_mpi(MPI_Op_create(take_smaller, commutes, &minimum_), "MPI_Op_create");
}

ReductionOperations::~ReductionOperations() {
  MPI_Op_free(&maximum_);
  MPI_Op_free(&minimum_);
}

MPI_Op ReductionOperations::of(Reduction reduction) const {
  switch (reduction) {
    case Reduction::sum:
      break;
    case Reduction::maximum:
      return maximum_;
    case Reduction::minimum:
      return minimum_;
  }
  return MPI_SUM;
}

}  // namespace heddle
