#include "node-runtime/trace/chrome_export.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <fmt/format.h>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "base/error.hpp"
#include "node-runtime/trace/atomic_file.hpp"
#include "node-runtime/trace/json_text.hpp"
#include "node-runtime/trace/message_flows.hpp"
#include "node-runtime/trace/node_file.hpp"

namespace heddle::trace {

namespace {

/// Shown together on rows of their own; in the order of the rows.
enum class Group : std::uint8_t { work, copies, sends, receives, fragments };
constexpr std::array<std::string_view, 5> group_suffixes{"", ": copies", ": sends", ": receives",
                                                         ": fragments"};

std::optional<Group> group_of(RecordKind kind) {
  switch (kind) {
    case RecordKind::task:
    case RecordKind::wait:
      return Group::work;
    case RecordKind::copy:
      return Group::copies;
    case RecordKind::send:
      return Group::sends;
    case RecordKind::receive:
      return Group::receives;
    case RecordKind::fragment:
      return Group::fragments;
    default:
      return std::nullopt;
  }
}

struct Slice {
  SliceTimes times;
  std::size_t record = 0;
};

/// Calls `use(kind, position)` for each record that is not part of the one before it.
template <class Use>
void for_each_record(const std::vector<Record>& records, const Use& use) {
  for (std::size_t i = 0; i < records.size(); ++i) {
    const RecordKind kind = records[i].kind();
    use(kind, i);
    if (kind == RecordKind::task) i += access_records(records[i].as<TaskRecord>().access_count);
  }
}

SliceTimes times_of(const RunInfo& info, const Record& record) {
  switch (record.kind()) {
    case RecordKind::task: {
      const auto r = record.as<TaskRecord>();
      return slice_times(info, r.start_ns, r.end_ns);
    }
    case RecordKind::wait: {
      const auto r = record.as<WaitRecord>();
      return slice_times(info, r.start_ns, r.end_ns);
    }
    case RecordKind::copy: {
      const auto r = record.as<CopyRecord>();
      return slice_times(info, r.start_ns, r.end_ns);
    }
    case RecordKind::fragment: {
      const auto r = record.as<FragmentRecord>();
      return slice_times(info, r.start_ns, r.end_ns);
    }
    default: {
      const auto r = record.as<MessageRecord>();
      return slice_times(info, r.start_ns, r.end_ns);
    }
  }
}

/// Distributes slices over as few rows as keep those of one row from overlapping: viewers drop a
/// slice that begins inside another and ends outside of it. Each row is ordered by time.
std::vector<std::vector<Slice>> into_rows(std::vector<Slice> slices) {
  const auto earlier = [](const Slice& a, const Slice& b) {
    return std::tie(a.times.start, a.times.end) < std::tie(b.times.start, b.times.end);
  };
  // Nearly always in order already.
  if (!std::ranges::is_sorted(slices, earlier)) std::ranges::stable_sort(slices, earlier);
  std::vector<std::vector<Slice>> rows;
  for (const Slice& slice : slices) {
    const auto free = std::ranges::find_if(rows, [&](const std::vector<Slice>& row) {
      return row.back().times.end <= slice.times.start;
    });
    (free == rows.end() ? rows.emplace_back() : *free).push_back(slice);
  }
  return rows;
}

/// The texts of one node, escaped once so that records can be written by copying.
class Labels {
 public:
  explicit Labels(const NodeTrace& trace) {
    names_.reserve(trace.names.size());
    for (const std::string& text : trace.names) names_.push_back(escaped(text));
    for (const MatrixDescription& matrix : trace.matrices) {
      matrices_[matrix.matrix] = {escaped(matrix.name), matrix.tile_rows};
    }
  }

  void put_name(JsonText& to, NameId id) const { to << names_[id.value()]; }

  /// One of the viewer's colours for each kernel, the same on all nodes and in all runs; viewers
  /// that know none of these names choose for themselves.
  [[nodiscard]] std::string_view color(NameId kernel) const {
    static constexpr std::array<std::string_view, 8> colors{
        "thread_state_running", "rail_response",   "rail_animation",        "rail_load",
        "cq_build_running",     "cq_build_passed", "vsync_highlight_color", "startup"};
    std::uint64_t hash = 0xCBF29CE484222325ULL;
    for (const char c : names_[kernel.value()]) {
      hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
    }
    return colors[hash % colors.size()];
  }

