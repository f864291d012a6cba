#include "kernels/fine/fine_tasks.hpp"

#include "base/assert.hpp"

namespace heddle {

void FineTasks::add(const Kernel& kernel, const KernelParameters& parameters,
                    std::span<const FineAccess> accesses, std::int64_t info_base) {
  HEDDLE_CHECK(!accesses.empty() && accesses.size() <= FineTask::accesses_max, "{} areas",
               accesses.size());
  if (accesses.front().area.is_empty()) return;
  FineTask& task = tasks_.emplace_back();
  task.kernel = &kernel;
  task.parameters = parameters;
  task.info_base = info_base;
  for (const FineAccess& access : accesses) task.operands[task.operand_count++] = access;
}

FineTasks fine_form(const KernelCase& what, std::int64_t small) {
  HEDDLE_CHECK(small >= 1, "fine tasks of {} columns", small);
  FineTasks tasks(small);
  if (what.kernel->fine != nullptr) what.kernel->fine(what, small, tasks);
  return tasks;
}

}  // namespace heddle
