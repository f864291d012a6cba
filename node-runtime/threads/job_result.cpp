#include "node-runtime/threads/job_result.hpp"

#include <fmt/core.h>

#include "base/assert.hpp"

namespace heddle {

bool is_worse(const JobResult& a, const JobResult& b) {
  if (a.status != b.status) return a.status > b.status;
  return a.status == JobResult::Status::numerical_failure && a.info < b.info;
}

JobResult failed_result(const Error& error, NodeId node, std::int32_t nodes) {
  JobResult failed;
  failed.status = JobResult::Status::failed;
  failed.code = error.code();
  failed.error = nodes > 1 ? fmt::format("node {}: {}", node.value(), error.what()) : error.what();
  return failed;
}

JobVerdict verdict_of(protocol::JobId job, const JobResult& result) {
  return {job,         static_cast<std::int32_t>(result.status),
          result.info, result.pivot,
          result.code, result.error};
}

JobResult result_of(const JobVerdict& verdict) {
  HEDDLE_CHECK(
      verdict.status >= 0 && verdict.status <= static_cast<std::int32_t>(JobResult::Status::failed),
      "job {} ended with status {}", verdict.job.value(), verdict.status);
  return {static_cast<JobResult::Status>(verdict.status), verdict.info, verdict.pivot,
          verdict.error, verdict.code};
}

}  // namespace heddle
