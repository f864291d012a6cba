#pragma once

#include <mpi.h>
#include <optional>

#include "apps/tuning/effort.hpp"
#include "node-runtime/machine/measurements.hpp"

namespace heddle::tuning {

/// Messages to and fro between the first two processes of `communicator`, from host memory to host
/// memory, over MPI and, on one host, between endpoints, on the calling thread while nobody else
/// uses MPI. Collective; the figures are process 0's, nothing on the others and where there is only
/// one.
[[nodiscard]] std::optional<MessageMeasurement> measure_messages(MPI_Comm communicator,
                                                                 const Effort& effort);

/// Collective; returns when all processes have come. Those that wait leave the cores to process 0,
/// which measures meanwhile: MPI's own waiting would keep them busy.
void wait_quietly(MPI_Comm communicator);

}  // namespace heddle::tuning
