#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "node-runtime/trace/message_flows.hpp"
#include "node-runtime/trace/node_trace.hpp"

/// How viewers show the records of a thread: its work in one row, and below it what it watched
/// over.
namespace heddle::trace {

/// Shown together in rows of their own; in the order of the rows.
enum class Group : std::uint8_t { work, copies, sends, receives, fragments };
inline constexpr std::size_t group_count = 5;

struct Slice {
  SliceTimes times;
  std::size_t record = 0;  ///< its place in the thread
  std::size_t task = 0;    ///< of a task: as many tasks of the thread were recorded before it
};

/// Slices that follow each other in time: each stream of a device has a row of its own, and where
/// slices of a group overlapped there are several.
/// Viewers drop a slice that begins inside another and ends outside of it.
struct Row {
  Group group = Group::work;
  std::string name;  ///< "copy", "copy: copies", "copy: copies (2)", "device 0: stream 1"
  std::vector<Slice> slices;
};

/// At least the one of the thread's work, which comes first: a thread that recorded nothing still
/// shows that it was there. That one's name also tells how many records found no room.
[[nodiscard]] std::vector<Row> rows_of(const NodeTrace& trace, const ThreadRecords& thread);

/// The threads of a node in the order in which they are shown.
[[nodiscard]] std::vector<std::size_t> threads_in_order(const NodeTrace& trace);

/// The counters' values of all threads of a node, by time: several may change the same counter.
[[nodiscard]] std::vector<CounterRecord> counters_of(const NodeTrace& trace);

/// When the first thing of this node was, on node 0's clock; later than any time where there is
/// nothing.
[[nodiscard]] std::int64_t first_ns(const NodeTrace& trace);

}  // namespace heddle::trace
