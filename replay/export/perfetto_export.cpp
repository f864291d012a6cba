#include "replay/export/perfetto_export.hpp"

#include <fmt/core.h>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "node-runtime/trace/atomic_file.hpp"
#include "node-runtime/trace/labels.hpp"
#include "node-runtime/trace/rows.hpp"
#include "node-runtime/trace/slice_details.hpp"
#include "replay/export/perfetto_fields.hpp"
#include "replay/export/protobuf.hpp"

namespace heddle::replay {
namespace {

namespace field = perfetto;
using trace::NodeTrace;

/// Texts already sent in a packet sequence; later packets refer to them by number.
class Interned {
 public:
  /// `kind`: the field of InternedData.
  explicit Interned(perfetto::Field kind) : kind_(kind) {}

  /// A text's number; appends a new text to `data`.
  std::uint64_t id(std::string_view text, ProtoMessage& data) {
    key_ = text;
    const auto [entry, is_new] = ids_.try_emplace(key_, ids_.size() + 1);
    if (is_new) {
      entry_.clear();
      entry_.number(field::interned::iid, entry->second).bytes(field::interned::text, text);
      data.message(kind_, entry_);
    }
    return entry->second;
  }

 private:
  perfetto::Field kind_;
  std::unordered_map<std::string, std::uint64_t> ids_;
  std::string key_;
  ProtoMessage entry_;
};

/// The packet sequence of one node.
class PacketSequence {
 public:
  PacketSequence(trace::AtomicFile& file, std::uint64_t id) : file_(file), id_(id) {}

  void put_track(const ProtoMessage& descriptor) {
    packet_.clear();
    packet_.message(field::packet::track_descriptor, descriptor);
    finish(is_first_ ? field::packet::incremental_state_cleared : 0);
    is_first_ = false;
  }
  void put_event(std::int64_t time_ns, const ProtoMessage& event) {
    packet_.clear();
    packet_.integer(field::packet::timestamp, time_ns).message(field::packet::track_event, event);
    if (!new_texts_.empty()) packet_.message(field::packet::interned_data, new_texts_);
    new_texts_.clear();
    finish(field::packet::needs_incremental_state);
  }

  // Numbers of texts for the next event.
  std::uint64_t category(std::string_view text) { return categories_.id(text, new_texts_); }
  std::uint64_t name(std::string_view text) { return names_.id(text, new_texts_); }
  std::uint64_t annotation(std::string_view key) { return annotations_.id(key, new_texts_); }
  std::uint64_t text(std::string_view text) { return texts_.id(text, new_texts_); }

 private:
  void finish(std::uint64_t flags) {
    packet_.number(field::packet::trusted_packet_sequence_id, id_);
    if (flags != 0) packet_.number(field::packet::sequence_flags, flags);
    framed_.clear();
    framed_.message(field::trace::packet, packet_);
    file_.write(std::as_bytes(std::span(framed_.view())));
  }

  trace::AtomicFile& file_;
  std::uint64_t id_;
  bool is_first_ = true;
  Interned categories_{field::interned_data::event_categories};
  Interned names_{field::interned_data::event_names};
  Interned annotations_{field::interned_data::annotation_names};
  Interned texts_{field::interned_data::annotation_texts};
  ProtoMessage new_texts_;
  ProtoMessage packet_;
  ProtoMessage framed_;
};

/// Adds a slice's category, name and arguments to its begin event.
class AnnotatedEvent final : public trace::SliceSink {
 public:
  AnnotatedEvent(PacketSequence& packets, ProtoMessage& event) : packets_(packets), event_(event) {}

  void begin(std::string_view category, std::string_view name) override {
    event_.number(field::event::category_iids, packets_.category(category));
    event_.number(field::event::name_iid, packets_.name(name));
  }
  void number(std::string_view key, std::int64_t value) override {
    annotation_.clear();
    annotation_.number(field::annotation::name_iid, packets_.annotation(key));
    annotation_.integer(field::annotation::integer, value);
    event_.message(field::event::annotations, annotation_);
  }
  void text(std::string_view key, std::string_view value) override {
    annotation_.clear();
    annotation_.number(field::annotation::name_iid, packets_.annotation(key));
    annotation_.number(field::annotation::text_iid, packets_.text(value));
    event_.message(field::event::annotations, annotation_);
  }
  void duration(std::string_view key, std::int64_t ns) override {
    key_ = key;
    number(key_ += " ns", ns);
  }

