#include "replay/message_begins.hpp"

#include <algorithm>
#include <cstddef>

#include "replay/version_table.hpp"

namespace heddle::replay {
namespace {

/// Completion times of the versions that a job's tasks wrote.
VersionTable<std::int64_t> version_ends(const RunTrace& run, std::int32_t job) {
  std::size_t accesses = 0;
  for (const Task& task : run.tasks) {
    if (task.job == job) accesses += static_cast<std::size_t>(task.access_count);
  }
  VersionTable<std::int64_t> ends(accesses);
  for (const Task& task : run.tasks) {
    if (task.job != job) continue;
    for (const Access& access : run.accesses_of(task)) {
      if (access.mode == trace::AccessMode::read) continue;
      ends(access.tile, access.version + 1) = task.time.end_ns;
    }
  }
  return ends;
}

}  // namespace

std::vector<std::int64_t> message_begins(const RunTrace& run, std::int32_t job) {
  const VersionTable<std::int64_t> ends = version_ends(run, job);
  std::vector<std::int64_t> begins;
  begins.reserve(run.messages.size());
  for (const Message& message : run.messages) {
    std::int64_t begin_ns = message.time.start_ns;
    if (message.job == job) {
      const std::int64_t* const made_ns = ends.find(message.tile, message.version);
      if (made_ns != nullptr) begin_ns = std::max(*made_ns, message.awaited_ns);
    }
    begins.push_back(std::min(begin_ns, message.time.end_ns - 1));
  }
  return begins;
}

}  // namespace heddle::replay
