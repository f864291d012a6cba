#pragma once

#include <algorithm>
#include <cstddef>
#include <mpi.h>
#include <vector>

#include "base/clock.hpp"

/// What drivers share that time the host's work beside MPI's.
namespace heddle {

/// Seconds.
inline double now() {
  return static_cast<double>(now_ns()) * 1e-9;
}

inline MPI_Datatype committed(MPI_Datatype type) {
  MPI_Type_commit(&type);
  return type;
}

}  // namespace heddle
