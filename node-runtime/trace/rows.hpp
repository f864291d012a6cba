#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "node-runtime/trace/message_flows.hpp"
#include "node-runtime/trace/node_trace.hpp"

/// Rows in which viewers show a thread's records: its work, followed by the transfers it handled.
namespace heddle::trace {

/// Kinds of rows, in the order of display.
enum class Group : std::uint8_t { work, copies, sends, receives, fragments };
inline constexpr std::size_t group_count = 5;

struct Slice {
  SliceTimes times;
  std::size_t record = 0;  ///< index in the thread
  std::size_t task = 0;    ///< of a task: number of tasks that the thread recorded before it
};

/// Slices in order of time, without overlap: viewers drop a slice that begins inside another and
/// ends outside. Each stream of a device has a row; a group with overlaps has several.
struct Row {
  Group group = Group::work;
  std::string name;  ///< "copy", "copy: copies", "copy: copies (2)", "device 0: stream 1"
  std::vector<Slice> slices;
};

/// The first row is the thread's work and always exists, even if empty; its name includes the
/// number of dropped records.
[[nodiscard]] std::vector<Row> rows_of(const NodeTrace& trace, const ThreadRecords& thread);

/// The threads of a node in display order.
[[nodiscard]] std::vector<std::size_t> threads_in_order(const NodeTrace& trace);

/// Counter values of all threads of a node by time, since several may change a counter.
[[nodiscard]] std::vector<CounterRecord> counters_of(const NodeTrace& trace);

/// Time of the node's first record on node 0's clock; the maximum if there is none.
[[nodiscard]] std::int64_t first_ns(const NodeTrace& trace);

}  // namespace heddle::trace
