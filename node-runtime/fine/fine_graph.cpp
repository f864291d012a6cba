#include "node-runtime/fine/fine_graph.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "kernels/kernel_case.hpp"

namespace heddle {
namespace {

/// Earlier accesses to one tile, by area of the tile, on which later accesses may depend.
class TileHistory {
 public:
  explicit TileHistory(std::int64_t step) : step_(step) {}

  /// Appends to `waits_for` the tasks that `task` depends on because of this access.
  void access(std::int32_t task, const FineAccess& access, std::vector<std::int32_t>& waits_for) {
    const TileArea& area = access.area;
    for (std::int64_t j = area.column / step_; j * step_ < area.column + area.columns; ++j) {
      for (std::int64_t i = area.row / step_; i * step_ < area.row + area.rows; ++i) {
        const FineAccess here{common(area, {area.tile, i * step_, j * step_, step_, step_}),
                              access.writes};
        visit(squares_[{i, j}], task, here, waits_for);
      }
    }
  }

 private:
  struct Entry {
    std::int32_t task;
    FineAccess access;
  };

  static TileArea common(const TileArea& a, const TileArea& b) {
    const std::int64_t row = std::max(a.row, b.row);
    const std::int64_t column = std::max(a.column, b.column);
    return {a.tile, row, column, std::min(a.row + a.rows, b.row + b.rows) - row,
            std::min(a.column + a.columns, b.column + b.columns) - column};
  }

  static void visit(std::vector<Entry>& entries, std::int32_t task, const FineAccess& access,
                    std::vector<std::int32_t>& waits_for) {
    for (const Entry& entry : entries) {
      if (entry.task != task && (access.writes || entry.access.writes) &&
          entry.access.area.meets(access.area)) {
        waits_for.push_back(entry.task);
      }
    }
    // Later accesses depend on this writer, and so on every access that it covers.
    if (access.writes) {
      std::erase_if(entries,
                    [&](const Entry& entry) { return access.area.covers(entry.access.area); });
    }
    entries.push_back({task, access});
  }

  std::int64_t step_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<Entry>> squares_;
};

using Edges = std::vector<std::vector<std::int32_t>>;

/// The dependencies of each task of the sequence.
Edges waits_of(const FineTasks& sequence) {
  const std::span<const FineTask> tasks = sequence.tasks();
  std::vector<TileHistory> histories(FineTask::accesses_max, TileHistory(sequence.step()));
  Edges waits(tasks.size());
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    for (const FineAccess& access : tasks[t].accesses()) {
      if (access.area.is_empty()) continue;
      histories[access.area.tile].access(static_cast<std::int32_t>(t), access, waits[t]);
    }
    std::sort(waits[t].begin(), waits[t].end());
    waits[t].erase(std::unique(waits[t].begin(), waits[t].end()), waits[t].end());
  }
  return waits;
}

/// Operations on the longest path from the start of each task to the end. Copies count a little, so
/// that a task's path is always longer than its successors'.
std::vector<double> ways_to_end(std::span<const FineTask> tasks, const Edges& waits) {
  std::vector<double> ways(tasks.size(), 0.0);
  for (std::size_t t = tasks.size(); t-- > 0;) {
    ways[t] += flops_of(tasks[t]) + 1;
    for (const std::int32_t before : waits[t]) {
      double& way = ways[static_cast<std::size_t>(before)];
      way = std::max(way, ways[t]);
    }
  }
  return ways;
}

}  // namespace

FineOperands::FineOperands(const FineTask& task) : task_(task) {
  for (std::size_t i = 0; i < task.operand_count; ++i) {
    shapes_[i] = {task.operands[i].area.rows, task.operands[i].area.columns};
  }
}

double flops_of(const FineTask& task) {
  return flops_of(FineOperands(task).what());
}

FineGraph::FineGraph(const FineTasks& tasks) {
  const std::span<const FineTask> sequence = tasks.tasks();
  const Edges waits = waits_of(tasks);
  const std::vector<double> ways = ways_to_end(sequence, waits);
  std::vector<std::size_t> order(sequence.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return ways[a] > ways[b]; });
  std::vector<std::int32_t> number(sequence.size());
  for (std::size_t n = 0; n < order.size(); ++n) number[order[n]] = static_cast<std::int32_t>(n);

  tasks_.reserve(sequence.size());
  missing_.reserve(sequence.size());
  std::vector<std::pair<std::int32_t, std::int32_t>> edges;  // from, to
  for (const std::size_t t : order) {
    tasks_.push_back(sequence[t]);
    missing_.push_back(static_cast<std::int32_t>(waits[t].size()));
    for (const std::int32_t before : waits[t]) {
      edges.emplace_back(number[static_cast<std::size_t>(before)], number[t]);
    }
    flops_ += flops_of(sequence[t]);
    longest_way_ = std::max(longest_way_, ways[t]);
  }
  std::sort(edges.begin(), edges.end());
  begin_.assign(sequence.size() + 1, 0);
  for (const auto& [from, to] : edges) {
    ++begin_[static_cast<std::size_t>(from) + 1];
    successors_.push_back(to);
  }
  std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
}

bool FineGraph::is_valid() const {
  std::vector<std::int32_t> missing(tasks_.size(), 0);
  for (std::int32_t i = 0; i < size(); ++i) {
    std::int32_t before = i;
    for (const std::int32_t next : successors(i)) {
      if (next <= before || next >= size()) return false;
      before = next;
      ++missing[static_cast<std::size_t>(next)];
    }
  }
  return missing == missing_ && longest_way_ <= flops_ + static_cast<double>(tasks_.size());
}

std::int32_t FineGraph::width() const {
  if (longest_way_ <= 0) return std::max(1, size());  // all tasks only move data
  return std::max(1, static_cast<std::int32_t>(std::lround(flops_ / longest_way_)));
}

}  // namespace heddle
