#include "replay/run.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "node-runtime/trace/counter_names.hpp"
#include "node-runtime/trace/node_file.hpp"
#include "node-runtime/trace/rows.hpp"
#include "node-runtime/trace/run_folder.hpp"
#include "node-runtime/trace/visit.hpp"

namespace heddle::replay {
namespace {

Role role_of(std::string_view name) {
  if (name == "generation") return Role::generation;
  if (name.starts_with("worker")) return Role::worker;
  if (name.starts_with("device")) return Role::device;
  if (name == "copy") return Role::copy;
  if (name == "mpi") return Role::messages;
  return Role::other;
}

/// Merges the names of several nodes, made printable.
class Names {
 public:
  explicit Names(std::vector<std::string>& all) : all_(all) {}

  /// The run's ids for a node's names.
  [[nodiscard]] std::vector<trace::NameId> take(const std::vector<std::string>& names) {
    std::vector<trace::NameId> ids;
    ids.reserve(names.size());
    for (const std::string& text : names) {
      const auto next = trace::NameId(static_cast<std::uint32_t>(all_.size()));
      const auto [entry, is_new] = ids_.try_emplace(text, next);
      if (is_new) all_.push_back(printable(text));
      ids.push_back(entry->second);
    }
    return ids;
  }

 private:
  std::vector<std::string>& all_;
  std::unordered_map<std::string, trace::NameId> ids_;
};

/// Adds the records of a node.
class NodeReader {
 public:
  NodeReader(RunTrace& run, std::vector<Message>& sends, const trace::NodeTrace& trace, Names& all,
             bool is_whole)
      : run_(run),
        sends_(sends),
        trace_(trace),
        all_names_(all),
        names_(all.take(trace.names)),
        is_whole_(is_whole) {
    for (const std::string& text : trace.names) {
      generated_jobs_.push_back(trace::job_of_generated(text));
    }
  }

  void read() {
    for (const std::size_t t : trace::threads_in_order(trace_)) read(trace_.threads[t]);
  }

 private:
  void read(const trace::ThreadRecords& row) {
    thread_ = ThreadId(static_cast<std::int32_t>(run_.threads.size()));
    Thread thread;
    thread.node = trace_.node;
    thread.name = printable(row.name);
    thread.role = role_of(row.name);
    thread.sort_order = row.sort_order;
    thread.dropped = row.dropped;
    thread.is_cut = !is_whole_ || row.dropped > 0;
    thread.first_task = TaskId(static_cast<std::int32_t>(run_.tasks.size()));
    thread.first_wait = std::ssize(run_.waits);
    recorded_.reset();
    trace::for_each_record(row.records, [&](std::size_t i) {
      trace::visit(row.records[i], [&](const auto& record) { add(record); });
      trace::for_each_access(row.records, i, [&](const trace::TileAccess& access) {
        run_.accesses.push_back({access.tile, access.version, access.mode});
      });
    });
    thread.last_task = TaskId(static_cast<std::int32_t>(run_.tasks.size()));
    thread.last_wait = std::ssize(run_.waits);
    thread.recorded = recorded_;
    run_.threads.push_back(std::move(thread));
  }

  /// Its accesses follow.
  void add(const trace::TaskRecord& record) {
    Task task;
    task.thread = thread_;
    task.kernel = record.fine == 0 ? names_[record.kernel.value()] : fine_name(record.kernel);
    task.job = record.job;
    task.place = record.place;
    task.order = record.order;
    task.time = time(record.start_ns, record.end_ns);
    task.tile = record.tile;
    task.priority = record.priority;
    task.fine = record.fine;
    if (record.fine > 0 && record.reserved == trace::unknown_number) task.after = record.after;
    task.stream = record.stream;
    if (record.is_divided != 0) {
      task.divided_ns = task.time.start_ns;
      task.time.start_ns = task.time.end_ns;
    }
    task.first_access = static_cast<std::int64_t>(run_.accesses.size());
    task.access_count = record.access_count;
    run_.tasks.push_back(task);
  }
  /// Separate name, since fine tasks of a kernel have other durations.
  [[nodiscard]] trace::NameId fine_name(trace::NameId kernel) {
    const auto [entry, is_new] = fine_names_.try_emplace(kernel);
    if (is_new) entry->second = all_names_.take({"fine " + trace_.names[kernel.value()]}).front();
    return entry->second;
  }

