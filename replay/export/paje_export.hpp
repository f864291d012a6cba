#pragma once

#include <filesystem>
#include <vector>

#include "node-runtime/trace/node_trace.hpp"
#include "replay/export/run_export.hpp"

namespace heddle::replay {

/// Writes the traces of the nodes of one run as one trace in the Paje format, which ViTE and pajeng
/// read. https://paje.sourceforge.net
///
/// Containers: the run, in it its nodes, in these a container per row (trace/rows.hpp), that is per
/// thread and below it what overlapped, copies, sends, receives and fragments. States are kernels,
/// causes of waits, and what was done to tiles; links lead from sends to receives, and from a task
/// to one of another node that read what it made; counters are variables of their node. Events are
/// ordered by time: seconds with nine decimals, of node 0's clock, from 0 on. What ends comes
/// before what begins at the same time.
///
/// The file is streamed, and appears complete or not at all; besides the traces 32 bytes for each
/// slice and the run's tasks and accesses are in memory. A dependency or message that by the
/// aligned clocks would lead backwards in time has no link. Throws Error as export_to_perfetto()
/// does.
RunExport export_to_paje(const std::vector<trace::NodeTrace>& traces,
                         const std::filesystem::path& output);

}  // namespace heddle::replay
