#include "node-runtime/progress/job_agreement.hpp"

#include <algorithm>
#include <set>

#include "base/assert.hpp"
#include "base/require.hpp"
#include "node-runtime/threads/job_record.hpp"

namespace heddle {

JobAgreement::JobAgreement(int nodes) : nodes_(nodes) {
  HEDDLE_CHECK(nodes >= 1, "{} nodes", nodes);
}

void JobAgreement::begun(const JobBegin& begin, int from) {
  HEDDLE_CHECK(from >= 0 && from < nodes_, "node {} of {}", from, nodes_);
  auto found =
      std::ranges::find(beginnings_, begin.job, [](const Beginning& b) { return b.job.job; });
  if (found == beginnings_.end()) {
    beginnings_.push_back({begin, from, 0});
    found = beginnings_.end() - 1;
  }
  require(found->job.fingerprint == begin.fingerprint,
          "nodes {} and {} have started different jobs as their job {}; all nodes must start the "
          "same jobs, on the same matrices, in the same order",
          std::min(from, found->from), std::max(from, found->from), begin.job.value() + 1);
  if (++found->nodes == nodes_) beginnings_.erase(found);
}

std::optional<JobVerdict> JobAgreement::drained(const JobVerdict& verdict, int from) {
  HEDDLE_CHECK(from >= 0 && from < nodes_, "node {} of {}", from, nodes_);
  auto found =
      std::ranges::find(endings_, verdict.job, [](const Ending& e) { return e.verdict.job; });
  if (found == endings_.end()) {
    endings_.push_back({verdict, from, 0});
    found = endings_.end() - 1;
  }
  const JobResult theirs = result_of(verdict);
  const JobResult merged = result_of(found->verdict);
  if (is_worse(theirs, merged) || (!is_worse(merged, theirs) && from < found->from)) {
    found->verdict = verdict;
    found->from = from;
  }
  if (++found->nodes < nodes_) return std::nullopt;
  JobVerdict agreed = std::move(found->verdict);
  endings_.erase(found);
  return agreed;
}

bool JobAgreement::is_valid() const {
  const auto are_valid = [this](const auto& entries, const auto& job_of_entry) {
    std::set<protocol::JobId> jobs;
    return std::ranges::all_of(entries, [&](const auto& e) {
      return jobs.insert(job_of_entry(e)).second && e.nodes > 0 && e.nodes < nodes_ &&
             e.from >= 0 && e.from < nodes_;
    });
  };
  return are_valid(beginnings_, [](const Beginning& b) { return b.job.job; }) &&
         are_valid(endings_, [](const Ending& e) { return e.verdict.job; });
}

}  // namespace heddle