  void add(const trace::WaitRecord& wait) {
    run_.waits.push_back({thread_, wait.cause, time(wait.start_ns, wait.end_ns)});
  }
  void add(const trace::CopyRecord& copy) {
    run_.copies.push_back({trace_.node, copy.job, copy.tile, copy.version, copy.from, copy.to,
                           copy.reason, copy.bytes, time(copy.start_ns, copy.end_ns)});
  }
  void add(const trace::MessageRecord& message) {
    const bool is_sent = message.kind == trace::RecordKind::send;
    const Interval when = time(message.start_ns, message.end_ns);
    std::optional<PlaceId> place;
    if (message.place != 0) place = PlaceId{message.place - 1};
    (is_sent ? sends_ : run_.messages)
        .push_back(
            {message.job, message.tile, message.version, is_sent ? trace_.node : message.peer,
             is_sent ? message.peer : trace_.node, message.path, message.bytes, when,
             time(message.posted_ns, message.end_ns).start_ns, is_sent ? place : std::nullopt,
             is_sent ? std::nullopt : place, message.is_passed_on != 0});
  }

  void add(const trace::CounterRecord& counter) {
    const std::int64_t when = time(counter.time_ns, counter.time_ns).start_ns;
    if (const auto job = generated_jobs_[counter.name.value()]) {
      run_.generated.push_back(
          {trace_.node, *job, static_cast<std::uint64_t>(counter.value), when});
      return;
    }
    run_.counters.push_back(
        {trace_.node, names_[counter.name.value()], counter.place, when, counter.value});
  }
  void add(const trace::CollectiveRecord& one) {
    run_.collectives.push_back({trace_.node, names_[one.operation.value()],
                                names_[one.algorithm.value()], one.group, one.number, one.ranks,
                                one.bytes, one.is_on_stream != 0, time(one.start_ns, one.end_ns)});
  }
  /// Not needed by any analysis.
  void add(const trace::FragmentRecord& /*fragment*/) {}

  /// On node 0's clock; extends the thread's recorded time.
  [[nodiscard]] Interval time(std::int64_t start_ns, std::int64_t end_ns) {
    const auto& offsets = trace_.info.clock_offsets;
    const Interval all{trace::to_node0_ns(offsets, start_ns), trace::to_node0_ns(offsets, end_ns)};
    if (!recorded_) recorded_ = all;
    recorded_->start_ns = std::min(recorded_->start_ns, all.start_ns);
    recorded_->end_ns = std::max(recorded_->end_ns, all.end_ns);
    return all;
  }

  RunTrace& run_;
  std::vector<Message>& sends_;
  const trace::NodeTrace& trace_;
  Names& all_names_;
  std::vector<trace::NameId> names_;
  bool is_whole_;
  std::unordered_map<trace::NameId, trace::NameId> fine_names_;
  std::vector<std::optional<std::int32_t>> generated_jobs_;  ///< by the node's names
  ThreadId thread_;
  std::optional<Interval> recorded_;  ///< of that thread so far
};

/// The run's id from a node's file; empty for files written for other purposes.
std::string run_of(const nlohmann::json& metadata) {
  const bool says =
      metadata.is_object() && metadata.contains("run") && metadata.at("run").is_string();
  return says ? metadata.at("run").get<std::string>() : std::string();
}

auto key_of(const Message& m) {
  return std::tuple(m.job, m.tile.matrix, m.tile.index, m.version, m.from, m.to);
}

/// Moves the start of receives to that of their sends.
void begin_with_their_sends(std::vector<Message>& receives, std::vector<Message> sends) {
  std::ranges::sort(sends, {}, key_of);
  for (Message& message : receives) {
    const auto sent = std::ranges::lower_bound(sends, key_of(message), {}, key_of);
    if (sent == sends.end() || key_of(*sent) != key_of(message)) continue;
    message.from_place = sent->from_place;
    message.is_passed_on = sent->is_passed_on;
    message.time.start_ns =
        std::clamp(sent->time.start_ns, message.time.start_ns, message.time.end_ns);
  }
}

/// Checks that traces are of one run and finds missing nodes.
class OneRun {
 public:
  /// Throws Error(usage) if the trace is of another run.
  void add(const trace::NodeTrace& trace, const nlohmann::json& metadata, const std::string& file) {
    const std::string id = run_of(metadata);
    if (nodes_.empty()) node_count_ = trace.node_count;
    if (id.empty()) {
      anonymous_.push_back(trace.node.value());
    } else if (id_.empty()) {
      id_ = id;
    }
    if (trace.node_count != node_count_ || (!id.empty() && id != id_)) {
      throw Error(ErrorCode::usage,
                  fmt::format("'{}' is of another run than those before it: give a folder with the "
                              "files of one run",
                              file));
    }
    nodes_.push_back(trace.node);
  }

