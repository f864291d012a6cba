#pragma once

#include "apps/launcher.hpp"

/// What can be known to go wrong before MPI starts: MPI itself would end the process in its own
/// words, or wait for ever.
namespace heddle {

/// Throws Error(usage) where MPI could not start on this host: too little of /dev/shm for the
/// messages of the host's nodes, too few threads.
void check_before_mpi(const Launcher& launcher);

/// Tells the launcher to end all processes of the run with `status`, where it speaks MPICH's
/// protocol: nobody waits then for a process that does not come up. `mpi_has_begun`: MPI_Init was
/// called. Any thread; for a process that ends now.
void abort_launch(int status, bool mpi_has_begun) noexcept;

}  // namespace heddle
