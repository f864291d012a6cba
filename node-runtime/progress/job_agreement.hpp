#pragma once

#include <optional>
#include <vector>

#include "node-runtime/threads/messenger.hpp"

namespace heddle {

/// What node 0 knows of jobs that some nodes have begun or drained, until all have.
///
/// Invariant (`is_valid()`), over beginnings and endings: one entry per job;  0 < nodes that have
/// reported < nodes of the cluster;  0 <= from < nodes of the cluster.
///
/// Pure. Not thread-safe: the progress thread's.
class JobAgreement {
 public:
  explicit JobAgreement(int nodes);

  /// Node `from` has begun a job. Throws Error(usage) that names both nodes when another one has
  /// begun a different job in its place: the result of neither would be right.
  void begun(const JobBegin& begin, int from);
  /// Node `from` has drained a job. Once all have, how it ended: the worst verdict (is_worse), of
  /// equal ones the lowest node's; the same in whatever order the nodes report.
  [[nodiscard]] std::optional<JobVerdict> drained(const JobVerdict& verdict, int from);

  /// Jobs that some nodes have reported and others have not.
  [[nodiscard]] std::size_t open() const { return beginnings_.size() + endings_.size(); }
  [[nodiscard]] bool is_valid() const;

 private:
  struct Beginning {
    JobBegin job;
    int from = 0;   ///< the first node that reported it
    int nodes = 0;  ///< that have begun it
  };
  struct Ending {
    JobVerdict verdict;
    int from = 0;   ///< the node that the verdict is of
    int nodes = 0;  ///< that have drained it
  };

  int nodes_;
  std::vector<Beginning> beginnings_;
  std::vector<Ending> endings_;
};

}  // namespace heddle
