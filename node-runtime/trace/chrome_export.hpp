#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "node-runtime/trace/node_trace.hpp"

namespace heddle::trace {

/// Counts of an exported trace, for the log and the report.
struct ExportSummary {
  std::uint64_t slices = 0;
  std::uint64_t arrows = 0;
  std::uint64_t messages_without_partner = 0;
  /// Messages that arrived before they were sent by the aligned clocks; shown without an arrow.
  std::uint64_t messages_backwards = 0;
  std::uint64_t records_dropped = 0;  ///< by the recorders, when full
};

/// Merges the node traces of a run into one file in the Chrome trace format (JSON object form) for
/// ui.perfetto.dev and chrome://tracing.
///
/// Each node is a process ("node 0"), each thread a row of tasks ("gsmm (5, 3)") and waits,
/// followed by rows for its copies, sends and receives (several where they overlap); an arrow leads
/// from each send to its receive; each name and place of a counter is a counter track. Times are on
/// node 0's clock and begin at 0. JSON is streamed, with one node's trace in memory at a time. The
/// file appears complete or not at all.
///
/// Nodes may be missing. Throws Error(usage) if a trace cannot be read (read_node_file), two are of
/// the same node or of runs with different node counts, or the output cannot be created;
/// Error(internal) if writing fails.
ExportSummary merge_to_chrome(const std::vector<std::filesystem::path>& node_files,
                              const std::filesystem::path& output);

/// The same for traces in memory.
ExportSummary merge_to_chrome(const std::vector<NodeTrace>& traces,
                              const std::filesystem::path& output);

}  // namespace heddle::trace
