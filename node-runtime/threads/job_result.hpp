#pragma once

#include <cstdint>

#include "base/error.hpp"
#include "base/index.hpp"
#include "node-runtime/tasks.hpp"
#include "node-runtime/threads/messenger.hpp"

namespace heddle {

/// Whether `a` is what a job ends with, of two things that happened to it: a failure before a
/// numerical failure, of these the smallest index first, before a cancellation.
[[nodiscard]] bool is_worse(const JobResult& a, const JobResult& b);

/// The result of a job that failed by an exception on `node`, one of `nodes` nodes.
[[nodiscard]] JobResult failed_result(const Error& error, NodeId node, std::int32_t nodes);

/// What the nodes tell each other of a result; result_of checks what came from another node.
[[nodiscard]] JobVerdict verdict_of(protocol::JobId job, const JobResult& result);
[[nodiscard]] JobResult result_of(const JobVerdict& verdict);

}  // namespace heddle
