#pragma once

#include <filesystem>
#include <vector>

#include "node-runtime/trace/node_trace.hpp"
#include "replay/export/run_export.hpp"

namespace heddle::replay {

/// Writes a run's traces in Perfetto's format (TrackEvents in TracePackets, Protocol Buffers), for
/// ui.perfetto.dev and trace_processor.
///
/// Each node is a process ("node 0") with its threads by sort_order; a thread shows its tasks
/// ("gsmm (5, 3)") and waits, and as child tracks the rows of its overlapping copies, sends,
/// receives and fragments (trace/rows.hpp). Each name and place of a counter is a counter track. A
/// flow for each dependency and message begins with the slice of the maker or send and ends with
/// that of the reader or receive. Times are in nanoseconds on node 0's clock and begin at 0. Each
/// node is a packet sequence, in which names are sent once.
///
/// The file is streamed and appears complete or not at all; memory: the traces, and the run's tasks
/// and accesses. Nodes may be missing. Throws Error(usage) if two traces are of the same node or of
/// different runs, or the output cannot be created; Error(internal) if writing fails.
RunExport export_to_perfetto(const std::vector<trace::NodeTrace>& traces,
                             const std::filesystem::path& output);

}  // namespace heddle::replay
