#include "node-runtime/protocol/protocol.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"

namespace heddle::protocol {

const char* name(InstanceKind kind) {
  switch (kind) {
    case InstanceKind::owner:
      return "owner";
    case InstanceKind::native_input:
      return "native input";
    case InstanceKind::intranode_alien_input:
      return "intranode alien input";
    case InstanceKind::internode_alien_input:
      return "internode alien input";
    case InstanceKind::native_minor_output:
      return "native minor output";
    case InstanceKind::sink_minor_output:
      return "sink minor output";
    case InstanceKind::intranode_source_minor_output:
      return "intranode source minor output";
    case InstanceKind::internode_source_minor_output:
      return "internode source minor output";
  }
  return "unknown";
}

Protocol::Protocol(Options options) : options_(options), versions_(options.places) {
  HEDDLE_CHECK(options.places >= 1, "{} places", options.places);
}

Protocol::~Protocol() {
  for (const auto& job : jobs_) {
    HEDDLE_CHECK(job->drained, "job {} is destroyed with {} unfinished items", job->id.value(),
                 job->unfinished);
  }
  versions_.remove_all_matrices();
  HEDDLE_CHECK(remotes_.empty(), "{} arrival records are left", remotes_.size());
  grants_.check_all_posted();
}

Job& Protocol::begin_job(const JobOptions& options) {
  HEDDLE_CHECK(options.window >= 1, "window {}", options.window);
  HEDDLE_CHECK(std::cmp_equal(options.pools.size(), options_.places));
  Job& job = *jobs_.emplace_back(std::make_unique<Job>(next_job_));
  ++next_job_;
  job.window = options.window;
  HEDDLE_CHECK(!options.readers == !options.route);
  job.readers = options.readers;
  job.route = options.route;
  for (const PoolOptions& pool : options.pools) {
    job.pools.push_back(BlockPool(job.pools.end_index(), pool));
  }
  return job;
}

void Protocol::forget(Job& job) {
  HEDDLE_CHECK(job.drained, "job {} is not drained", job.id.value());
  std::erase_if(jobs_, [&](const auto& j) { return j.get() == &job; });
}

void Protocol::abandon() {
  for (const auto& job : jobs_) job->drained = true;
  grants_.clear();
  remotes_.clear();
  versions_.abandon();
  records_.abandon();
}

std::string Protocol::blockage() const {
  std::string text;
  for (const auto& job : jobs_) {
    if (job->drained) continue;
    text += job->blockage();
    if (job->items.linked()) break;
  }
  return text;
}

bool Protocol::is_valid() const {
  return std::ranges::all_of(jobs_, [](const auto& job) { return job->is_valid(); }) &&
         versions_.is_valid() && grants_.is_valid();
}

}  // namespace heddle::protocol
