#include "algorithms/walk/job.hpp"

#include <algorithm>
#include <utility>

#include "node-runtime/threads/program.hpp"

namespace heddle {

JobSpec job_of(std::string name, const std::vector<Matrix<double>>& matrices,
               std::function<Program(TaskStream&)> program) {
  JobSpec spec;
  spec.name = std::move(name);
  spec.program = std::move(program);
  for (const Matrix<double>& m : matrices) {
    if (std::find(spec.matrices.begin(), spec.matrices.end(), m.id()) != spec.matrices.end()) {
      continue;
    }
    spec.matrices.push_back(m.id());
    spec.keep_alive.push_back(m.state());
    if (m.spec().temporary) spec.temporaries.push_back(m.id());
  }
  return spec;
}

}  // namespace heddle
