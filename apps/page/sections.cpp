#include "apps/page/sections.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

namespace heddle::page {

using replay::Access;
using replay::Copy;
using replay::IdleCause;
using replay::IdlePart;
using replay::Message;
using replay::RunTrace;
using replay::Task;
using replay::TaskId;
using replay::ThreadId;
namespace {

std::uint64_t unsigned_of(std::int64_t value) {
  return static_cast<std::uint64_t>(value);
}

/// One more than a number that may be -1.
std::uint64_t after(std::int32_t number) {
  return unsigned_of(std::int64_t{number} + 1);
}

/// How many of what belong to each thread.
template <class Of>
void put_counts(ByteWriter& to, const RunTrace& run, std::span<const Of> all) {
  std::vector<std::uint64_t> counts(run.threads.size());
  for (const Of& one : all) ++counts[static_cast<std::size_t>(one.thread.value())];
  for (const std::uint64_t count : counts) to.put(count);
}

/// A column of differences on each thread: `value(item)` less `value` of the one before.
template <class Value>
void put_differences(ByteWriter& to, std::span<const Item> items, const Value& value) {
  for (std::size_t i = 0; i < items.size(); ++i) {
    const bool is_first = i == 0 || items[i - 1].thread != items[i].thread;
    to.put_signed(value(items[i]) - (is_first ? 0 : value(items[i - 1])));
  }
}

struct Position {
  std::int32_t row = 0;
  std::int32_t column = 0;
};

/// Where tiles are in their matrices; of those that nobody described all are in one column.
class Positions {
 public:
  explicit Positions(const RunTrace& run) {
    for (const auto& matrix : run.matrices) rows_[matrix.matrix] = matrix.tile_rows;
  }
  [[nodiscard]] Position of(trace::Tile tile) const {
    const auto found = rows_.find(tile.matrix);
    if (found == rows_.end() || found->second <= 0 || tile.index < 0) return {tile.index, 0};
    return {tile.index % found->second, tile.index / found->second};
  }

 private:
  std::map<std::int32_t, std::int32_t> rows_;
};

/// An access as the next task of the same kernel knows it.
struct Seen {
  Position at;
  std::int32_t version = 0;
};

/// The accesses of tasks, and what fine tasks have of the divided one's: those that waited for no
/// other fine task read what it reads, and the one that ended last makes what it writes.
class Accesses {
 public:
  explicit Accesses(const RunTrace& run) : run_(run) {
    for (std::size_t i = 0; i < run.tasks.size(); ++i) {
      const Task& task = run.tasks[i];
      const TaskId id(static_cast<std::int32_t>(i));
      if (task.is_divided()) divided_[key_of(task)].whole = id;
      if (task.fine == 0) continue;
      OptionalIndex<TaskId>& last = divided_[key_of(task)].last;
      if (!last || run.at(*last).time.end_ns < task.time.end_ns) last = id;
    }
  }

  /// Until the next call.
  [[nodiscard]] std::span<const Access> of(TaskId id) {
    const Task& task = run_.at(id);
    if (task.fine == 0) return run_.accesses_of(task);
    const Divided& divided = divided_.at(key_of(task));
    parts_.clear();
    if (!divided.whole) return parts_;
    using trace::AccessMode;
    const bool is_first = task.after == 0 || task.after == trace::unknown_number;
    const bool is_last = *divided.last == id;
    for (Access access : run_.accesses_of(run_.at(*divided.whole))) {
      const bool reads = is_first && access.mode != AccessMode::write;
      const bool writes = is_last && access.mode != AccessMode::read;
      if (!reads && !writes) continue;
      if (!reads) access.mode = AccessMode::write;
      if (!writes) access.mode = AccessMode::read;
      parts_.push_back(access);
    }
    return parts_;
  }

 private:
  using Key = std::tuple<NodeId, std::int32_t, std::uint64_t>;  // node, job, order
  struct Divided {
    OptionalIndex<TaskId> whole;
    OptionalIndex<TaskId> last;  ///< of its fine tasks
  };
  [[nodiscard]] Key key_of(const Task& task) const {
    return {run_.at(task.thread).node, task.job, task.order};
  }

