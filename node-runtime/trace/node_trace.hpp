#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/index.hpp"
#include "node-runtime/trace/clock.hpp"
#include "node-runtime/trace/record.hpp"
#include "node-runtime/trace/recorder.hpp"

namespace heddle::trace {

/// What the recorder itself does not know of a run.
struct RunInfo {
  std::vector<ClockOffset> clock_offsets{};  ///< against node 0, by time; empty for node 0 itself
  std::string metadata = "{}";               ///< JSON of the caller's choice
  friend bool operator==(const RunInfo&, const RunInfo&) = default;
};

/// The records of one thread, in the order of recording.
struct ThreadRecords {
  std::string name;
  int sort_order = 0;
  ThreadTotals totals{};
  std::uint64_t dropped = 0;  ///< records that found no room
  std::vector<Record> records{};
  friend bool operator==(const ThreadRecords&, const ThreadRecords&) = default;
};

/// All that one node recorded, in memory.
struct NodeTrace {
  NodeId node{};
  std::int32_t node_count = 1;
  RunInfo info{};
  std::vector<std::string> names{};  ///< by NameId
  std::vector<MatrixDescription> matrices{};
  std::vector<ThreadRecords> threads{};
  friend bool operator==(const NodeTrace&, const NodeTrace&) = default;
};

/// A copy of what `recorder` holds; complete when its threads are stopped or idle.
[[nodiscard]] NodeTrace collect(const Recorder& recorder, const RunInfo& info);

/// Throws Error(usage) that begins with `source` and says what is wrong, when node numbers, name
/// ids, the accesses behind a task or the metadata are not as they must be.
void check(const NodeTrace& trace, const std::string& source);

/// Drops the records of each thread from the first one on that is not as it must be. Says what was
/// wrong with the first of these; nothing where all were sound.
[[nodiscard]] std::string drop_unsound(NodeTrace& trace);

}  // namespace heddle::trace
