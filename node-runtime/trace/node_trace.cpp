#include "node-runtime/trace/node_trace.hpp"

#include <cstddef>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <span>

#include "base/error.hpp"

namespace heddle::trace {

namespace {

/// Error text for record `i`; empty if it is valid.
std::string problem(const NodeTrace& trace, const std::vector<Record>& records, std::size_t i) {
  const auto unknown_name = [&](NameId id) {
    return id.value() < trace.names.size()
               ? std::string()
               : fmt::format("it has name {}, but there are {}", id.value(), trace.names.size());
  };
  switch (records[i].kind()) {
    case RecordKind::task: {
      const auto task = records[i].as<TaskRecord>();
      const std::size_t behind = access_records(task.access_count);
      if (behind >= records.size() - i) return "the accesses of its task are missing";
      for (std::size_t k = 0; k < task.access_count; ++k) {
        const auto group = records[i + 1 + k / accesses_per_record].as<AccessRecord>();
        const TileAccess& access = group[k % accesses_per_record];
        if (access.kind != RecordKind::access || access.mode > AccessMode::read_write) {
          return fmt::format("access {} of its task is none", k);
        }
      }
      return unknown_name(task.kernel);
    }
    case RecordKind::counter:
      return unknown_name(records[i].as<CounterRecord>().name);
    case RecordKind::collective: {
      const auto collective = records[i].as<CollectiveRecord>();
      const std::string wrong = unknown_name(collective.operation);
      return wrong.empty() ? unknown_name(collective.algorithm) : wrong;
    }
    case RecordKind::wait:
      if (static_cast<std::uint8_t>(records[i].as<WaitRecord>().cause) >= wait_cause_count) {
        return "its cause of waiting is unknown";
      }
      return {};
    default:
      return {};
  }
}

}  // namespace

NodeTrace collect(const Recorder& recorder, const RunInfo& info) {
  NodeTrace trace{.node = recorder.options().node,
                  .node_count = recorder.options().node_count,
                  .info = info,
                  .names = {},
                  .matrices = recorder.matrices(),
                  .threads = {}};
  for (const ThreadTrace* thread : recorder.threads()) {
    ThreadRecords& to = trace.threads.emplace_back();
    to.name = thread->name();
    to.sort_order = thread->sort_order();
    to.totals = thread->totals();
    to.dropped = thread->dropped();
    thread->for_each_run([&](std::span<const Record> run) {
      to.records.insert(to.records.end(), run.begin(), run.end());
    });
  }
  // Last: then it includes every name that the records refer to.
  trace.names = recorder.names();
  return trace;
}

std::string drop_unsound(NodeTrace& trace) {
  std::string first;
  for (ThreadRecords& thread : trace.threads) {
    for (std::size_t i = 0; i < thread.records.size(); ++i) {
      const std::string wrong = problem(trace, thread.records, i);
      if (wrong.empty()) continue;
      if (first.empty()) {
        first = fmt::format("lacks what comes behind record {} of thread '{}': {}", i, thread.name,
                            wrong);
      }
      thread.records.resize(i);
    }
  }
  return first;
}

void check(const NodeTrace& trace, const std::string& source) {
  if (trace.node.value() < 0 || trace.node.value() >= trace.node_count) {
    throw Error(ErrorCode::usage, fmt::format("{}: it claims to be of node {} of {}", source,
                                              trace.node.value(), trace.node_count));
  }
  if (!nlohmann::json::accept(trace.info.metadata)) {
    throw Error(ErrorCode::usage, fmt::format("{}: its metadata is not JSON: '{}'", source,
                                              trace.info.metadata.substr(0, 60)));
  }
  for (const ThreadRecords& thread : trace.threads) {
    for (std::size_t i = 0; i < thread.records.size(); ++i) {
      const std::string wrong = problem(trace, thread.records, i);
      if (!wrong.empty()) {
        throw Error(ErrorCode::usage, fmt::format("{}: record {} of thread '{}' is corrupt: {}",
                                                  source, i, thread.name, wrong));
      }
    }
  }
}

}  // namespace heddle::trace
