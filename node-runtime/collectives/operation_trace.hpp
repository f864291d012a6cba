#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "node-runtime/collectives/call/call.hpp"

namespace heddle {

namespace trace {
class Recorder;
class ThreadTrace;
}  // namespace trace

namespace collectives {

/// An operation of a group as a trace has it.
struct TracedOperation {
  std::string_view operation;  ///< "all_reduce", "exchange"; of static storage
  std::string algorithm;
  std::int32_t group = 0;   ///< channel of the group, or of the exchange
  std::int64_t number = 0;  ///< of the group's operation, or of the exchange's round
  std::int64_t bytes = 0;   ///< bytes_of()
  std::int32_t ranks = 0;
  bool is_on_stream = false;
  std::int64_t start_ns = 0;
};

/// Bytes of this rank's own elements: of its input where it has one and the operation does not
/// scatter, otherwise of its output.
[[nodiscard]] std::int64_t bytes_of(const Call& call);

/// Row of a node's trace with the operations of its groups. Groups have none (a null pointer) where
/// no trace is written, and operations that fail are not in it.
///
/// Thread: any; one records at a time. Lock: mutex_ guards the row; the recorder's own lock is
/// taken with it.
class OperationTrace {
 public:
  /// Adds the row. `recorder` outlives this object, or close() is called before it ends.
  explicit OperationTrace(trace::Recorder& recorder);

  /// Records an operation that ends now.
  void add(const TracedOperation& operation);
  /// The node ends: handles of its groups may live on.
  void close();

 private:
  std::mutex mutex_;
  trace::Recorder* recorder_;  ///< null: closed
  trace::ThreadTrace& row_;
};

}  // namespace collectives
}  // namespace heddle