  /// "gsmm (5, 3)"
  void put_task(JsonText& to, const TaskRecord& task) const {
    put_name(to, task.kernel);
    if (task.row >= 0 && task.column >= 0) {
      to << " (" << task.row << ", " << task.column << ')';
    } else if (task.tile.index >= 0) {
      put_position(to, task.tile);
    }
  }

  /// "A (5, 3)", as far as it is known
  void put_tile(JsonText& to, const Tile& tile) const {
    const auto found = matrices_.find(tile.matrix);
    if (found == matrices_.end()) {
      to << "matrix " << tile.matrix;
    } else {
      to << found->second.name;
    }
    put_position(to, tile);
  }

  static void put_place(JsonText& to, PlaceId place) {
    if (place == host_place) {
      to << "host";
    } else {
      to << "device " << place.value() - 1;
    }
  }

 private:
  struct Matrix {
    std::string name;
    std::int32_t tile_rows = 0;
  };

  void put_position(JsonText& to, const Tile& tile) const {
    const auto found = matrices_.find(tile.matrix);
    if (found == matrices_.end() || found->second.tile_rows == 0 || tile.index < 0) {
      to << " tile " << tile.index;
      return;
    }
    const std::int32_t rows = found->second.tile_rows;
    to << " (" << tile.index % rows << ", " << tile.index / rows << ')';
  }

  std::vector<std::string> names_;
  std::unordered_map<std::int32_t, Matrix> matrices_;
};

/// Gives the trace at a place of the merge; the reference is good until the next call.
using Load = std::function<const NodeTrace&(std::size_t)>;

class ChromeExport {
 public:
  ChromeExport(std::size_t count, Load load, const std::filesystem::path& output)
      : count_(count), load_(std::move(load)), file_(output.string()), json_(file_) {}

  ExportSummary run() {
    survey();
    json_ << R"({"displayTimeUnit":"ns","traceEvents":[)";
    for (std::size_t i = 0; i < count_; ++i) put_node(i, load_(i));
    json_ << "\n],\n"
          << R"("otherData":{"written by":"heddle","messages":{"matched":)"
          << flows_.counts().matched << R"(,"lone sends":)" << flows_.counts().lone_sends
          << R"(,"lone receives":)" << flows_.counts().lone_receives << R"(,"backwards":)"
          << flows_.counts().backwards << R"(},"nodes":)" << nodes_.dump() << "}}\n";
    json_.hand_over(true);
    file_.commit();
    return summary_;
  }

 private:
  /// First pass: what must be known of all nodes before the first event can be written.
  void survey() {
    std::map<std::int32_t, std::size_t> seen;
    std::int32_t node_count = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      const NodeTrace& trace = load_(i);
      const auto [earlier, is_new] = seen.emplace(trace.node.value(), i);
      if (!is_new) {
        throw Error(ErrorCode::usage,
                    fmt::format("traces {} and {} to merge are both of node {}; give one for each "
                                "node of one run",
                                earlier->second + 1, i + 1, trace.node.value()));
      }
      if (i == 0) node_count = trace.node_count;
      if (trace.node_count != node_count) {
        throw Error(ErrorCode::usage,
                    fmt::format("trace {} to merge is of a run with {} nodes, trace 1 of one with "
                                "{}; give those of one run",
                                i + 1, trace.node_count, node_count));
      }
      process_base_ = std::max(process_base_, trace.node.value() + 1);
      find_origin(trace);
      flows_.add(i, trace);
      describe(trace);
    }
    if (!origin_) origin_ = 0;
    flows_.match();
    const MessageFlows::Counts& counts = flows_.counts();
    summary_.arrows = counts.matched - counts.backwards;
    summary_.messages_without_partner = counts.lone_sends + counts.lone_receives;
    summary_.messages_backwards = counts.backwards;
    // Above all process numbers: viewers take a thread with the number of its process as special,
    // and those with the same number in two processes as one.
    next_row_ = process_base_ + 1;
  }