  [[nodiscard]] bool is_empty() const { return nodes_.empty(); }
  [[nodiscard]] std::int32_t node_count() const { return node_count_; }
  /// Ascending.
  [[nodiscard]] std::vector<NodeId> nodes() const {
    std::vector<NodeId> sorted = nodes_;
    std::ranges::sort(sorted);
    return sorted;
  }
  [[nodiscard]] std::vector<std::string> damages() const {
    std::vector<std::string> all;
    const std::vector<NodeId> there = nodes();
    std::vector<std::int32_t> missing;
    for (std::int32_t node = 0; node < node_count_; ++node) {
      if (!std::ranges::binary_search(there, NodeId{node})) missing.push_back(node);
    }
    if (!missing.empty()) {
      all.push_back(fmt::format("of {} nodes, the trace of {} {} is not there", node_count_,
                                missing.size() == 1 ? "node" : "nodes", fmt::join(missing, ", ")));
    }
    if (!id_.empty() && !anonymous_.empty()) {
      all.push_back(fmt::format("the trace of {} {} does not say which run it is of",
                                anonymous_.size() == 1 ? "node" : "nodes",
                                fmt::join(anonymous_, ", ")));
    }
    return all;
  }

 private:
  std::vector<NodeId> nodes_;
  std::int32_t node_count_ = 0;
  std::string id_;                       ///< of traces with an id
  std::vector<std::int32_t> anonymous_;  ///< nodes of traces without an id
};

/// Merges the traces of the nodes.
class RunMaker {
 public:
  explicit RunMaker(const std::string& source) : names_(run_.names) {
    run_.source = printable(source);  // for tables and pages
  }

  /// `is_whole`: the whole trace was read.
  void add(const trace::NodeTrace& trace, const std::string& file, bool is_whole) {
    const auto metadata = nlohmann::json::parse(trace.info.metadata);
    const bool is_first = nodes_.is_empty();
    nodes_.add(trace, metadata, file);
    if (metadata.is_object() && metadata.contains("about") && !metadata.at("about").is_null()) {
      run_.about = metadata.at("about").dump();
      run_.configuration = metadata.value("configuration", nlohmann::json()).dump();
    }
    if (metadata.is_object() && metadata.contains("node")) {
      const nlohmann::json& node = metadata.at("node");
      if (is_first) run_.where = node.dump();
      if (node.is_object() && node.contains("host") && node.at("host").is_string()) {
        run_.hosts[trace.node] = node.at("host").get<std::string>();
      }
    }
    add_matrices(trace.matrices);
    NodeReader(run_, sends_, trace, names_, is_whole).read();
  }

  [[nodiscard]] RunTrace take() {
    run_.node_count = nodes_.node_count();
    run_.nodes = nodes_.nodes();
    begin_with_their_sends(run_.messages, std::move(sends_));
    run_.damages = nodes_.damages();
    for (const Thread& thread : run_.threads) {
      if (thread.dropped == 0) continue;
      run_.damages.push_back(fmt::format("{} records of '{}' of node {} found no room",
                                         thread.dropped, thread.name, thread.node.value()));
    }
    return std::move(run_);
  }

 private:
  /// Matrices are equal on all nodes; each may know only some.
  void add_matrices(const std::vector<trace::MatrixDescription>& matrices) {
    for (const trace::MatrixDescription& matrix : matrices) {
      const auto known = std::ranges::lower_bound(run_.matrices, matrix.matrix, {},
                                                  &trace::MatrixDescription::matrix);
      if (known != run_.matrices.end() && known->matrix == matrix.matrix) continue;
      run_.matrices.insert(known, matrix)->name = printable(matrix.name);
    }
  }