  const RunTrace& run_;
  std::map<Key, Divided> divided_;
  std::vector<Access> parts_;
};

/// Columns of the accesses.
class AccessColumns {
 public:
  explicit AccessColumns(const RunTrace& run) : run_(run), accesses_(run), positions_(run) {}

  void add(const Item& item) {
    const Task& task = run_.at(item.task);
    const std::span<const Access> accesses = accesses_.of(item.task);
    counts_.put(accesses.size());
    auto& seen = seen_[{item.thread, task.kernel}];
    const Position output = positions_.of(task.tile);
    const Access* before = nullptr;
    std::int64_t step = 0;  // of the main output's version
    std::size_t slot = 0;
    for (const Access& access : accesses) {
      if (slot == seen.size()) seen.emplace_back();
      const std::int32_t version = access.version.value();
      if (before == nullptr) step = std::int64_t{version} - seen[slot].version;
      put(access, before, task.tile, output, seen[slot], step);
      seen[slot] = {positions_.of(access.tile), version};
      before = &access;
      ++slot;
    }
  }

  [[nodiscard]] ByteWriter take() const {
    ByteWriter all;
    for (const ByteWriter* column :
         {&counts_, &codes_, &matrices_, &rows_, &columns_, &versions_}) {
      all.append(*column);
    }
    return all;
  }

 private:
  void put(const Access& access, const Access* before, trace::Tile main, Position output,
           const Seen& seen, std::int64_t step) {
    const Position at = positions_.of(access.tile);
    const Position last = before == nullptr ? output : positions_.of(before->tile);
    const bool has_other_matrix = access.tile.matrix != main.matrix;
    const auto how = [](std::int32_t value, std::int32_t same, std::int32_t other,
                        std::int32_t previous) {
      if (value == same) return Known::from_output;
      if (value == other) return Known::from_output_other;
      return value == previous ? Known::from_access : Known::open;
    };
    const Known row = how(at.row, output.row, output.column, last.row);
    const Known column = how(at.column, output.column, output.row, last.column);
    codes_.put(
        unsigned_of(static_cast<int>(access.mode)) | unsigned_of(has_other_matrix ? 1 : 0) << 2U |
        unsigned_of(static_cast<int>(row)) << 3U | unsigned_of(static_cast<int>(column)) << 5U);
    if (has_other_matrix) matrices_.put(after(access.tile.matrix));
    if (row == Known::open) rows_.put_signed(std::int64_t{at.row} - seen.at.row);
    if (column == Known::open) {
      columns_.put_signed(std::int64_t{at.column} - seen.at.column - step);
    }
    versions_.put_signed(
        before == nullptr ? step : std::int64_t{access.version.value()} - before->version.value());
  }

