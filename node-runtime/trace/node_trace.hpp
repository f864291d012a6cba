#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/index.hpp"
#include "node-runtime/trace/clock.hpp"
#include "node-runtime/trace/record.hpp"
#include "node-runtime/trace/recorder.hpp"

namespace heddle::trace {

/// Facts about a run that the recorder does not know.
struct RunInfo {
  std::vector<ClockOffset> clock_offsets{};  ///< against node 0, by time; empty for node 0 itself
  std::string metadata = "{}";               ///< any JSON
  friend bool operator==(const RunInfo&, const RunInfo&) = default;
};

/// The records of one thread, in the order of recording.
struct ThreadRecords {
  std::string name;
  int sort_order = 0;
  ThreadTotals totals{};
  std::uint64_t dropped = 0;  ///< records that did not fit
  std::vector<Record> records{};
  friend bool operator==(const ThreadRecords&, const ThreadRecords&) = default;
};

/// All records of one node, in memory.
struct NodeTrace {
  NodeId node{};
  std::int32_t node_count = 1;
  RunInfo info{};
  std::vector<std::string> names{};  ///< by NameId
  std::vector<MatrixDescription> matrices{};
  std::vector<ThreadRecords> threads{};
  friend bool operator==(const NodeTrace&, const NodeTrace&) = default;
};

/// Copies the content of `recorder`; complete if its threads are stopped or idle.
[[nodiscard]] NodeTrace collect(const Recorder& recorder, const RunInfo& info);

/// Throws Error(usage) that begins with `source` if node numbers, name ids, a task's accesses or
/// the metadata are invalid.
void check(const NodeTrace& trace, const std::string& source);

/// Drops the records of each thread from its first invalid one on. Returns the first error, or an
/// empty text.
[[nodiscard]] std::string drop_unsound(NodeTrace& trace);

}  // namespace heddle::trace
