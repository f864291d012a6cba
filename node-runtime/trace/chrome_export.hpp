#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "node-runtime/trace/node_trace.hpp"

namespace heddle::trace {

/// What went into an exported trace, for the log and the report.
struct ExportSummary {
  std::uint64_t slices = 0;
  std::uint64_t arrows = 0;
  std::uint64_t messages_without_partner = 0;
  /// Messages that, by the aligned clocks, arrived before they were sent; shown without an arrow.
  std::uint64_t messages_backwards = 0;
  std::uint64_t records_dropped = 0;  ///< by the recorders, for want of room
};

/// Merges the traces of the nodes of one run into one file in the Chrome trace format (JSON object
/// form), which ui.perfetto.dev and chrome://tracing read.
///
/// A process per node ("node 0"), in it a row per thread with its tasks ("gsmm (5, 3)") and waits,
/// and below it rows for the copies, sends and receives that it watched over (several where they
/// overlapped in time); an arrow from each send to its receive; a counter per name and place. Times
/// are on node 0's clock and begin at 0. The JSON is streamed to the disk; one node's trace is in
/// memory at a time. The file appears complete or not at all.
///
/// Throws Error(usage) when a trace cannot be read (read_node_file), two are of the same node or
/// they are of runs with different numbers of nodes, or the output cannot be made; Error(internal)
/// when writing fails. Not all nodes of the run need be there.
ExportSummary merge_to_chrome(const std::vector<std::filesystem::path>& node_files,
                              const std::filesystem::path& output);

/// The same from memory.
ExportSummary merge_to_chrome(const std::vector<NodeTrace>& traces,
                              const std::filesystem::path& output);

}  // namespace heddle::trace