  const RunTrace& run_;
  Accesses accesses_;
  Positions positions_;
  std::map<std::pair<ThreadId, trace::NameId>, std::vector<Seen>> seen_;
  ByteWriter counts_;
  ByteWriter codes_;
  ByteWriter matrices_;
  ByteWriter rows_;
  ByteWriter columns_;
  ByteWriter versions_;
};

/// What messages and copies have in common; `put_ends(one)` writes where from and where to.
template <class Transfer, class PutEnds>
void put_transfers(ByteWriter& to, std::vector<Transfer> all, std::int64_t origin_ns,
                   const PutEnds& put_ends) {
  std::ranges::stable_sort(all, {}, [](const Transfer& one) { return one.time.start_ns; });
  to.put(all.size());
  std::int64_t before_ns = origin_ns;
  for (const Transfer& one : all) {
    to.put_signed(one.time.start_ns - std::exchange(before_ns, one.time.start_ns));
  }
  for (const Transfer& one : all) to.put(unsigned_of(std::max<std::int64_t>(0, one.time.ns())));
  put_ends(all);
  for (const Transfer& one : all) to.put(after(one.job));
  for (const Transfer& one : all) to.put(after(one.tile.matrix));
  std::int64_t tile = 0;
  for (const Transfer& one : all) {
    to.put_signed(one.tile.index - std::exchange(tile, one.tile.index));
  }
  for (const Transfer& one : all) to.put(after(one.version.value()));
  for (const Transfer& one : all) to.put(one.bytes);
}

}  // namespace

ByteWriter tasks_section(const RunTrace& run, std::span<const Item> items, std::int64_t origin_ns) {
  ByteWriter to;
  put_counts(to, run, items);
  for (std::size_t i = 0; i < items.size(); ++i) {
    const bool is_first = i == 0 || items[i - 1].thread != items[i].thread;
    to.put_signed(items[i].time.start_ns - (is_first ? origin_ns : items[i - 1].time.end_ns));
  }
  for (const Item& item : items) to.put(unsigned_of(item.time.ns()));
  for (const Item& item : items) to.put(item.kernel.value());
  for (const Item& item : items) to.put(unsigned_of(item.count));
  for (const Item& item : items) to.put(item.stream);
  for (const Item& item : items) {
    if (item.count > 1) to.put(unsigned_of(item.time.ns() - item.busy_ns));
  }
  return to;
}

ByteWriter details_section(const RunTrace& run, std::span<const Item> items) {
  ByteWriter to;
  for (const Item& item : items) to.put(after(run.at(item.task).job));
  for (const Item& item : items) to.put(after(run.at(item.task).tile.matrix));
  put_differences(to, items,
                  [&](const Item& item) -> std::int64_t { return run.at(item.task).tile.index; });
  put_differences(to, items, [&](const Item& item) {
    return static_cast<std::int64_t>(run.at(item.task).order);
  });
  put_differences(to, items,
                  [&](const Item& item) -> std::int64_t { return run.at(item.task).priority; });
  for (const Item& item : items) to.put(run.at(item.task).fine);
  for (const Item& item : items) {
    const Task& task = run.at(item.task);
    to.put(task.after == trace::unknown_number ? 0 : task.after);
  }
  return to;
}

ByteWriter accesses_section(const RunTrace& run, std::span<const Item> items) {
  AccessColumns columns(run);
  for (const Item& item : items) columns.add(item);
  return columns.take();
}

ByteWriter idle_section(const RunTrace& run, std::span<const IdlePart> parts,
                        std::int64_t origin_ns, std::int64_t shortest_ns) {
  std::vector<IdlePart> told;
  std::ranges::copy_if(parts, std::back_inserter(told), [&](const IdlePart& part) {
    return part.cause != IdleCause::runtime && part.time.ns() >= shortest_ns;
  });
  ByteWriter to;
  put_counts(to, run, std::span<const IdlePart>(told));
  for (std::size_t i = 0; i < told.size(); ++i) {
    const bool is_first = i == 0 || told[i - 1].thread != told[i].thread;
    to.put(unsigned_of(told[i].time.start_ns - (is_first ? origin_ns : told[i - 1].time.end_ns)));
  }
  for (const IdlePart& part : told) to.put(unsigned_of(part.time.ns()));
  for (const IdlePart& part : told) to.put(unsigned_of(static_cast<int>(part.cause)));
  return to;
}

ByteWriter transfers_section(const RunTrace& run, std::int64_t origin_ns) {
  ByteWriter to;
  put_transfers(to, run.messages, origin_ns, [&](const std::vector<Message>& all) {
    for (const Message& one : all) to.put(unsigned_of(one.from.value()));
    for (const Message& one : all) to.put(unsigned_of(one.to.value()));
    for (const Message& one : all) to.put(one.path);
  });
  put_transfers(to, run.copies, origin_ns, [&](const std::vector<Copy>& all) {
    for (const Copy& one : all) to.put(unsigned_of(one.node.value()));
    for (const Copy& one : all) to.put(unsigned_of(one.from.value()));
    for (const Copy& one : all) to.put(unsigned_of(one.to.value()));
    for (const Copy& one : all) to.put(unsigned_of(static_cast<int>(one.reason)));
  });
  return to;
}

}  // namespace heddle::page
