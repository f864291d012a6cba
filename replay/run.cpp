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
#include "node-runtime/trace/node_file.hpp"
#include "node-runtime/trace/run_folder.hpp"

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

/// Names of several nodes as those of one run.
class Names {
 public:
  explicit Names(std::vector<std::string>& all) : all_(all) {}

  /// What the ids of a node become.
  [[nodiscard]] std::vector<trace::NameId> take(const std::vector<std::string>& names) {
    std::vector<trace::NameId> ids;
    ids.reserve(names.size());
    for (const std::string& text : names) {
      const auto next = trace::NameId(static_cast<std::uint32_t>(all_.size()));
      const auto [entry, is_new] = ids_.try_emplace(text, next);
      if (is_new) all_.push_back(text);
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
  NodeReader(RunTrace& run, std::vector<Message>& sends, const trace::NodeTrace& trace,
             const std::vector<trace::NameId>& names)
      : run_(run), sends_(sends), trace_(trace), names_(names) {}

  void read() {
    std::vector<const trace::ThreadRecords*> rows;
    for (const auto& thread : trace_.threads) rows.push_back(&thread);
    std::ranges::stable_sort(rows, {}, [](const auto* row) { return row->sort_order; });
    for (const auto* row : rows) read(*row);
  }

 private:
  void read(const trace::ThreadRecords& row) {
    thread_ = ThreadId(static_cast<std::int32_t>(run_.threads.size()));
    const TaskId first{static_cast<std::int32_t>(run_.tasks.size())};
    for (std::size_t i = 0; i < row.records.size(); ++i) read(row.records, i);
    run_.threads.push_back({trace_.node, row.name, role_of(row.name), row.sort_order, row.dropped,
                            first, TaskId(static_cast<std::int32_t>(run_.tasks.size()))});
  }

  void read(const std::vector<trace::Record>& records, std::size_t i) {
    const trace::Record& record = records[i];
    switch (record.kind()) {
      case trace::RecordKind::task:
        return read_task(records, i);
      case trace::RecordKind::wait: {
        const auto wait = record.as<trace::WaitRecord>();
        run_.waits.push_back({thread_, wait.cause, time(wait.start_ns, wait.end_ns)});
        return;
      }
      case trace::RecordKind::copy: {
        const auto copy = record.as<trace::CopyRecord>();
        run_.copies.push_back({trace_.node, copy.job, copy.tile, copy.version, copy.from, copy.to,
                               copy.reason, copy.bytes, time(copy.start_ns, copy.end_ns)});
        return;
      }
      case trace::RecordKind::send: {
        const auto message = record.as<trace::MessageRecord>();
        sends_.push_back({message.job, message.tile, message.version, trace_.node, message.peer,
                          message.path, message.bytes, time(message.start_ns, message.end_ns)});
        return;
      }
      case trace::RecordKind::receive: {
        const auto message = record.as<trace::MessageRecord>();
        run_.messages.push_back({message.job, message.tile, message.version, message.peer,
                                 trace_.node, message.path, message.bytes,
                                 time(message.start_ns, message.end_ns)});
        return;
      }
      default:
        return;
    }
  }

  void read_task(const std::vector<trace::Record>& records, std::size_t i) {
    const auto record = records[i].as<trace::TaskRecord>();
    Task task;
    task.thread = thread_;
    task.kernel = names_[record.kernel.value()];
    task.job = record.job;
    task.place = record.place;
    task.order = record.order;
    task.time = time(record.start_ns, record.end_ns);
    task.tile = record.tile;
    task.priority = record.priority;
    task.first_access = static_cast<std::int64_t>(run_.accesses.size());
    task.access_count = record.access_count;
    for (std::size_t k = 0; k < record.access_count; ++k) {
      const auto group = records[i + 1 + k / trace::accesses_per_record].as<trace::AccessRecord>();
      const trace::TileAccess& access = group[k % trace::accesses_per_record];
      run_.accesses.push_back({access.tile, access.version, access.mode});
    }
    run_.tasks.push_back(task);
  }

  [[nodiscard]] Interval time(std::int64_t start_ns, std::int64_t end_ns) const {
    const auto& offsets = trace_.info.clock_offsets;
    return {trace::to_node0_ns(offsets, start_ns), trace::to_node0_ns(offsets, end_ns)};
  }

  RunTrace& run_;
  std::vector<Message>& sends_;
  const trace::NodeTrace& trace_;
  const std::vector<trace::NameId>& names_;
  ThreadId thread_;
};

/// What all nodes' files say which run they are of; files written for other purposes do not.
std::string run_of(const nlohmann::json& metadata) {
  const bool says = metadata.is_object() && metadata.contains("run");
  return says ? metadata.at("run").get<std::string>() : std::string();
}

auto key_of(const Message& m) {
  return std::tuple(m.job, m.tile.matrix, m.tile.index, m.version, m.from, m.to);
}

/// Receives begin no earlier than what they receive.
void begin_with_their_sends(std::vector<Message>& receives, std::vector<Message> sends) {
  std::ranges::sort(sends, {}, key_of);
  for (Message& message : receives) {
    const auto sent = std::ranges::lower_bound(sends, key_of(message), {}, key_of);
    if (sent == sends.end() || key_of(*sent) != key_of(message)) continue;
    message.time.start_ns =
        std::clamp(sent->time.start_ns, message.time.start_ns, message.time.end_ns);
  }
}

void check_that_all_are_there(RunTrace& run) {
  std::vector<std::int32_t> missing;
  for (std::int32_t node = 0; node < run.node_count; ++node) {
    if (!std::ranges::binary_search(run.nodes, NodeId{node})) missing.push_back(node);
  }
  if (missing.empty()) return;
  run.damages.push_back(fmt::format("of {} nodes, the trace of {} {} is not there", run.node_count,
                                    missing.size() == 1 ? "node" : "nodes",
                                    fmt::join(missing, ", ")));
}

/// Adds what the nodes have recorded, one after the other.
class RunMaker {
 public:
  explicit RunMaker(std::string source) : names_(run_.names) { run_.source = std::move(source); }

  void add(const trace::NodeTrace& trace, const std::string& file) {
    const auto metadata = nlohmann::json::parse(trace.info.metadata);
    if (run_.nodes.empty()) {
      run_.node_count = trace.node_count;
      run_id_ = run_of(metadata);
    } else if (trace.node_count != run_.node_count || run_of(metadata) != run_id_) {
      throw Error(ErrorCode::usage,
                  fmt::format("'{}' is of another run than those before it: give a folder with the "
                              "files of one run",
                              file));
    }
    if (metadata.is_object() && metadata.contains("about") && !metadata.at("about").is_null()) {
      run_.about = metadata.at("about").dump();
    }
    run_.nodes.push_back(trace.node);
    const std::vector<trace::NameId> ids = names_.take(trace.names);
    NodeReader(run_, sends_, trace, ids).read();
  }

  [[nodiscard]] RunTrace take() {
    std::ranges::sort(run_.nodes);
    begin_with_their_sends(run_.messages, std::move(sends_));
    check_that_all_are_there(run_);
    for (const Thread& thread : run_.threads) {
      if (thread.dropped == 0) continue;
      run_.damages.push_back(fmt::format("{} records of '{}' of node {} found no room",
                                         thread.dropped, thread.name, thread.node.value()));
    }
    return std::move(run_);
  }

 private:
  RunTrace run_;
  std::vector<Message> sends_;
  Names names_;
  std::string run_id_;
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

RunTrace make_run(std::string source, const std::vector<trace::NodeTrace>& traces) {
  RunMaker maker(std::move(source));
  for (const trace::NodeTrace& trace : traces) maker.add(trace, "a trace in memory");
  return maker.take();
}

namespace {

/// Reads a run's files one after the other: `take(trace, file)` gets each trace.
template <class Take>
std::vector<std::string> read_files(const std::filesystem::path& path, const Take& take) {
  std::vector<std::string> damages;
  const auto read = [&](const std::filesystem::path& file, std::optional<NodeId> node) {
    trace::SalvagedTrace salvaged = trace::salvage_node_file(file);
    if (node && salvaged.trace.node != *node) {
      throw Error(ErrorCode::usage, fmt::format("trace file '{}' is of node {}; was it renamed?",
                                                file.string(), salvaged.trace.node.value()));
    }
    if (!salvaged.damage.empty()) damages.push_back(std::move(salvaged.damage));
    return std::move(salvaged.trace);
  };
  if (!std::filesystem::is_directory(path)) {
    take(read(path, std::nullopt), path);
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
    std::optional<trace::NodeTrace> trace;
    try {
      trace = read(file, node);
    } catch (const Error& error) {
      if (files.size() == 1) throw;
      damages.emplace_back(error.what());
      continue;
    }
    is_any_there = true;
    take(std::move(*trace), file);
  }
  if (is_any_there) return damages;
  throw Error(ErrorCode::usage, fmt::format("none of the {} traces in '{}' can be read",
                                            files.size(), path.string()));
}

}  // namespace

RunTrace load_run(const std::filesystem::path& path) {
  RunMaker maker(path.string());
  std::vector<std::string> damages =
      read_files(path, [&](const trace::NodeTrace& trace, const std::filesystem::path& file) {
        maker.add(trace, file.string());
      });
  RunTrace run = maker.take();
  run.damages.insert(run.damages.begin(), std::make_move_iterator(damages.begin()),
                     std::make_move_iterator(damages.end()));
  return run;
}

SalvagedRun salvage_run(const std::filesystem::path& path) {
  SalvagedRun run;
  run.damages = read_files(path, [&](trace::NodeTrace trace, const std::filesystem::path&) {
    run.traces.push_back(std::move(trace));
  });
  return run;
}

}  // namespace heddle::replay
