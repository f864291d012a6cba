#include "node-runtime/trace/chrome_export.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fmt/core.h>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "node-runtime/trace/atomic_file.hpp"
#include "node-runtime/trace/labels.hpp"
#include "node-runtime/trace/message_flows.hpp"
#include "node-runtime/trace/node_file.hpp"
#include "node-runtime/trace/rows.hpp"
#include "node-runtime/trace/slice_details.hpp"
#include "node-runtime/trace/survey.hpp"
#include "node-runtime/trace/text.hpp"
#include "node-runtime/trace/visit.hpp"

namespace heddle::trace {

namespace {

/// Escapes for a JSON string; invalid UTF-8 becomes U+FFFD.
std::string escaped(std::string_view text) {
  const std::string whole =
      nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return whole.substr(1, whole.size() - 2);
}

/// The viewer's colour names for kernels; other viewers choose their own.
constexpr std::array<std::string_view, 8> colors{
    "thread_state_running", "rail_response",   "rail_animation",        "rail_load",
    "cq_build_running",     "cq_build_passed", "vsync_highlight_color", "startup"};

/// Appends a slice's members to those written; leaves "args" open.
class JsonSlice final : public SliceSink {
 public:
  explicit JsonSlice(FileText& json) : json_(json) {}

  void begin(std::string_view category, std::string_view name) override {
    json_ << R"(,"cat":")" << category << R"(","name":")" << name << R"(","args":{)";
    is_first_ = true;
  }
  void number(std::string_view key, std::int64_t value) override {
    begin_member(key);
    json_ << "\":" << value;
  }
  void text(std::string_view key, std::string_view value) override {
    begin_member(key);
    json_ << R"(":")" << value << '"';
  }
  void duration(std::string_view key, std::int64_t ns) override {
    begin_member(key);
    json_ << R"( us":)";
    json_.microseconds(ns);
  }

 private:
  void begin_member(std::string_view key) {
    json_ << (is_first_ ? "\"" : ",\"") << key;
    is_first_ = false;
  }

  FileText& json_;
  bool is_first_ = true;
};

/// Loads the trace at an index of the merge; the reference is valid until the next call.
using Load = std::function<const NodeTrace&(std::size_t)>;

class ChromeExport {
 public:
  ChromeExport(std::size_t count, Load load, const std::filesystem::path& output)
      : count_(count), load_(std::move(load)), file_(output.string()), json_(file_) {}

  ExportSummary run() {
    for (std::size_t i = 0; i < count_; ++i) {
      survey_.add(load_(i));
      describe(load_(i));
    }
    survey_.finish();
    next_row_ = survey_.first_row();
    const MessageFlows::Counts& counts = survey_.messages().counts();
    summary_.arrows = counts.matched - counts.backwards;
    summary_.messages_without_partner = counts.lone_sends + counts.lone_receives;
    summary_.messages_backwards = counts.backwards;
    summary_.records_dropped = survey_.records_dropped();
    json_ << R"({"displayTimeUnit":"ns","traceEvents":[)";
    for (std::size_t i = 0; i < count_; ++i) put_node(i, load_(i));
    json_ << "\n],\n"
          << R"("otherData":{"written by":"heddle","messages":{"matched":)" << counts.matched
          << R"(,"lone sends":)" << counts.lone_sends << R"(,"lone receives":)"
          << counts.lone_receives << R"(,"backwards":)" << counts.backwards << R"(},"nodes":)"
          << nodes_.dump() << "}}\n";
    json_.hand_over(true);
    file_.commit();
    return summary_;
  }

 private:
  void describe(const NodeTrace& trace) {
    std::uint64_t dropped = 0;
    for (const ThreadRecords& thread : trace.threads) dropped += thread.dropped;
    nodes_.push_back({{"node", trace.node.value()},
                      {"nodes", trace.node_count},
                      {"records dropped", dropped},
                      {"metadata", nlohmann::json::parse(trace.info.metadata)}});
  }

