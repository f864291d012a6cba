#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "node-runtime/trace/node_trace.hpp"

namespace heddle::trace {

/// Position of a record: trace (in the order given to the merge), thread, index.
struct RecordPlace {
  std::size_t trace = 0;
  std::size_t thread = 0;
  std::size_t record = 0;
  friend auto operator<=>(const RecordPlace&, const RecordPlace&) = default;
};

/// One end of an arrow from a send to its receive.
struct FlowEnd {
  RecordPlace place;
  std::uint64_t id = 0;   ///< the same at both ends, from 1
  std::int64_t time = 0;  ///< inside the record's slice
};

/// Matches sends to receives: same job, tile, version and pair of nodes; several alike in order of
/// time. Messages whose other end was not recorded have no arrow.
///
/// Use: add() for every trace, match() once, then find(). Not thread-safe.
class MessageFlows {
 public:
  struct Counts {
    std::uint64_t matched = 0;
    std::uint64_t lone_sends = 0;
    std::uint64_t lone_receives = 0;
    std::uint64_t backwards = 0;  ///< ended before they began (clocks not aligned); no arrow
  };

  /// `index` is the trace's position in the merge; times are converted to node 0's clock.
  void add(std::size_t index, const NodeTrace& trace);
  void match();
  [[nodiscard]] const Counts& counts() const { return counts_; }
  /// The arrow's end at this record, if any.
  [[nodiscard]] std::optional<FlowEnd> find(const RecordPlace& place) const;

 private:
  struct Message {
    std::array<std::int32_t, 6> key{};  ///< job, matrix, tile index, version, from, to
    bool received = false;
    std::int64_t start = 0;
    std::int64_t end = 0;
    RecordPlace place;
  };

  void pair(const Message& sent, const Message& received);

  std::vector<Message> messages_;
  std::vector<FlowEnd> ends_;  ///< by place
  Counts counts_;
};

/// A slice on node 0's clock; at least 1 ns long, so that viewers show it and an arrow fits.
struct SliceTimes {
  std::int64_t start = 0;
  std::int64_t end = 0;
};
[[nodiscard]] SliceTimes slice_times(const RunInfo& info, std::int64_t start_ns,
                                     std::int64_t end_ns);

}  // namespace heddle::trace
