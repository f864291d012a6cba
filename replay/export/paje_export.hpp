#pragma once

#include <filesystem>
#include <vector>

#include "node-runtime/trace/node_trace.hpp"
#include "replay/export/run_export.hpp"

namespace heddle::replay {

/// Writes a run's traces in the Paje format, for ViTE and pajeng. https://paje.sourceforge.net
///
/// Containers: the run, its nodes, and in each node its rows (trace/rows.hpp): threads and, below
/// each, its overlapping copies, sends, receives and fragments. States are kernels, causes of
/// waits, and transfers of tiles; links lead from sends to receives, and from a task to its readers
/// on other nodes; counters are variables of their node. Events are ordered by time, in seconds
/// with nine decimals on node 0's clock from 0; ends precede begins at equal times.
///
/// The file is streamed and appears complete or not at all; memory: the traces, 32 bytes per slice,
/// and the run's tasks and accesses. Dependencies and messages that lead backwards in time by the
/// aligned clocks have no link. Throws Error as export_to_perfetto().
RunExport export_to_paje(const std::vector<trace::NodeTrace>& traces,
                         const std::filesystem::path& output);

}  // namespace heddle::replay
