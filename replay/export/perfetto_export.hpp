#pragma once

#include <filesystem>
#include <vector>

#include "node-runtime/trace/node_trace.hpp"
#include "replay/export/run_export.hpp"

namespace heddle::replay {

/// Writes the traces of the nodes of one run as one trace of Perfetto's own format (TrackEvents in
/// TracePackets, Protocol Buffers), which ui.perfetto.dev and trace_processor read.
///
/// A process per node ("node 0"), in it a thread per thread by sort_order, with its tasks
/// ("gsmm (5, 3)") and waits, and as children of that the rows of what overlapped, of copies,
/// sends, receives and fragments (trace/rows.hpp); a counter track per name and place. A flow for
/// each dependency and each message begins with the slice of the maker or send, and ends with that
/// of the reader or receive. Times are nanoseconds of node 0's clock and begin at 0. A packet
/// sequence per node, in which names are sent once.
///
/// The file is streamed, and appears complete or not at all; the run's tasks and accesses are in
/// memory besides the traces. Throws Error(usage) when two traces are of the same node or they are
/// of different runs, or the output cannot be made; Error(internal) when writing fails. Not all
/// nodes of the run need be there.
RunExport export_to_perfetto(const std::vector<trace::NodeTrace>& traces,
                             const std::filesystem::path& output);

}  // namespace heddle::replay