  void put_node(std::size_t index, const NodeTrace& trace) {
    process_ = Survey::process(trace.node);
    begin_event();
    json_ << R"({"ph":"M","name":"process_name","pid":)" << process_ << R"(,"args":{"name":"node )"
          << trace.node.value() << R"("}})";
    begin_event();
    json_ << R"({"ph":"M","name":"process_sort_index","pid":)" << process_
          << R"(,"args":{"sort_index":)" << trace.node.value() << "}}";
    const Labels labels(trace, escaped);
    JsonSlice slice(json_);
    SliceDetails details(trace, labels, slice);
    for (const std::size_t t : threads_in_order(trace)) {
      for (const Row& row : rows_of(trace, trace.threads[t])) {
        begin_row(row.name);
        summary_.slices += row.slices.size();
        for (const Slice& s : row.slices) {
          put_slice(trace.threads[t].records, s, labels, details);
          put_arrow({index, t, s.record}, row.group);
        }
      }
    }
    put_counters(trace, labels);
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

  void put_slice(const std::vector<Record>& records, const Slice& slice, const Labels& labels,
                 SliceDetails& details) {
    const Record& record = records[slice.record];
    begin_event();
    json_ << R"({"ph":"X","pid":)" << process_ << R"(,"tid":)" << row_ << R"(,"ts":)";
    put_time(slice.times.start);
    json_ << R"(,"dur":)";
    json_.microseconds(slice.times.end - slice.times.start);
    if (record.kind() == RecordKind::wait) json_ << R"(,"cname":"grey")";
    if (record.kind() == RecordKind::task) {
      const NameId kernel = record.as<TaskRecord>().kernel;
      json_ << R"(,"cname":")" << colors[labels.color(kernel, colors.size())] << '"';
    }
    details.tell(record);
    if (record.kind() == RecordKind::task) put_accesses(records, slice.record, labels);
    json_ << "}}";
  }

  void put_accesses(const std::vector<Record>& records, std::size_t task, const Labels& labels) {
    json_ << R"(,"accesses":[)";
    bool is_first = true;
    for_each_access(records, task, [&](const TileAccess& access) {
      json_ << (is_first ? "\"" : ",\"") << name(access.mode) << ' ';
      is_first = false;
      labels.put_tile(json_, access.tile);
      json_ << " v" << access.version.value();
      if (access.mode != AccessMode::read) json_ << " -> v" << access.version.value() + 1;
      json_ << '"';
    });
    json_ << ']';
  }

  void put_arrow(const RecordPlace& place, Group group) {
    if (group != Group::sends && group != Group::receives) return;
    const std::optional<FlowEnd> end = survey_.messages().find(place);
    if (!end) return;
    begin_event();
    json_ << (group == Group::sends ? R"({"ph":"s")" : R"({"ph":"f","bp":"e")")
          << R"(,"cat":"message","name":"message","id":)" << end->id << R"(,"pid":)" << process_
          << R"(,"tid":)" << row_ << R"(,"ts":)";
    put_time(end->time);
    json_ << '}';
  }

  void put_counters(const NodeTrace& trace, const Labels& labels) {
    for (const CounterRecord& counter : counters_of(trace)) {
      begin_event();
      json_ << R"({"ph":"C","pid":)" << process_ << R"(,"ts":)";
      put_time(to_node0_ns(trace.info.clock_offsets, counter.time_ns));
      json_ << R"(,"name":")";
      labels.put_counter(json_, counter);
      json_ << R"(","args":{"count":)" << counter.value << "}}";
    }
  }

  /// Time 0 is half a nanosecond before the first event, hence the trailing digit. Perfetto
  /// multiplies microseconds by 1000 in double precision and truncates, so a whole number of
  /// nanoseconds could lose one; a slice that begins where another ends would then overlap it and
  /// be dropped.
  void put_time(std::int64_t ns) { json_.microseconds(ns - survey_.origin_ns()) << '5'; }

  void begin_event() {
    json_.hand_over();
    json_ << (first_event_ ? "\n" : ",\n");
    first_event_ = false;
  }

  std::size_t count_;
  Load load_;
  AtomicFile file_;
  FileText json_;
  Survey survey_;
  nlohmann::json nodes_ = nlohmann::json::array();
  ExportSummary summary_;
  bool first_event_ = true;
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
      current = {};  // freed before the next one is read
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
