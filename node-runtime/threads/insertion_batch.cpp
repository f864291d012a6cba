#include "node-runtime/threads/insertion_batch.hpp"

#include <algorithm>
#include <cstddef>

#include "base/assert.hpp"
#include "base/require.hpp"
#include "node-runtime/threads/job_record.hpp"

namespace heddle {
namespace {

/// Items that Protocol::append makes of a task on `node`, at most: the task itself at its home;
/// elsewhere a version to send for each tile of this node that it reads, and a minor output to
/// receive for each that it writes.
std::int32_t items_of(std::span<const protocol::Access> accesses, NodeId node) {
  if (accesses.front().home.node == node) return 1;
  std::int32_t items = 0;
  for (const protocol::Access& access : accesses) {
    if (access.home.node != node) continue;
    items += access.mode == protocol::AccessMode::read_write ? 2 : 1;
  }
  return items;
}

}  // namespace

void InsertionBatch::begin(std::int32_t quantum, std::int32_t room) {
  HEDDLE_CHECK(quantum >= 1 && room >= 1, "quantum {}, room {}", quantum, room);
  entries_.clear();
  accesses_.clear();
  quantum_ = quantum;
  room_ = room;
  insertions_ = items_ = 0;
}

/// What is not awaited still finds the window with room.
void InsertionBatch::check_room(std::string_view what) const {
  require(items_ < room_, "'{}' {} without co_await: the window of {} is full", job_.name, what,
          job_.handle->window);
}

/// Allocates before it adds: a call without memory leaves the batch as it was, so that the job's
/// last batch can be handed over.
void InsertionBatch::add(Entry entry, std::span<const protocol::Access> accesses) {
  entry.first_access = accesses_.size();
  entry.access_count = accesses.size();
  if (entries_.size() == entries_.capacity()) {
    entries_.reserve(std::max<std::size_t>(16, 2 * entries_.size()));
  }
  accesses_.insert(accesses_.end(), accesses.begin(), accesses.end());
  entries_.push_back(entry);
}

void InsertionBatch::insert(const Kernel& kernel, const TaskOptions& options,
                            std::span<const protocol::Access> accesses) {
  check_room("inserts");
  std::int32_t priority = options.priority;
  const bool is_planned = !job_.priorities.empty() && accesses.front().home.node == node_;
  if (is_planned) {
    require(job_.tasks_inserted < job_.priorities.size(),
            "'{}' inserts more than the {} tasks that it inserted when it was planned; a program "
            "must insert the same tasks each time it is called",
            job_.name, job_.priorities.size());
    priority = job_.priorities[job_.tasks_inserted];
  }
  Entry entry;
  entry.priority = priority;
  entry.work = work_of(kernel, options);
  add(entry, accesses);
  if (is_planned) ++job_.tasks_inserted;
  ++insertions_;
  items_ += items_of(accesses, node_);
}

void InsertionBatch::announce(const protocol::Access& access, NodeId reader,
                              std::int32_t priority) {
  check_room("announces");
  Entry entry;
  entry.kind = Entry::Kind::reader;
  entry.priority = priority;
  entry.reader = reader;
  add(entry, {&access, 1});
  ++insertions_;
  ++items_;
}

void InsertionBatch::release(const protocol::Access& access) {
  Entry entry;
  entry.kind = Entry::Kind::release;
  add(entry, {&access, 1});
}

void InsertionBatch::hand_over(protocol::Protocol& protocol, protocol::Actions& actions) const {
  for (const Entry& entry : entries_) {
    const auto accesses = std::span(accesses_).subspan(entry.first_access, entry.access_count);
    switch (entry.kind) {
      case Entry::Kind::task:
        protocol.append(*job_.handle, entry.work, entry.priority, accesses, actions);
        break;
      case Entry::Kind::reader:
        protocol.append_alien_reader(*job_.handle, accesses.front(), entry.reader, entry.priority,
                                     actions);
        break;
      case Entry::Kind::release:
        protocol.release(*job_.handle, accesses.front(), actions);
        break;
    }
  }
}

bool InsertionBatch::is_valid() const {
  std::size_t accesses = 0;
  std::int32_t insertions = 0;
  for (const Entry& entry : entries_) {
    if (entry.first_access != accesses || entry.access_count == 0) return false;
    accesses = entry.first_access + entry.access_count;
    insertions += entry.kind == Entry::Kind::release ? 0 : 1;
  }
  return quantum_ >= 1 && room_ >= 1 && accesses == accesses_.size() && insertions == insertions_;
}

}  // namespace heddle
