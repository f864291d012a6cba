#include "node-runtime/trace/message_flows.hpp"

#include <algorithm>
#include <tuple>

#include "node-runtime/trace/visit.hpp"

namespace heddle::trace {

SliceTimes slice_times(const RunInfo& info, std::int64_t start_ns, std::int64_t end_ns) {
  const std::int64_t start = to_node0_ns(info.clock_offsets, start_ns);
  return {start, std::max(start + 1, to_node0_ns(info.clock_offsets, end_ns))};
}

void MessageFlows::add(std::size_t index, const NodeTrace& trace) {
  for (std::size_t t = 0; t < trace.threads.size(); ++t) {
    const auto& records = trace.threads[t].records;
    for_each_record(records, [&](std::size_t i) {
      const RecordKind kind = records[i].kind();
      if (kind != RecordKind::send && kind != RecordKind::receive) return;
      const auto m = records[i].as<MessageRecord>();
      const bool received = kind == RecordKind::receive;
      const NodeId from = received ? m.peer : trace.node;
      const NodeId to = received ? trace.node : m.peer;
      const SliceTimes times = slice_times(trace.info, m.start_ns, m.end_ns);
      messages_.push_back(
          {.key = {m.job, m.tile.matrix, m.tile.index, m.version.value(), from.value(), to.value()},
           .received = received,
           .start = times.start,
           .end = times.end,
           .place = {index, t, i}});
    });
  }
}

void MessageFlows::match() {
  const auto order = [](const Message& m) { return std::tie(m.key, m.received, m.start, m.place); };
  std::ranges::sort(messages_,
                    [&](const Message& a, const Message& b) { return order(a) < order(b); });
  for (auto first = messages_.begin(); first != messages_.end();) {
    const auto last =
        std::find_if(first, messages_.end(), [&](const Message& m) { return m.key != first->key; });
    const auto middle = std::find_if(first, last, [](const Message& m) { return m.received; });
    auto sent = first;
    auto received = middle;
    while (sent != middle && received != last) pair(*sent++, *received++);
    counts_.lone_sends += static_cast<std::uint64_t>(middle - sent);
    counts_.lone_receives += static_cast<std::uint64_t>(last - received);
    first = last;
  }
  messages_ = {};
  std::ranges::sort(ends_, {}, &FlowEnd::place);
}

void MessageFlows::pair(const Message& sent, const Message& received) {
  ++counts_.matched;
  // Strictly inside the slices: viewers may order events at their edges either way.
  const std::int64_t leaves = sent.start + (sent.end - sent.start > 1 ? 1 : 0);
  const std::int64_t arrives = received.end - 1;
  if (arrives < leaves) {
    ++counts_.backwards;
    return;
  }
  const std::uint64_t id = counts_.matched;
  ends_.push_back({sent.place, id, leaves});
  ends_.push_back({received.place, id, arrives});
}

std::optional<FlowEnd> MessageFlows::find(const RecordPlace& place) const {
  const auto found = std::ranges::lower_bound(ends_, place, {}, &FlowEnd::place);
  if (found == ends_.end() || found->place != place) return std::nullopt;
  return *found;
}

}  // namespace heddle::trace
