#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "node-runtime/threads/job_record.hpp"

namespace heddle {

/// The jobs of a node that have begun and not ended on all nodes, in the order of submission, and
/// whose turn it is to insert tasks.
///
/// Invariant: ids ascend; each job has a handle; window_waiters = jobs that wait for their windows.
///
/// Not thread-safe: the engine's lock serialises.
class JobTable {
 public:
  /// A job that has begun, after all others.
  void add(std::shared_ptr<JobRecord> job);
  /// Takes a job out that is in it.
  std::shared_ptr<JobRecord> take(const JobRecord& job);
  /// Null: it has ended, or there was none.
  [[nodiscard]] JobRecord* find(protocol::JobId id) const;
  [[nodiscard]] const std::vector<std::shared_ptr<JobRecord>>& all() const { return jobs_; }

  /// A program that may walk on, and the items that its window has room for. The job stays until it
  /// is told that its program has ended; its room only grows until then.
  struct Turn {
    JobRecord* job = nullptr;
    std::int32_t room = 0;
    bool waits_for_window = false;  ///< without a job: some program does
  };
  /// In turn, of the programs that have not ended, whose windows have room, and that are behind no
  /// other; without a job if there is none.
  [[nodiscard]] Turn next_turn();
  /// Whether a job submitted before that uses one of its matrices is still being walked: each
  /// tile's list has the order of submission on every node.
  [[nodiscard]] bool is_behind(const JobRecord& job) const;

  /// Its program stands still if its window is full, until reopen_windows() finds it open.
  void wait_for_window(JobRecord& job);
  /// Whether a window has reopened. Little work where nobody waits.
  [[nodiscard]] bool reopen_windows();

  /// What made jobs fail that have not ended: a program that threw on some nodes and not on others
  /// leaves these waiting for its tasks. "; job 'a' has failed: ..."
  [[nodiscard]] std::string failures() const;

  [[nodiscard]] bool is_valid() const;

 private:
  std::vector<std::shared_ptr<JobRecord>> jobs_;  ///< a handful
  std::size_t next_ = 0;                          ///< whose turn it is
  std::int32_t window_waiters_ = 0;
};

}  // namespace heddle
