#include "node-runtime/residency/waiting_tasks.hpp"

#include <algorithm>
#include <functional>

#include "base/assert.hpp"

namespace heddle {

void WaitingTasks::insert(std::vector<Task*>& tasks, Task& task) {
  const auto at = std::ranges::upper_bound(tasks, task.priority, std::ranges::greater{},
                                           [](const Task* one) { return one->priority; });
  tasks.insert(at, &task);
}

void WaitingTasks::arrive(Task& task) {
  HEDDLE_CHECK(ahead_ > 0, "tiles arrived that were not requested");
  --ahead_;
  insert(arrived_, task);
  looks_again_ = true;
}

void WaitingTasks::follow_front(std::int32_t of_streams, std::int64_t now_ns) {
  const std::int32_t highest = std::max(of_streams, priority_of_first(arrived_));
  HEDDLE_DEBUG(now_ns >= front_ns_, "the time goes back from {} to {} ns", front_ns_, now_ns);
  if (highest < front_ && now_ns - front_ns_ <= front_pause_ns) return;
  front_ = highest;
  front_ns_ = now_ns;
}

bool WaitingTasks::is_valid() const {
  const auto is_sorted = [](const std::vector<Task*>& tasks) {
    return std::ranges::is_sorted(tasks, std::ranges::greater{}, &Task::priority);
  };
  return is_sorted(waiting_) && is_sorted(arrived_) && waiting_.size() <= waiting_max &&
         ahead_ <= ahead_max;
}

}  // namespace heddle
