#pragma once

#include "apps/launcher.hpp"

/// Checks before MPI starts, which itself would end the process with an obscure error or hang.
namespace heddle {

/// Throws Error(usage) if MPI could not start on this host: /dev/shm too small for the messages of
/// the host's nodes, or too few threads.
void check_before_mpi(const Launcher& launcher);

/// Asks an MPICH-compatible launcher to end all processes of the run with `status`, so that none
/// waits for one that did not start. `mpi_has_begun`: MPI_Init was called. Thread: any; the process
/// is about to exit.
void abort_launch(int status, bool mpi_has_begun) noexcept;

}  // namespace heddle
