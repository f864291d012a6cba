#include "node-runtime/trace/rows.hpp"

#include <algorithm>
#include <array>
#include <fmt/core.h>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "node-runtime/trace/visit.hpp"

namespace heddle::trace {
namespace {

constexpr std::array<std::string_view, group_count> suffixes{"", ": copies", ": sends",
                                                             ": receives", ": fragments"};

std::optional<Group> group_of(RecordKind kind) {
  switch (kind) {
    case RecordKind::task:
    case RecordKind::wait:
    case RecordKind::collective:
      return Group::work;
    case RecordKind::copy:
      return Group::copies;
    case RecordKind::send:
      return Group::sends;
    case RecordKind::receive:
      return Group::receives;
    case RecordKind::fragment:
      return Group::fragments;
    default:
      return std::nullopt;
  }
}

/// Distributes slices over as few rows as possible without overlap; each row is ordered by time.
std::vector<std::vector<Slice>> into_rows(std::vector<Slice> slices) {
  const auto earlier = [](const Slice& a, const Slice& b) {
    return std::tie(a.times.start, a.times.end) < std::tie(b.times.start, b.times.end);
  };
  // Usually sorted already.
  if (!std::ranges::is_sorted(slices, earlier)) std::ranges::stable_sort(slices, earlier);
  std::vector<std::vector<Slice>> rows;
  for (const Slice& slice : slices) {
    const auto free = std::ranges::find_if(rows, [&](const std::vector<Slice>& row) {
      return row.back().times.end <= slice.times.start;
    });
    (free == rows.end() ? rows.emplace_back() : *free).push_back(slice);
  }
  return rows;
}

}  // namespace

std::vector<Row> rows_of(const NodeTrace& trace, const ThreadRecords& thread) {
  std::array<std::vector<Slice>, group_count> groups;
  std::map<std::uint8_t, std::vector<Slice>> streams;
  std::size_t tasks = 0;
  for_each_record(thread.records, [&](std::size_t i) {
    const Record& record = thread.records[i];
    const std::optional<Group> group = group_of(record.kind());
    if (!group) return;
    const LocalTimes times = *times_of(record);
    const Slice slice{slice_times(trace.info, times.start_ns, times.end_ns), i, tasks};
    const bool is_task = record.kind() == RecordKind::task;
    const std::uint8_t stream = is_task ? record.as<TaskRecord>().stream : 0;
    (stream > 0 ? streams[stream] : groups[static_cast<std::size_t>(*group)]).push_back(slice);
    if (is_task) ++tasks;
  });
  std::vector<Row> all;
  const auto add = [&](Group group, std::string_view suffix, std::vector<Slice> slices) {
    std::vector<std::vector<Slice>> rows = into_rows(std::move(slices));
    if (all.empty() && rows.empty()) rows.emplace_back();
    for (std::size_t r = 0; r < rows.size(); ++r) {
      std::string name = fmt::format("{}{}", thread.name, suffix);
      if (r > 0) name += fmt::format(" ({})", r + 1);
      if (all.empty() && thread.dropped > 0) {
        name += fmt::format(" [{} records dropped]", thread.dropped);
      }
      all.push_back({group, std::move(name), std::move(rows[r])});
    }
  };
  for (std::size_t g = 0; g < groups.size(); ++g) {
    add(static_cast<Group>(g), suffixes[g], std::move(groups[g]));
    if (static_cast<Group>(g) != Group::work) continue;
    for (auto& [stream, slices] : streams) {
      add(Group::work, fmt::format(": stream {}", stream - 1), std::move(slices));
    }
  }
  return all;
}

std::vector<std::size_t> threads_in_order(const NodeTrace& trace) {
  std::vector<std::size_t> order(trace.threads.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t t) { return trace.threads[t].sort_order; });
  return order;
}

std::vector<CounterRecord> counters_of(const NodeTrace& trace) {
  std::vector<CounterRecord> counters;
  for (const ThreadRecords& thread : trace.threads) {
    for_each_record(thread.records, [&](std::size_t i) {
      if (thread.records[i].kind() == RecordKind::counter) {
        counters.push_back(thread.records[i].as<CounterRecord>());
      }
    });
  }
  std::ranges::stable_sort(counters, {}, &CounterRecord::time_ns);
  return counters;
}

std::int64_t first_ns(const NodeTrace& trace) {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (const ThreadRecords& thread : trace.threads) {
    for_each_record(thread.records, [&](std::size_t i) {
      if (const auto times = times_of(thread.records[i])) {
        first = std::min(first, to_node0_ns(trace.info.clock_offsets, times->start_ns));
      }
    });
  }
  return first;
}

}  // namespace heddle::trace
