#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "node-runtime/trace/node_trace.hpp"

namespace heddle::trace {

/// Writes the records of a run as comma-separated values (RFC 4180): a line for each task, wait,
/// copy, end of a message, fragment and counter value, by node and thread in the order of
/// recording. The first line names the columns:
///
///   kind               task, wait, copy, send, receive, fragment or counter
///   node, thread
///   name               of a task's kernel or a counter; a wait's cause, a copy's reason, a
///                      message's path, a fragment's step
///   job, order, priority
///   start_us, end_us   on node 0's clock, from the first record of the run on
///   matrix, tile       `tile` counts tiles column by column
///   version
///   from, to           places of a copy (0: the host), nodes of a message; only `to`: the place
///                      of a task or counter
///   bytes              or a counter's value
///   stream             of the device that ran the task, from 0 on
///
/// Fields that do not apply are empty. The file appears complete or not at all. Returns the number
/// of lines after the first. Throws Error as merge_to_chrome() does.
std::uint64_t write_csv(const std::vector<NodeTrace>& traces, const std::filesystem::path& output);

}  // namespace heddle::trace
