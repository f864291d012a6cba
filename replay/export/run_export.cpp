#include "replay/export/run_export.hpp"

#include <fmt/core.h>

namespace heddle::replay {
namespace {

const std::vector<trace::NodeTrace>& checked(const std::vector<trace::NodeTrace>& traces) {
  for (const trace::NodeTrace& trace : traces) {
    trace::check(trace, fmt::format("the trace of node {}", trace.node.value()));
  }
  return traces;
}

}  // namespace

RunFlows::RunFlows(const std::vector<trace::NodeTrace>& traces, const DependencyFlows::Keep& keep)
    : RunFlows(traces, make_run("the run to export", checked(traces)), keep) {}

RunFlows::RunFlows(const std::vector<trace::NodeTrace>& traces, const RunTrace& run,
                   const DependencyFlows::Keep& keep)
    : dependencies_(run, keep) {
  std::size_t threads = 0;
  for (const trace::NodeTrace& trace : traces) {
    survey_.add(trace);
    first_threads_.push_back(threads);
    threads += trace.threads.size();
  }
  survey_.finish();
  for (const Thread& thread : run.threads) first_tasks_.push_back(thread.first_task);
}

RunExport RunFlows::counts() const {
  const trace::MessageFlows::Counts& messages = survey_.messages().counts();
  return {.dependencies = dependencies_.count(), .messages = messages.matched - messages.backwards};
}

}  // namespace heddle::replay
