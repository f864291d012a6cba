#include "apps/page/items.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <tuple>

namespace heddle::page {

using replay::Interval;
using replay::RunTrace;
using replay::Task;
using replay::TaskId;
using replay::Thread;
using replay::ThreadId;
namespace {

void take_in(Item& item, const Task& task, std::int64_t& longest_ns) {
  if (task.time.ns() > longest_ns) {
    longest_ns = task.time.ns();
    item.kernel = task.kernel;
  }
  const std::int64_t since = std::max(item.time.end_ns, task.time.start_ns);
  item.busy_ns += std::max<std::int64_t>(0, task.time.end_ns - since);
  item.time.end_ns = std::max(item.time.end_ns, task.time.end_ns);
  ++item.count;
}

/// The last item of a thread, or of a device's stream.
struct Last {
  std::size_t item = 0;
  std::int64_t longest_ns = 0;  ///< of its tasks
};

}  // namespace

std::vector<Item> items_of(const RunTrace& run, std::int64_t quantum_ns) {
  std::vector<Item> items;
  if (quantum_ns == 0) items.reserve(run.tasks.size());
  for (std::size_t t = 0; t < run.threads.size(); ++t) {
    const Thread& thread = run.threads[t];
    std::vector<TaskId> tasks;
    for (TaskId task = thread.first_task; task != thread.last_task; ++task) {
      if (!run.at(task).is_divided()) tasks.push_back(task);  // its fine tasks are there
    }
    std::ranges::sort(tasks, {}, [&](TaskId id) {
      const Interval time = run.at(id).time;
      return std::tuple(time.start_ns, time.end_ns, id);
    });
    std::map<std::uint8_t, Last> last;  // by stream
    for (const TaskId id : tasks) {
      Task task = run.at(id);
      task.time.end_ns = std::max(task.time.start_ns, task.time.end_ns);
      const auto [at, is_first] = last.try_emplace(task.stream);
      Last& before = at->second;
      if (quantum_ns > 0 && !is_first &&
          items[before.item].time.start_ns / quantum_ns == task.time.start_ns / quantum_ns) {
        take_in(items[before.item], task, before.longest_ns);
        continue;
      }
      before = {items.size(), task.time.ns()};
      items.push_back({ThreadId(static_cast<std::int32_t>(t)), task.time, task.kernel, 1,
                       task.time.ns(), id, task.stream});
    }
  }
  return items;
}

}  // namespace heddle::page