  void find_origin(const NodeTrace& trace) {
    std::int64_t first = origin_.value_or(std::numeric_limits<std::int64_t>::max());
    for (const ThreadRecords& thread : trace.threads) {
      for_each_record(thread.records, [&](RecordKind kind, std::size_t i) {
        const Record& record = thread.records[i];
        if (group_of(kind)) {
          first = std::min(first, times_of(trace.info, record).start);
        } else if (kind == RecordKind::counter) {
          first = std::min(
              first, to_node0_ns(trace.info.clock_offsets, record.as<CounterRecord>().time_ns));
        }
      });
    }
    if (first != std::numeric_limits<std::int64_t>::max()) origin_ = first;
  }

  void describe(const NodeTrace& trace) {
    std::uint64_t dropped = 0;
    for (const ThreadRecords& thread : trace.threads) dropped += thread.dropped;
    summary_.records_dropped += dropped;
    nodes_.push_back({{"node", trace.node.value()},
                      {"nodes", trace.node_count},
                      {"records dropped", dropped},
                      {"metadata", nlohmann::json::parse(trace.info.metadata)}});
  }

  void put_node(std::size_t index, const NodeTrace& trace) {
    // From 1: process 0 is the idle process to some viewers.
    process_ = trace.node.value() + 1;
    begin_event();
    json_ << R"({"ph":"M","name":"process_name","pid":)" << process_ << R"(,"args":{"name":"node )"
          << trace.node.value() << R"("}})";
    begin_event();
    json_ << R"({"ph":"M","name":"process_sort_index","pid":)" << process_
          << R"(,"args":{"sort_index":)" << trace.node.value() << "}}";
    std::vector<std::size_t> order(trace.threads.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, {}, [&](std::size_t t) { return trace.threads[t].sort_order; });
    const Labels labels(trace);
    for (const std::size_t t : order) put_thread(index, trace, t, labels);
    put_counters(trace, labels);
  }

  void put_thread(std::size_t index, const NodeTrace& trace, std::size_t t, const Labels& labels) {
    const ThreadRecords& thread = trace.threads[t];
    std::array<std::vector<Slice>, group_suffixes.size()> groups;
    for_each_record(thread.records, [&](RecordKind kind, std::size_t i) {
      const std::optional<Group> group = group_of(kind);
      if (!group) return;
      groups[static_cast<std::size_t>(*group)].push_back(
          {times_of(trace.info, thread.records[i]), i});
    });
    for (std::size_t g = 0; g < groups.size(); ++g) {
      summary_.slices += groups[g].size();
      std::vector<std::vector<Slice>> rows = into_rows(std::move(groups[g]));
      // A thread that recorded nothing still shows that it was there.
      if (g == 0 && rows.empty()) rows.emplace_back();
      for (std::size_t r = 0; r < rows.size(); ++r) {
        std::string name = fmt::format("{}{}", thread.name, group_suffixes[g]);
        if (r > 0) name += fmt::format(" ({})", r + 1);
        if (g == 0 && r == 0 && thread.dropped > 0) {
          name += fmt::format(" [{} records dropped]", thread.dropped);
        }
        begin_row(name);
        for (const Slice& slice : rows[r]) {
          put_slice(trace, thread, slice, labels);
          put_arrow({index, t, slice.record}, static_cast<Group>(g));
        }
      }
    }
  }

  void begin_row(const std::string& name) {
    row_ = next_row_++;
    begin_event();
    json_ << R"({"ph":"M","name":"thread_name","pid":)" << process_ << R"(,"tid":)" << row_
          << R"(,"args":{"name":")" << escaped(name) << R"("}})";
    begin_event();
    json_ << R"({"ph":"M","name":"thread_sort_index","pid":)" << process_ << R"(,"tid":)" << row_
          << R"(,"args":{"sort_index":)" << row_ << "}}";
  }

  void put_slice(const NodeTrace& trace, const ThreadRecords& thread, const Slice& slice,
                 const Labels& labels) {
    const Record& record = thread.records[slice.record];
    begin_event();
    json_ << R"({"ph":"X","pid":)" << process_ << R"(,"tid":)" << row_ << R"(,"ts":)";
    put_time(slice.times.start);
    json_ << R"(,"dur":)";
    json_.microseconds(slice.times.end - slice.times.start);
    switch (record.kind()) {
      case RecordKind::task:
        put_task(thread.records, slice.record, labels);
        break;
      case RecordKind::wait:
        put_wait(record.as<WaitRecord>(), labels);
        break;
      case RecordKind::copy:
        put_copy(record.as<CopyRecord>(), labels);
        break;
      case RecordKind::fragment:
        put_fragment(record.as<FragmentRecord>(), labels);
        break;
      default:
        put_message(trace.node, record.as<MessageRecord>(), labels);
        break;
    }
    json_ << '}';
  }

  void put_task(const std::vector<Record>& records, std::size_t i, const Labels& labels) {
    const auto task = records[i].as<TaskRecord>();
    json_ << R"(,"cat":"task","cname":")" << labels.color(task.kernel) << R"(","name":")";
    labels.put_task(json_, task);
    json_ << R"(","args":{"job":)" << task.job << R"(,"order":)" << task.order << R"(,"priority":)"
          << task.priority << R"(,"place":")";
    Labels::put_place(json_, task.place);
    json_ << R"(","accesses":[)";
    for (std::size_t k = 0; k < task.access_count; ++k) {
      const auto group = records[i + 1 + k / accesses_per_record].as<AccessRecord>();
      const TileAccess& access = group[k % accesses_per_record];
      json_ << (k == 0 ? "\"" : ",\"") << name(access.mode) << ' ';
      labels.put_tile(json_, access.tile);
      json_ << " v" << access.version.value();
      if (access.mode != AccessMode::read) json_ << " -> v" << access.version.value() + 1;
      json_ << '"';
    }
    json_ << "]}";
  }

  void put_wait(const WaitRecord& wait, const Labels& labels) {
    json_ << R"(,"cat":"wait","cname":"grey","name":"wait: )" << name(wait.cause)
          << R"(","args":{)";
    if (wait.tile.index >= 0) {
      put_version(wait.job, wait.tile, wait.version, labels);
    }
    json_ << '}';
  }

  void put_copy(const CopyRecord& copy, const Labels& labels) {
    json_ << R"(,"cat":"copy","name":")" << name(copy.reason) << ' ';
    labels.put_tile(json_, copy.tile);
    json_ << R"(","args":{)";
    if (copy.reason == CopyReason::access) {
      put_version(copy.job, copy.tile, copy.version, labels);
      json_ << ',';
    }
    json_ << R"("from":")";
    Labels::put_place(json_, copy.from);
    json_ << R"(","to":")";
    Labels::put_place(json_, copy.to);
    json_ << R"(","bytes":)" << copy.bytes;
    put_queued(copy.start_ns - copy.posted_ns);
    json_ << '}';
  }

  void put_message(NodeId node, const MessageRecord& message, const Labels& labels) {
    const bool received = message.kind == RecordKind::receive;
    json_ << (received ? R"(,"cat":"message","name":"receive )"
                       : R"(,"cat":"message","name":"send )");
    labels.put_tile(json_, message.tile);
    json_ << R"(","args":{)";
    put_version(message.job, message.tile, message.version, labels);
    json_ << R"(,"from":"node )" << (received ? message.peer : node).value() << R"(","to":"node )"
          << (received ? node : message.peer).value() << R"(","tag":)" << message.tag
          << R"(,"bytes":)" << message.bytes;
    if (message.path != 0) json_ << R"(,"path":")" << path_name(message.path) << '"';
    put_queued(message.start_ns - message.posted_ns);
    json_ << '}';
  }

  void put_fragment(const FragmentRecord& fragment, const Labels& labels) {
    json_ << R"(,"cat":"fragment","name":")" << name(fragment.step) << ' ';
    labels.put_tile(json_, fragment.tile);
    json_ << R"(","args":{)";
    put_version(fragment.job, fragment.tile, fragment.version, labels);
    json_ << R"(,"peer":"node )" << fragment.peer.value() << R"(","begin":)" << fragment.begin
          << R"(,"bytes":)" << fragment.bytes << '}';
  }

  void put_version(std::int32_t job, const Tile& tile, Version version, const Labels& labels) {
    json_ << R"("job":)" << job << R"(,"tile":")";
    labels.put_tile(json_, tile);
    json_ << R"(","version":)" << version.value();
  }

  void put_queued(std::int64_t ns) {
    json_ << R"(,"queued us":)";
    json_.microseconds(ns);
  }

  void put_arrow(const RecordPlace& place, Group group) {
    if (group != Group::sends && group != Group::receives) return;
    const std::optional<FlowEnd> end = flows_.find(place);
    if (!end) return;
    begin_event();
    json_ << (group == Group::sends ? R"({"ph":"s")" : R"({"ph":"f","bp":"e")")
          << R"(,"cat":"message","name":"message","id":)" << end->id << R"(,"pid":)" << process_
          << R"(,"tid":)" << row_ << R"(,"ts":)";
    put_time(end->time);
    json_ << '}';
  }

  /// All threads of a node may change the same counter, so their records are put in order here.
  void put_counters(const NodeTrace& trace, const Labels& labels) {
    std::vector<CounterRecord> counters;
    for (const ThreadRecords& thread : trace.threads) {
      for_each_record(thread.records, [&](RecordKind kind, std::size_t i) {
        if (kind == RecordKind::counter) {
          counters.push_back(thread.records[i].as<CounterRecord>());
        }
      });
    }
    std::ranges::stable_sort(counters, {}, &CounterRecord::time_ns);
    for (const CounterRecord& counter : counters) {
      begin_event();
      json_ << R"({"ph":"C","pid":)" << process_ << R"(,"ts":)";
      put_time(to_node0_ns(trace.info.clock_offsets, counter.time_ns));
      json_ << R"(,"name":")";
      labels.put_name(json_, counter.name);
      json_ << ", ";
      Labels::put_place(json_, counter.place);
      json_ << R"(","args":{"count":)" << counter.value << "}}";
    }
  }

  /// Time 0 is half a nanosecond before the first event, hence the last digit. Perfetto multiplies
  /// microseconds by 1000 in double precision and cuts off the rest; a time that were a whole
  /// number of nanoseconds could so lose one, and a slice that begins where another ends would
  /// overlap it and be dropped.
  void put_time(std::int64_t ns) { json_.microseconds(ns - *origin_) << '5'; }

  void begin_event() {
    json_.hand_over();
    json_ << (first_event_ ? "\n" : ",\n");
    first_event_ = false;
  }

  std::size_t count_;
  Load load_;
  AtomicFile file_;
  JsonText json_;
  MessageFlows flows_;
  std::optional<std::int64_t> origin_;
  nlohmann::json nodes_ = nlohmann::json::array();
  ExportSummary summary_;
  bool first_event_ = true;
  std::int32_t process_base_ = 0;
  std::int32_t process_ = 0;
  std::int32_t row_ = 0;
  std::int32_t next_row_ = 0;
};

}  // namespace

ExportSummary merge_to_chrome(const std::vector<std::filesystem::path>& node_files,
                              const std::filesystem::path& output) {
  NodeTrace current;
  std::optional<std::size_t> loaded;
  const Load load = [&](std::size_t i) -> const NodeTrace& {
    if (loaded != i) {
      loaded.reset();
      current = {};  // before the next one is read
      current = read_node_file(node_files[i]);
      loaded = i;
    }
    return current;
  };
  return ChromeExport(node_files.size(), load, output).run();
}

ExportSummary merge_to_chrome(const std::vector<NodeTrace>& traces,
                              const std::filesystem::path& output) {
  for (const NodeTrace& trace : traces) {
    check(trace, fmt::format("the trace of node {}", trace.node.value()));
  }
  return ChromeExport(
             traces.size(), [&](std::size_t i) -> const NodeTrace& { return traces[i]; }, output)
      .run();
}

}  // namespace heddle::trace