 private:
  PacketSequence& packets_;
  ProtoMessage& event_;
  ProtoMessage annotation_;
  std::string key_;
};

/// State shared by all nodes.
struct Whole {
  trace::AtomicFile& file;
  const RunFlows& flows;
  RunExport written;
  std::uint64_t next_track = 0;  ///< a thread's id is its track's number
};

class NodeExport {
 public:
  NodeExport(Whole& all, const NodeTrace& trace, std::size_t index)
      : all_(all),
        index_(index),
        trace_(trace),
        dependencies_(all.flows.dependencies()),
        process_(trace::Survey::process(trace_.node)),
        labels_(trace_, trace::as_utf8),
        packets_(all.file, static_cast<std::uint64_t>(process_)),
        begin_(packets_, event_),
        details_(trace_, labels_, begin_) {}

  void put() {
    put_process();
    std::size_t place = 0;
    for (const std::size_t t : trace::threads_in_order(trace_)) put_thread(t, place++);
    put_counters();
  }

 private:
  void put_process() {
    ProtoMessage process;
    process.integer(field::process::pid, process_)
        .bytes(field::process::name, fmt::format("node {}", trace_.node.value()))
        .integer(field::process::sort_index, trace_.node.value());
    ProtoMessage track;
    track.number(field::track::uuid, process_uuid()).message(field::track::process, process);
    packets_.put_track(track);
  }

  void put_thread(std::size_t t, std::size_t place) {
    const trace::ThreadRecords& thread = trace_.threads[t];
    const TaskId first_task = all_.flows.first_task(index_, place);
    const std::uint64_t thread_track = all_.next_track;
    std::int64_t rank = 0;
    for (const trace::Row& row : trace::rows_of(trace_, thread)) {
      const std::uint64_t track = all_.next_track++;
      if (track == thread_track) {
        put_thread_track(track, trace::as_utf8(row.name), place);
      } else {
        put_child_track(track, thread_track, trace::as_utf8(row.name), rank++);
      }
      all_.written.slices += row.slices.size();
      for (const trace::Slice& slice : row.slices) {
        const trace::Record& record = thread.records[slice.record];
        if (record.kind() == trace::RecordKind::task) {
          const TaskId task = first_task + static_cast<std::int32_t>(slice.task);
          put_task(track, slice, record, task);
        } else {
          put_other(track, slice, record, {index_, t, slice.record});
        }
      }
    }
  }

  void put_thread_track(std::uint64_t uuid, const std::string& name, std::size_t place) {
    ProtoMessage thread;
    thread.integer(field::thread::pid, process_)
        .number(field::thread::tid, uuid)
        .number(field::thread::sort_index, place)
        .bytes(field::thread::name, name);
    ProtoMessage track;
    track.number(field::track::uuid, uuid)
        .number(field::track::parent_uuid, process_uuid())
        .message(field::track::thread, thread)
        .number(field::track::child_ordering, field::track::explicit_ordering);
    packets_.put_track(track);
  }

  void put_child_track(std::uint64_t uuid, std::uint64_t parent, const std::string& name,
                       std::int64_t rank) {
    ProtoMessage track;
    track.number(field::track::uuid, uuid)
        .number(field::track::parent_uuid, parent)
        .bytes(field::track::name, name)
        .integer(field::track::sibling_order_rank, rank);
    packets_.put_track(track);
  }

