#pragma once

#include "apps/bench_collectives.hpp"
#include "apps/run.hpp"

namespace heddle {

/// `heddle bench collectives --machine`: times of the same choices and schedules in virtual time,
/// on the machine of a file (replay/collectives). Returns the exit status. Throws Error(usage) for
/// a machine, an operation, an algorithm or a number of nodes that there is not, for what is too
/// large to be simulated, and in a run of several processes.
int bench_virtual(const BenchCollectivesOptions& options, Run& run);

}  // namespace heddle
