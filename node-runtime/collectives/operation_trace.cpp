#include "node-runtime/collectives/operation_trace.hpp"

#include "node-runtime/trace/recorder.hpp"

namespace heddle::collectives {
namespace {

/// Behind all threads.
constexpr int row_order = 3100;

}  // namespace

std::int64_t bytes_of(const Call& call) {
  const bool is_output = call.inputs.empty() || call.kind == CollectiveKind::scatter;
  std::int64_t bytes = 0;
  for (const Elements& one : is_output ? call.outputs : call.inputs) {
    bytes += one.count * one.type.size();
  }
  return bytes;
}

OperationTrace::OperationTrace(trace::Recorder& recorder)
    : recorder_(&recorder), row_(recorder.thread(std::string(trace::collectives_row), row_order)) {}

void OperationTrace::add(const TracedOperation& operation) {
  const std::scoped_lock lock(mutex_);
  if (recorder_ == nullptr) return;
  row_.collective({.is_on_stream = static_cast<std::uint8_t>(operation.is_on_stream ? 1 : 0),
                   .operation = recorder_->intern(operation.operation),
                   .algorithm = recorder_->intern(operation.algorithm),
                   .group = operation.group,
                   .number = operation.number,
                   .bytes = static_cast<std::uint64_t>(operation.bytes),
                   .ranks = operation.ranks,
                   .start_ns = operation.start_ns,
                   .end_ns = trace::now_ns()});
}

void OperationTrace::close() {
  const std::scoped_lock lock(mutex_);
  recorder_ = nullptr;
}

}  // namespace heddle::collectives
