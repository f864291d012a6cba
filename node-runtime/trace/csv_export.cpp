#include "node-runtime/trace/csv_export.hpp"

#include <algorithm>
#include <fmt/core.h>
#include <iterator>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "node-runtime/trace/atomic_file.hpp"
#include "node-runtime/trace/rows.hpp"
#include "node-runtime/trace/visit.hpp"

namespace heddle::trace {
namespace {

constexpr std::string_view columns =
    "kind,node,thread,name,job,order,priority,start_us,end_us,matrix,tile,version,from,to,bytes,"
    "stream\n";

/// A CSV field, quoted if necessary.
std::string field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + '"';
}

/// A number, or an empty field if not applicable.
template <class Number>
std::string number(Number value) {
  return value < 0 ? std::string() : fmt::format("{}", value);
}

class CsvWriter {
 public:
  CsvWriter(const std::filesystem::path& output, const std::vector<NodeTrace>& traces)
      : file_(output.string()), traces_(traces) {}

  std::uint64_t write() {
    for (const NodeTrace& trace : traces_) {
      zero_ns_ = std::min(zero_ns_, first_ns(trace));
    }
    put(columns);
    for (const NodeTrace& trace : traces_) {
      for (const ThreadRecords& thread : trace.threads) {
        for (const Record& record : thread.records) {
          visit(record, [&](const auto& r) { line(trace, thread, line_of(trace, r)); });
        }
      }
    }
    file_.commit();
    return lines_;
  }

 private:
  /// The fields behind the thread's name, except the times.
  struct Line {
    std::string_view kind;
    std::string_view name;
    std::int64_t job = -1;
    std::int64_t order = -1;
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
    Tile tile{};
    Version version{-1};
    std::int32_t from = -1;
    std::int32_t to = -1;
    std::int32_t stream = -1;
    std::string priority;
    std::string bytes;
  };

  void line(const NodeTrace& trace, const ThreadRecords& thread, const Line& l) {
    const auto us = [&](std::int64_t ns) {
      return static_cast<double>(to_node0_ns(trace.info.clock_offsets, ns) - zero_ns_) * 1e-3;
    };
    put(fmt::format("{},{},{},{},{},{},{},{:.3f},{:.3f},{},{},{},{},{},{},{}\n", l.kind,
                    trace.node.value(), field(thread.name), field(l.name), number(l.job),
                    number(l.order), l.priority, us(l.start_ns), us(l.end_ns),
                    number(l.tile.matrix), number(l.tile.index), number(l.version.value()),
                    number(l.from), number(l.to), l.bytes, number(l.stream)));
    ++lines_;
  }

  static Line line_of(const NodeTrace& trace, const TaskRecord& task) {
    return {.kind = "task",
            .name = trace.names[task.kernel.value()],
            .job = task.job,
            .order = static_cast<std::int64_t>(task.order),
            .start_ns = task.start_ns,
            .end_ns = task.end_ns,
            .tile = task.tile,
            .to = task.place.value(),
            .stream = task.stream - 1,
            .priority = fmt::format("{}", task.priority),
            .bytes = {}};
  }
  static Line line_of(const NodeTrace& /*trace*/, const WaitRecord& wait) {
    return {.kind = "wait",
            .name = name(wait.cause),
            .job = wait.job,
            .start_ns = wait.start_ns,
            .end_ns = wait.end_ns,
            .tile = wait.tile,
            .version = wait.version,
            .priority = {},
            .bytes = {}};
  }
  static Line line_of(const NodeTrace& /*trace*/, const CopyRecord& copy) {
    return {.kind = "copy",
            .name = name(copy.reason),
            .job = copy.job,
            .start_ns = copy.start_ns,
            .end_ns = copy.end_ns,
            .tile = copy.tile,
            .version = copy.version,
            .from = copy.from.value(),
            .to = copy.to.value(),
            .priority = {},
            .bytes = fmt::format("{}", copy.bytes)};
  }
  static Line line_of(const NodeTrace& trace, const MessageRecord& message) {
    const bool is_sent = message.kind == RecordKind::send;
    return {.kind = is_sent ? "send" : "receive",
            .name = path_name(message.path),
            .job = message.job,
            .start_ns = message.start_ns,
            .end_ns = message.end_ns,
            .tile = message.tile,
            .version = message.version,
            .from = (is_sent ? trace.node : message.peer).value(),
            .to = (is_sent ? message.peer : trace.node).value(),
            .priority = {},
            .bytes = fmt::format("{}", message.bytes)};
  }
  static Line line_of(const NodeTrace& /*trace*/, const FragmentRecord& fragment) {
    return {.kind = "fragment",
            .name = name(fragment.step),
            .job = fragment.job,
            .start_ns = fragment.start_ns,
            .end_ns = fragment.end_ns,
            .tile = fragment.tile,
            .version = fragment.version,
            .priority = {},
            .bytes = fmt::format("{}", fragment.bytes)};
  }
  static Line line_of(const NodeTrace& trace, const CollectiveRecord& collective) {
    return {.kind = "collective",
            .name = trace.names[collective.operation.value()],
            .order = collective.number,
            .start_ns = collective.start_ns,
            .end_ns = collective.end_ns,
            .priority = {},
            .bytes = fmt::format("{}", collective.bytes)};
  }
  static Line line_of(const NodeTrace& trace, const CounterRecord& counter) {
    return {.kind = "counter",
            .name = trace.names[counter.name.value()],
            .start_ns = counter.time_ns,
            .end_ns = counter.time_ns,
            .to = counter.place.value(),
            .priority = {},
            .bytes = fmt::format("{}", counter.value)};
  }

  void put(std::string_view text) { file_.write(std::as_bytes(std::span(text))); }

  AtomicFile file_;
  const std::vector<NodeTrace>& traces_;
  std::int64_t zero_ns_ = std::numeric_limits<std::int64_t>::max();
  std::uint64_t lines_ = 0;
};

}  // namespace

std::uint64_t write_csv(const std::vector<NodeTrace>& traces, const std::filesystem::path& output) {
  return CsvWriter(output, traces).write();
}

}  // namespace heddle::trace
