#include "replay/export/paje_export.hpp"

#include <algorithm>
#include <array>
#include <compare>
#include <fmt/core.h>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <string>
#include <string_view>
#include <utility>

#include "node-runtime/trace/atomic_file.hpp"
#include "node-runtime/trace/labels.hpp"
#include "node-runtime/trace/rows.hpp"
#include "node-runtime/trace/text.hpp"
#include "node-runtime/trace/visit.hpp"
#include "replay/export/paje_header.hpp"
#include "replay/run.hpp"

namespace heddle::replay {
namespace {

using paje::Line;
using trace::NodeTrace;

/// For a quoted string: Paje has no escapes.
std::string unquoted(std::string_view text) {
  std::string plain = trace::as_utf8(text);
  for (char& c : plain) {
    if (c == '"') c = '\'';
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  return plain;
}

constexpr std::string_view grey = "0.75 0.75 0.75";
constexpr std::string_view blue = "0.25 0.45 0.85";
constexpr std::array<std::string_view, 8> kernel_colors{
    "0.30 0.60 0.30", "0.85 0.55 0.20", "0.60 0.40 0.70", "0.85 0.75 0.25",
    "0.40 0.75 0.75", "0.80 0.35 0.35", "0.55 0.75 0.35", "0.65 0.50 0.40"};

/// Whether a dependency has a link: between nodes, and not backwards in time; a slice is at least 1
/// ns long (trace::slice_times).
bool has_link(const RunTrace& run, const Task& maker, const Task& reader) {
  const std::int64_t end_ns = std::max(maker.time.start_ns + 1, maker.time.end_ns);
  const bool is_between_nodes = run.at(maker.thread).node != run.at(reader.thread).node;
  return is_between_nodes && end_ns <= reader.time.start_ns;
}

/// Next event in time; at equal times ends come first, so a link begins before it ends, and a state
/// ends before its container's next one.
struct Next {
  std::int64_t time = 0;
  enum class Kind : std::uint8_t { end, value, begin } kind = Kind::end;
  std::size_t source = 0;
  friend auto operator<=>(const Next&, const Next&) = default;
};

/// Unwritten rest of a row's slices, or of a node's counters.
struct Source {
  std::size_t node = 0;  ///< index of its trace
  std::size_t thread = 0;
  TaskId first_task;  ///< of the thread
  trace::Row row;
  std::vector<trace::CounterRecord> counters;
  std::size_t place = 0;
  bool is_open = false;  ///< the slice's begin is written
};

class PajeExport {
 public:
  PajeExport(const std::vector<NodeTrace>& traces, const std::filesystem::path& output)
      : traces_(traces),
        file_(output.string()),
        out_(file_),
        flows_(traces, has_link),
        summary_(flows_.counts()) {}

  RunExport run() {
    for (const NodeTrace& trace : traces_) labels_.emplace_back(trace, unquoted);
    gather();
    out_ << paje::header;
    define_types();
    define_values();
    create_containers();
    put_events();
    destroy_containers();
    out_.hand_over(true);
    file_.commit();
    return summary_;
  }

 private:
  void gather() {
    for (std::size_t i = 0; i < traces_.size(); ++i) {
      std::size_t place = 0;
      for (const std::size_t t : trace::threads_in_order(traces_[i])) {
        for (trace::Row& row : trace::rows_of(traces_[i], traces_[i].threads[t])) {
          Source& source = sources_.emplace_back();
          source.node = i;
          source.thread = t;
          source.first_task = flows_.first_task(i, place);
          source.row = std::move(row);
          summary_.slices += source.row.slices.size();
        }
        ++place;
      }
    }
    rows_ = sources_.size();
    for (std::size_t i = 0; i < traces_.size(); ++i) {
      Source& source = sources_.emplace_back();
      source.node = i;
      source.counters = trace::counters_of(traces_[i]);
      summary_.values += source.counters.size();
    }
  }

  void define_types() {
    begin(Line::define_container_type) << " R 0 \"run\"\n";
    begin(Line::define_container_type) << " N R \"node\"\n";
    begin(Line::define_container_type) << " T N \"thread\"\n";
    begin(Line::define_state_type) << " S T \"state\"\n";
    begin(Line::define_link_type) << " M R T T \"message\"\n";
    begin(Line::define_link_type) << " D R T T \"dependency\"\n";
    for (std::size_t i = rows_; i < sources_.size(); ++i) {
      for (const trace::CounterRecord& counter : sources_[i].counters) {
        trace::Text name;
        labels_[sources_[i].node].put_counter(name, counter);
        const auto [entry, is_new] =
            variables_.try_emplace(std::string(name.view()), variables_.size());
        if (!is_new) continue;
        begin(Line::define_variable_type)
            << " V" << entry->second << " N \"" << name.view() << "\" \"" << blue << "\"\n";
      }
    }
  }

  /// Defines the values that occur.
  void define_values() {
    for (const Source& source : sources_) {
      for (const trace::Slice& slice : source.row.slices) {
        const trace::Record& record = record_of(source, slice);
        const std::string name = value_of(source, record);
        if (values_.contains(name)) continue;
        std::string_view color = record.kind() == trace::RecordKind::wait ? grey : blue;
        if (record.kind() == trace::RecordKind::task) {
          const trace::NameId kernel = record.as<trace::TaskRecord>().kernel;
          color = kernel_colors[labels_[source.node].color(kernel, kernel_colors.size())];
        }
        const std::size_t number = values_.size();
        values_.emplace(name, number);
        begin(Line::define_value) << " v" << number << " S \"" << name << "\" \"" << color
                                  << "\"\n";
      }
    }
  }

  void create_containers() {
    begin(Line::create_container, 0) << " run R 0 \"run\"\n";
    for (std::size_t i = 0; i < traces_.size(); ++i) {
      begin(Line::create_container, 0)
          << " n" << i << " N run \"node " << traces_[i].node.value() << "\"\n";
    }
    for (std::size_t i = 0; i < rows_; ++i) {
      begin(Line::create_container, 0) << " t" << i << " T n" << sources_[i].node << " \""
                                       << unquoted(sources_[i].row.name) << "\"\n";
    }
  }

  void destroy_containers() {
    for (std::size_t i = 0; i < rows_; ++i) {
      begin(Line::destroy_container, last_ns_) << " T t" << i << '\n';
    }
    for (std::size_t i = 0; i < traces_.size(); ++i) {
      begin(Line::destroy_container, last_ns_) << " N n" << i << '\n';
    }
    begin(Line::destroy_container, last_ns_) << " R run\n";
  }

  /// Merges the sources, each in its order, by time.
  void put_events() {
    std::priority_queue<Next, std::vector<Next>, std::greater<>> queue;
    const auto enqueue = [&](std::size_t source) {
      if (const auto next = next_of(source)) queue.push(*next);
    };
    for (std::size_t i = 0; i < sources_.size(); ++i) enqueue(i);
    while (!queue.empty()) {
      const Next next = queue.top();
      queue.pop();
      put(next);
      last_ns_ = next.time;
      enqueue(next.source);
      out_.hand_over();
    }
  }

  [[nodiscard]] std::optional<Next> next_of(std::size_t i) const {
    const Source& source = sources_[i];
    if (i >= rows_) {
      if (source.place == source.counters.size()) return std::nullopt;
      const auto& offsets = traces_[source.node].info.clock_offsets;
      return Next{from_origin(trace::to_node0_ns(offsets, source.counters[source.place].time_ns)),
                  Next::Kind::value, i};
    }
    if (source.place == source.row.slices.size()) return std::nullopt;
    const trace::SliceTimes times = source.row.slices[source.place].times;
    if (source.is_open) return Next{from_origin(times.end), Next::Kind::end, i};
    return Next{from_origin(times.start), Next::Kind::begin, i};
  }

  void put(const Next& next) {
    Source& source = sources_[next.source];
    switch (next.kind) {
      case Next::Kind::value:
        put_value(next.time, source, source.counters[source.place++]);
        return;
      case Next::Kind::begin:
        put_begin(next, source, source.row.slices[source.place]);
        source.is_open = true;
        return;
      case Next::Kind::end:
        put_end(next, source, source.row.slices[source.place++]);
        source.is_open = false;
        return;
    }
  }

  void put_value(std::int64_t time, const Source& source, const trace::CounterRecord& counter) {
    trace::Text name;
    labels_[source.node].put_counter(name, counter);
    begin(Line::set_variable, time) << " V" << variables_.find(name.view())->second << " n"
                                    << source.node << ' ' << counter.value << '\n';
  }

  void put_begin(const Next& next, const Source& source, const trace::Slice& slice) {
    const trace::Record& record = record_of(source, slice);
    const std::size_t value = values_.find(value_of(source, record))->second;
    if (record.kind() == trace::RecordKind::task) {
      for (const std::uint64_t flow : flows_.dependencies().into(task_of(source, slice))) {
        put_link(Line::end_link, next, 'D', flow);
      }
      const auto task = record.as<trace::TaskRecord>();
      begin_state(Line::push_task, next, value);
      put_tile(source, task.tile);
      out_ << ' ' << task.job << ' ' << task.order << ' ' << task.priority << '\n';
    } else if (record.kind() == trace::RecordKind::wait ||
               record.kind() == trace::RecordKind::collective) {
      begin_state(Line::push_state, next, value);
      out_ << '\n';
    } else {
      begin_state(Line::push_transfer, next, value);
      trace::visit(record, [&](const auto& r) {
        if constexpr (requires { r.bytes, r.tile; }) {
          put_tile(source, r.tile);
          out_ << ' ' << r.bytes << '\n';
        }
      });
    }
    if (record.kind() == trace::RecordKind::send)
      put_message(Line::start_link, next, source, slice);
  }

  void put_end(const Next& next, const Source& source, const trace::Slice& slice) {
    const trace::Record& record = record_of(source, slice);
    if (record.kind() == trace::RecordKind::receive) {
      put_message(Line::end_link, next, source, slice);
    }
    begin(Line::pop_state, next.time) << " S t" << next.source << '\n';
    if (record.kind() != trace::RecordKind::task) return;
    for (const std::uint64_t flow : flows_.dependencies().out_of(task_of(source, slice))) {
      put_link(Line::start_link, next, 'D', flow);
    }
  }

  void put_message(Line line, const Next& next, const Source& source, const trace::Slice& slice) {
    const auto end = flows_.survey().messages().find({source.node, source.thread, slice.record});
    if (end) put_link(line, next, 'M', end->id);
  }

  void put_link(Line line, const Next& next, char type, std::uint64_t id) {
    // Values of links are plain text: ViTE rejects defined ones.
    begin(line, next.time) << ' ' << type << " run " << (type == 'M' ? "message" : "dependency")
                           << " t" << next.source << ' ' << type << id << '\n';
  }

  void begin_state(Line line, const Next& next, std::size_t value) {
    begin(line, next.time) << " S t" << next.source << " v" << value;
  }

  void put_tile(const Source& source, const trace::Tile& tile) {
    out_ << " \"";
    labels_[source.node].put_tile(out_, tile);
    out_ << '"';
  }

  [[nodiscard]] const trace::Record& record_of(const Source& source,
                                               const trace::Slice& slice) const {
    return traces_[source.node].threads[source.thread].records[slice.record];
  }

  [[nodiscard]] static TaskId task_of(const Source& source, const trace::Slice& slice) {
    return source.first_task + static_cast<std::int32_t>(slice.task);
  }

  /// State of a container during a record.
  [[nodiscard]] std::string value_of(const Source& source, const trace::Record& record) const {
    switch (record.kind()) {
      case trace::RecordKind::task:
        return std::string(labels_[source.node].name(record.as<trace::TaskRecord>().kernel));
      case trace::RecordKind::wait:
        return fmt::format("wait: {}", name(record.as<trace::WaitRecord>().cause));
      case trace::RecordKind::copy:
        return name(record.as<trace::CopyRecord>().reason);
      case trace::RecordKind::fragment:
        return name(record.as<trace::FragmentRecord>().step);
      case trace::RecordKind::collective:
        return std::string(
            labels_[source.node].name(record.as<trace::CollectiveRecord>().operation));
      default:
        return record.kind() == trace::RecordKind::send ? "send" : "receive";
    }
  }

  [[nodiscard]] std::int64_t from_origin(std::int64_t ns) const {
    return ns - flows_.survey().origin_ns();
  }

  trace::Text& begin(Line line) { return out_ << static_cast<std::int32_t>(line); }
  trace::Text& begin(Line line, std::int64_t ns) { return (begin(line) << ' ').seconds(ns); }

  const std::vector<NodeTrace>& traces_;
  trace::AtomicFile file_;
  trace::FileText out_;
  RunFlows flows_;
  RunExport summary_;
  std::vector<trace::Labels> labels_;  ///< by trace
  std::vector<Source> sources_;        ///< rows, then the counters of each node
  std::size_t rows_ = 0;
  std::map<std::string, std::size_t, std::less<>> values_;
  std::map<std::string, std::size_t, std::less<>> variables_;
  std::int64_t last_ns_ = 0;
};

}  // namespace

RunExport export_to_paje(const std::vector<NodeTrace>& traces,
                         const std::filesystem::path& output) {
  return PajeExport(traces, output).run();
}

}  // namespace heddle::replay
