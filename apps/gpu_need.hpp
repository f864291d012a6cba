#pragma once

#include <cstdint>
#include <string>

#include "config/config.hpp"
#include "config/problem.hpp"

/// Which of a host's GPUs are worth their start for a problem. Opening one takes a few tenths of a
/// second, and so does every further one, while a problem of middle size is solved by one in less.
namespace heddle {

/// How many of a host's `gpus`, the first ones, a run of `nodes` nodes opens: fewer than all where
/// the configuration leaves their number open and the others would take longer to start than they
/// save. Pure.
[[nodiscard]] int gpus_worth_starting(const Config& config, std::int64_t rows, std::int64_t columns,
                                      int nodes, int gpus);

/// GPUs that the environment and the system show, without asking CUDA.
[[nodiscard]] int gpus_in_sight();

/// Lets CUDA see the first GPUs alone: before this process first calls it, and once.
void leave_gpus_in_sight(int count);

}  // namespace heddle
