#include "node-runtime/threads/job_table.hpp"

#include <algorithm>
#include <fmt/core.h>
#include <utility>

#include "base/assert.hpp"

namespace heddle {

void JobTable::add(std::shared_ptr<JobRecord> job) {
  HEDDLE_CHECK(job->handle != nullptr && (jobs_.empty() || jobs_.back()->id < job->id),
               "job {} comes after job {}", job->id.value(),
               jobs_.empty() ? -1 : jobs_.back()->id.value());
  jobs_.push_back(std::move(job));
}

std::shared_ptr<JobRecord> JobTable::take(const JobRecord& job) {
  const auto found = std::ranges::find(jobs_, &job, &std::shared_ptr<JobRecord>::get);
  HEDDLE_CHECK(found != jobs_.end(), "job {} is not in the table", job.id.value());
  std::shared_ptr<JobRecord> taken = std::move(*found);
  jobs_.erase(found);
  if (std::exchange(taken->waits_for_window, false)) --window_waiters_;
  return taken;
}

JobRecord* JobTable::find(protocol::JobId id) const {
  const auto found = std::ranges::find_if(jobs_, [&](const auto& job) { return job->id == id; });
  return found == jobs_.end() ? nullptr : found->get();
}

bool JobTable::is_behind(const JobRecord& job) const {
  for (const auto& before : jobs_) {
    if (before.get() == &job) return false;
    if (before->handle->generation_ended) continue;
    if (std::ranges::find_first_of(before->spec.matrices, job.spec.matrices) !=
        before->spec.matrices.end()) {
      return true;
    }
  }
  return false;
}

JobTable::Turn JobTable::next_turn() {
  for (std::size_t turn = 0; turn < jobs_.size(); ++turn) {
    const std::size_t index = (next_ + turn) % jobs_.size();
    JobRecord& job = *jobs_[index];
    if (job.handle->generation_ended || job.waits_for_window) continue;
    if (job.external && !job.stream_ended) continue;
    if (is_behind(job)) continue;
    next_ = index + 1;
    return {&job, job.handle->window - job.handle->unfinished, false};
  }
  return {nullptr, 0, window_waiters_ > 0};
}

void JobTable::wait_for_window(JobRecord& job) {
  if (job.waits_for_window || !job.handle->window_is_full()) return;
  job.waits_for_window = true;
  ++window_waiters_;
}

bool JobTable::reopen_windows() {
  if (window_waiters_ == 0) return false;
  bool reopened = false;
  for (const auto& job : jobs_) {
    if (!job->waits_for_window || !job->handle->window_reopens()) continue;
    job->waits_for_window = false;
    --window_waiters_;
    reopened = true;
  }
  return reopened;
}

std::string JobTable::failures() const {
  std::string text;
  for (const auto& job : jobs_) {
    if (job->result.status != JobResult::Status::failed) continue;
    text += fmt::format("; job '{}' has failed: {}", job->name, job->result.error);
  }
  return text;
}

bool JobTable::is_valid() const {
  std::int32_t waiters = 0;
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    const JobRecord& job = *jobs_[i];
    if (job.handle == nullptr || job.handle->id != job.id) return false;
    if (i > 0 && !(jobs_[i - 1]->id < job.id)) return false;
    waiters += job.waits_for_window ? 1 : 0;
  }
  return waiters == window_waiters_;
}

}  // namespace heddle
