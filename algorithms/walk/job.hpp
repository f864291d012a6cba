#pragma once

#include <functional>
#include <string>
#include <vector>

#include "node-runtime/matrix.hpp"
#include "node-runtime/threads/program.hpp"

namespace heddle {

/// A job of a program on matrices, each named once or more. A matrix that was made as a temporary
/// one is a temporary of the job.
[[nodiscard]] JobSpec job_of(std::string name, const std::vector<Matrix<double>>& matrices,
                             std::function<Program(TaskStream&)> program);

}  // namespace heddle