  void put_task(std::uint64_t track, const trace::Slice& slice, const trace::Record& record,
                TaskId id) {
    const auto task = record.as<trace::TaskRecord>();
    begin_event(track, field::event::slice_begin);
    details_.tell(record);
    begin_.text("kernel", labels_.name(task.kernel));
    if (task.tile.index >= 0) {
      text_.clear();
      labels_.put_tile(text_, task.tile);
      begin_.text("tile", text_.view());
    }
    for (const std::uint64_t flow : dependencies_.out_of(id)) {
      event_.fixed64(field::event::flow_ids, flow);
    }
    put_event(slice.times.start);
    begin_event(track, field::event::slice_end);
    for (const std::uint64_t flow : dependencies_.into(id)) {
      event_.fixed64(field::event::terminating_flow_ids, flow);
    }
    put_event(slice.times.end);
  }

  /// A flow leads from the earlier event to the later. Receives usually begin before their sends,
  /// and readers may begin with their makers: so flows end at the end of slices.
  void put_other(std::uint64_t track, const trace::Slice& slice, const trace::Record& record,
                 const trace::RecordPlace& place) {
    std::uint64_t flow = 0;
    const bool is_received = record.kind() == trace::RecordKind::receive;
    if (is_received || record.kind() == trace::RecordKind::send) {
      const auto end = all_.flows.survey().messages().find(place);
      if (end) flow = dependencies_.count() + end->id;
    }
    begin_event(track, field::event::slice_begin);
    details_.tell(record);
    if (flow != 0 && !is_received) event_.fixed64(field::event::flow_ids, flow);
    put_event(slice.times.start);
    begin_event(track, field::event::slice_end);
    if (flow != 0 && is_received) event_.fixed64(field::event::terminating_flow_ids, flow);
    put_event(slice.times.end);
  }

  void put_counters() {
    std::map<std::pair<std::uint32_t, std::int32_t>, std::uint64_t> tracks;  // by name and place
    for (const trace::CounterRecord& counter : trace::counters_of(trace_)) {
      const auto [entry, is_new] =
          tracks.try_emplace({counter.name.value(), counter.place.value()}, all_.next_track);
      if (is_new) put_counter_track(all_.next_track++, counter);
      begin_event(entry->second, field::event::counter_type);
      event_.integer(field::event::counter_value, counter.value);
      put_event(trace::to_node0_ns(trace_.info.clock_offsets, counter.time_ns));
      ++all_.written.values;
    }
  }

  void put_counter_track(std::uint64_t uuid, const trace::CounterRecord& counter) {
    text_.clear();
    labels_.put_counter(text_, counter);
    ProtoMessage unit;
    unit.number(field::counter::unit, field::counter::unit_count);
    ProtoMessage track;
    track.number(field::track::uuid, uuid)
        .number(field::track::parent_uuid, process_uuid())
        .bytes(field::track::name, text_.view())
        .message(field::track::counter, unit);
    packets_.put_track(track);
  }

  void begin_event(std::uint64_t track, std::uint64_t type) {
    event_.clear();
    event_.number(field::event::type, type).number(field::event::track_uuid, track);
  }
  void put_event(std::int64_t ns) {
    packets_.put_event(ns - all_.flows.survey().origin_ns(), event_);
  }

  [[nodiscard]] std::uint64_t process_uuid() const { return static_cast<std::uint64_t>(process_); }

  Whole& all_;
  std::size_t index_;
  const NodeTrace& trace_;
  const DependencyFlows& dependencies_;
  std::int32_t process_;
  trace::Labels labels_;
  PacketSequence packets_;
  ProtoMessage event_;
  AnnotatedEvent begin_;
  trace::SliceDetails details_;
  trace::Text text_;
};

}  // namespace

RunExport export_to_perfetto(const std::vector<NodeTrace>& traces,
                             const std::filesystem::path& output) {
  trace::AtomicFile file(output.string());
  RunFlows flows(traces, [](const RunTrace&, const Task&, const Task&) { return true; });
  Whole all{file, flows, flows.counts(), static_cast<std::uint64_t>(flows.survey().first_row())};
  for (std::size_t i = 0; i < traces.size(); ++i) NodeExport(all, traces[i], i).put();
  file.commit();
  return all.written;
}

}  // namespace heddle::replay
