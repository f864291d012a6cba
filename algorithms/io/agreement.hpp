#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/process_limits.hpp"
#include "node-runtime/node.hpp"
#include "node-runtime/visits.hpp"

namespace heddle {

/// An error that all nodes know and throw: they can stop in good order, and one of them tells it.
class AgreedError : public Error {
 public:
  using Error::Error;
};

/// Throws AgreedError on all nodes when any of them has an error: that with the smallest `order`
/// (compared element by element, as many on every node), of equals that of the lowest node. The
/// message names the node where it is not in `order`, unless there is only one node. Collective.
void agree(Node& node, const std::optional<Error>& mine, std::vector<double> order = {});

/// Runs what only this node does, or each for itself, and agrees on what went wrong. Collective.
template <class Work>
void together(Node& node, const Work& work) {
  std::optional<Error> trouble;
  try {
    work();
  } catch (const std::exception& error) {
    if (node.failed()) throw;  // the other nodes know, and agree on nothing any more
    trouble = as_error(error);
  }
  agree(node, trouble);
}

/// Matrix::read_columns, then `behind` on each node, and agrees on what went wrong. Unlike with
/// read_columns, the visits of a node where none throws go on. Collective.
void read_together(
    const Matrix<double>& matrix, const Matrix<double>::ColumnsReader& visit,
    const std::function<void()>& behind = [] {});

/// The same for parts of matrices that `run` lets the nodes set by the visitor that it is given.
void set_together(Node& node, const Matrix<double>::ColumnsVisitor& visit,
                  const std::function<void(const Matrix<double>::ColumnsVisitor& guarded)>& run,
                  const std::function<void()>& behind);

class FirstError;

/// The same with begin_set_columns(): the visits have begun, and later jobs on the matrix may be
/// submitted before they are waited for. Collective.
class SettingTogether {
 public:
  SettingTogether(const Matrix<double>& matrix, const Matrix<double>::ColumnsVisitor& visit);
  SettingTogether(const SettingTogether&) = delete;
  SettingTogether& operator=(const SettingTogether&) = delete;
  /// Waits for visits that nobody has waited for: what they refer to may go then.
  ~SettingTogether();

  /// Waits, then `behind` on each node, and agrees on what went wrong. Once.
  void finish(const std::function<void()>& behind);

 private:
  Node& node_;
  std::shared_ptr<FirstError> first_;
  Visits visits_;
  bool is_finished_ = false;
};

/// Runs jobs that cannot fail numerically, one after the other; throws Error for one that ends
/// without a result. Collective.
void run_job(Node& node, JobSpec spec);
void run_jobs(Node& node, std::vector<JobSpec> specs);
/// The same for a job that was submitted.
void wait_for(Job& job);

/// The text of every node, by rank. Collective; for short texts.
[[nodiscard]] std::vector<std::string> gather_texts(Node& node, const std::string& mine);

/// Sums or maxima of a few values over all nodes. Collective.
[[nodiscard]] double reduce(Node& node, double value, Reduction reduction);

}  // namespace heddle
