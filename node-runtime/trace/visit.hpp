#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <vector>

#include "node-runtime/trace/record.hpp"

/// Iteration over records.
namespace heddle::trace {

/// Calls `use` with the record's type: TaskRecord, WaitRecord, CopyRecord, MessageRecord,
/// FragmentRecord, CounterRecord or CollectiveRecord. Skips accesses, which are parts of tasks, and
/// unknown kinds.
template <class Use>
void visit(const Record& record, const Use& use) {
  switch (record.kind()) {
    case RecordKind::task:
      return use(record.as<TaskRecord>());
    case RecordKind::wait:
      return use(record.as<WaitRecord>());
    case RecordKind::copy:
      return use(record.as<CopyRecord>());
    case RecordKind::send:
    case RecordKind::receive:
      return use(record.as<MessageRecord>());
    case RecordKind::fragment:
      return use(record.as<FragmentRecord>());
    case RecordKind::counter:
      return use(record.as<CounterRecord>());
    case RecordKind::collective:
      return use(record.as<CollectiveRecord>());
    case RecordKind::none:
    case RecordKind::access:
      return;
  }
}

/// Times of a record on its node's clock; a counter's value has no duration.
struct LocalTimes {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
};

/// Nothing for records that visit() skips.
[[nodiscard]] inline std::optional<LocalTimes> times_of(const Record& record) {
  std::optional<LocalTimes> times;
  visit(record, [&](const auto& r) {
    if constexpr (std::is_same_v<decltype(r), const CounterRecord&>) {
      times = {r.time_ns, r.time_ns};
    } else {
      times = {r.start_ns, r.end_ns};
    }
  });
  return times;
}

/// Calls `use(position)` for each record that is not part of the one before it.
template <class Use>
void for_each_record(const std::vector<Record>& records, const Use& use) {
  for (std::size_t i = 0; i < records.size(); ++i) {
    use(i);
    if (records[i].kind() == RecordKind::task) {
      i += access_records(records[i].as<TaskRecord>().access_count);
    }
  }
}

/// Calls `use(access)` for each access of the record at `position`; only tasks have any.
template <class Use>
void for_each_access(const std::vector<Record>& records, std::size_t position, const Use& use) {
  if (records[position].kind() != RecordKind::task) return;
  const std::size_t count = records[position].as<TaskRecord>().access_count;
  for (std::size_t k = 0; k < count; ++k) {
    const auto group = records[position + 1 + k / accesses_per_record].as<AccessRecord>();
    use(group[k % accesses_per_record]);
  }
}

}  // namespace heddle::trace
