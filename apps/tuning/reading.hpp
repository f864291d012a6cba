#pragma once

#include <optional>
#include <vector>

#include "apps/tuning/cpu.hpp"
#include "node-runtime/machine/measurements.hpp"

namespace heddle::tuning {

/// What nodes of one host take to read each other's tiles while their workers compute: each is a
/// process, whose workers update tiles, and one more thread of it, for which there is a core, reads
/// what another one's workers have just written. What two processes measure alone
/// (measure_messages) is faster: nothing else moves through the memory.
///
/// `processes`: the workers of each, of two at least; the first are this process's, and the others'
/// are copies of it, which shall have no threads but the caller's. OpenBLAS has been loaded. 200
/// ms, and 2 MiB of each worker and up to 64 MiB of each process, 1 GiB of all up to 128. Nothing:
/// the system does not let a process read another one. Throws Error(internal) when one of them dies
/// or is silent.
[[nodiscard]] std::optional<MessageMeasurement::Reading> reading_beside_work(
    const std::vector<Workers>& processes);

}  // namespace heddle::tuning
