#include "node-runtime/trace/survey.hpp"

#include <algorithm>
#include <fmt/core.h>
#include <limits>

#include "base/error.hpp"
#include "node-runtime/trace/rows.hpp"

namespace heddle::trace {

void Survey::add(const NodeTrace& trace) {
  const std::size_t index = seen_.size();
  const auto [earlier, is_new] = seen_.emplace(trace.node, index);
  if (!is_new) {
    throw Error(ErrorCode::usage,
                fmt::format("traces {} and {} to merge are both of node {}; give one for each "
                            "node of one run",
                            earlier->second + 1, index + 1, trace.node.value()));
  }
  if (index == 0) {
    node_count_ = trace.node_count;
    origin_ns_ = std::numeric_limits<std::int64_t>::max();
  }
  if (trace.node_count != node_count_) {
    throw Error(ErrorCode::usage,
                fmt::format("trace {} to merge is of a run with {} nodes, trace 1 of one with {}; "
                            "give those of one run",
                            index + 1, trace.node_count, node_count_));
  }
  processes_ = std::max(processes_, process(trace.node));
  origin_ns_ = std::min(origin_ns_, first_ns(trace));
  messages_.add(index, trace);
  for (const ThreadRecords& thread : trace.threads) records_dropped_ += thread.dropped;
}

void Survey::finish() {
  if (origin_ns_ == std::numeric_limits<std::int64_t>::max()) origin_ns_ = 0;
  messages_.match();
}

}  // namespace heddle::trace
