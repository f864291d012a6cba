#pragma once

#include <cstdint>
#include <string>

#include "config/config.hpp"
#include "config/problem.hpp"

/// Which of a host's GPUs are worth their start for a problem. Opening one takes a few tenths of a
/// second, and so does every further one, while a problem of middle size is solved by one in less.
namespace heddle {

/// Whether the first GPU does for a run of `nodes` nodes on a host with `gpus`: the configuration
/// leaves their number open, and the others would take longer to start than they save. Pure.
[[nodiscard]] bool one_gpu_does(const Config& config, std::int64_t rows, std::int64_t columns,
                                int nodes, int gpus);

/// GPUs that the environment and the system show, without asking CUDA.
[[nodiscard]] int gpus_in_sight();

/// Lets CUDA see the first GPU alone: before this process first calls it, and once.
void leave_one_gpu_in_sight();

}  // namespace heddle