  RunTrace run_;
  std::vector<Message> sends_;
  Names names_;
  OneRun nodes_;
};

}  // namespace

const char* name(Role role) {
  static constexpr std::array<const char*, role_count> names{"generation", "worker",   "device",
                                                             "copy",       "messages", "other"};
  return names.at(static_cast<std::size_t>(role));
}

std::optional<Interval> RunTrace::makespan() const {
  if (tasks.empty()) return std::nullopt;
  Interval all{std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()};
  for (const Task& task : tasks) {
    all.start_ns = std::min(all.start_ns, task.time.start_ns);
    all.end_ns = std::max(all.end_ns, task.time.end_ns);
  }
  return all;
}

std::string RunTrace::label_of(const Task& task) const {
  const auto matrix =
      std::ranges::lower_bound(matrices, task.tile.matrix, {}, &trace::MatrixDescription::matrix);
  const bool is_cut =
      matrix != matrices.end() && matrix->matrix == task.tile.matrix && matrix->tile_rows > 0;
  if (task.tile.index < 0) return kernel_of(task);
  if (!is_cut) return fmt::format("{} (tile {})", kernel_of(task), task.tile.index);
  return fmt::format("{} ({}, {})", kernel_of(task), task.tile.index % matrix->tile_rows,
                     task.tile.index / matrix->tile_rows);
}

RunTrace make_run(const std::string& source, const std::vector<trace::NodeTrace>& traces) {
  RunMaker maker(source);
  for (const trace::NodeTrace& trace : traces) maker.add(trace, "a trace in memory", true);
  return maker.take();
}

namespace {

/// Reads a run's files: calls `take(trace, file, is_whole)` for each.
template <class Take>
std::vector<std::string> read_files(const std::filesystem::path& path, const Take& take) {
  std::vector<std::string> damages;
  const auto read = [&](const std::filesystem::path& file, std::optional<NodeId> node) {
    trace::SalvagedTrace salvaged = trace::salvage_node_file(file);
    if (node && salvaged.trace.node != *node) {
      throw Error(ErrorCode::usage, fmt::format("trace file '{}' is of node {}; was it renamed?",
                                                file.string(), salvaged.trace.node.value()));
    }
    if (!salvaged.damage.empty()) damages.push_back(salvaged.damage);
    return salvaged;
  };
  std::error_code unknown;  // of an unreadable path; the reader reports it
  const std::filesystem::file_type type = std::filesystem::status(path, unknown).type();
  if (type == std::filesystem::file_type::not_found) {
    throw Error(ErrorCode::usage,
                fmt::format("there is no run '{}': is it misspelt? heddle solve ... --trace {} "
                            "writes one",
                            path.string(), path.string()));
  }
  if (type != std::filesystem::file_type::directory) {
    trace::SalvagedTrace salvaged = read(path, std::nullopt);
    take(std::move(salvaged.trace), path, salvaged.damage.empty());
    return damages;
  }
  const auto files = trace::node_files_in(path);
  if (files.empty()) {
    throw Error(ErrorCode::usage,
                fmt::format("there is no trace in '{}': heddle solve ... --trace {} writes one",
                            path.string(), path.string()));
  }
  bool is_any_there = false;
  for (const auto& [node, file] : files) {
    std::optional<trace::SalvagedTrace> salvaged;
    try {
      salvaged = read(file, node);
    } catch (const Error& error) {
      if (files.size() == 1) throw;
      damages.emplace_back(error.what());
      continue;
    }
    is_any_there = true;
    take(std::move(salvaged->trace), file, salvaged->damage.empty());
  }
  if (is_any_there) return damages;
  throw Error(ErrorCode::usage, fmt::format("none of the {} traces in '{}' can be read",
                                            files.size(), path.string()));
}

}  // namespace

RunTrace load_run(const std::filesystem::path& path) {
  RunMaker maker(path.string());
  std::vector<std::string> damages =
      read_files(path, [&](const trace::NodeTrace& trace, const std::filesystem::path& file,
                           bool is_whole) { maker.add(trace, file.string(), is_whole); });
  RunTrace run = maker.take();
  run.damages.insert(run.damages.begin(), std::make_move_iterator(damages.begin()),
                     std::make_move_iterator(damages.end()));
  return run;
}

SalvagedRun salvage_run(const std::filesystem::path& path) {
  SalvagedRun run;
  OneRun nodes;
  run.damages = read_files(
      path, [&](trace::NodeTrace trace, const std::filesystem::path& file, bool /*is_whole*/) {
        nodes.add(trace, nlohmann::json::parse(trace.info.metadata), file.string());
        run.traces.push_back(std::move(trace));
      });
  if (std::filesystem::is_directory(path)) {
    std::ranges::move(nodes.damages(), std::back_inserter(run.damages));
  }
  return run;
}

}  // namespace heddle::replay
