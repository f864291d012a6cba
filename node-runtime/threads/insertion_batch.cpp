#include "node-runtime/threads/insertion_batch.hpp"

#include <algorithm>
#include <cstddef>

#include "base/assert.hpp"
#include "base/require.hpp"
#include "node-runtime/threads/job_record.hpp"

namespace heddle {
namespace {

/// Items that Protocol::append makes of a task on `node`, at most: the task itself at its home;
/// elsewhere a minor output to receive for each tile of this node that it writes.
std::int32_t items_of(std::span<const protocol::Access> accesses, NodeId node) {
  if (accesses.front().home.node == node) return 1;
  std::int32_t items = 0;
  for (const protocol::Access& access : accesses) {
    if (access.home.node == node && access.mode != protocol::AccessMode::read) ++items;
  }
  return items;
}

}  // namespace

void InsertionBatch::begin(std::int32_t quantum, std::int32_t room) {
  HEDDLE_CHECK(quantum >= 1 && room >= 1, "quantum {}, room {}", quantum, room);
  entries_.clear();
  accesses_.clear();
  readers_.clear();
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
void InsertionBatch::add(Entry entry, std::span<const protocol::Access> accesses,
                         std::span<const protocol::Reader> readers) {
  entry.first_access = accesses_.size();
  entry.access_count = accesses.size();
  entry.first_reader = readers_.size();
  entry.reader_count = readers.size();
  if (entries_.size() == entries_.capacity()) {
    entries_.reserve(std::max<std::size_t>(16, 2 * entries_.size()));
  }
  readers_.reserve(std::max(readers_.capacity(), readers_.size() + readers.size()));
  accesses_.insert(accesses_.end(), accesses.begin(), accesses.end());
  readers_.insert(readers_.end(), readers.begin(), readers.end());
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
  Entry entry;
  entry.kind = Entry::Kind::reader;
  const protocol::Reader one{reader, priority};
  add(entry, {&access, 1}, {&one, 1});
  ++insertions_;
}

void InsertionBatch::publish(const protocol::Access& access,
                             std::span<const protocol::Reader> readers) {
  Entry entry;
  entry.kind = Entry::Kind::publication;
  add(entry, {&access, 1}, readers);
  ++insertions_;
}

void InsertionBatch::release(const protocol::Access& access) {
  Entry entry;
  entry.kind = Entry::Kind::release;
  add(entry, {&access, 1});
}

void InsertionBatch::hand_over(protocol::Protocol& protocol, protocol::Actions& actions) const {
  for (const Entry& entry : entries_) {
    const auto accesses = std::span(accesses_).subspan(entry.first_access, entry.access_count);
    const auto readers = std::span(readers_).subspan(entry.first_reader, entry.reader_count);
    switch (entry.kind) {
      case Entry::Kind::task:
        protocol.append(*job_.handle, entry.work, entry.priority, accesses, actions);
        break;
      case Entry::Kind::reader:
        protocol.append_alien_reader(*job_.handle, accesses.front(), readers.front().node,
                                     readers.front().priority, actions);
        break;
      case Entry::Kind::publication:
        protocol.publish(*job_.handle, accesses.front(), readers, actions);
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
