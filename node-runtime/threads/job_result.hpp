#pragma once

#include <cstdint>
#include <string>

#include "base/error.hpp"
#include "base/index.hpp"
#include "node-runtime/threads/messenger.hpp"

namespace heddle {

/// How a job ended, the same on all nodes.
struct JobResult {
  enum class Status : std::uint8_t { done, cancelled, numerical_failure, failed };  ///< by weight
  Status status = Status::done;
  /// LAPACK's info of a numerical failure: the global index, from 1.
  std::int64_t info = 0;
  /// What the kernel left at its Kernel::failing_element; 0 where it has none.
  double pivot = 0;
  /// The text of the exception that failed the job, and the node that threw it.
  std::string error;
  ErrorCode code = ErrorCode::internal;  ///< of that exception
};

/// Whether `a` is what a job ends with, of two things that happened to it: a failure before a
/// numerical failure, of these the smallest index first, before a cancellation.
[[nodiscard]] bool is_worse(const JobResult& a, const JobResult& b);

/// Of a job that an exception on `node` of `nodes` nodes fails.
[[nodiscard]] JobResult failed_result(const Error& error, NodeId node, std::int32_t nodes);

/// What the nodes tell each other of a result; result_of checks what came from another node.
[[nodiscard]] JobVerdict verdict_of(protocol::JobId job, const JobResult& result);
[[nodiscard]] JobResult result_of(const JobVerdict& verdict);

}  // namespace heddle
