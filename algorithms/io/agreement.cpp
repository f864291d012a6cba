#include "algorithms/io/agreement.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <fmt/core.h>
#include <limits>
#include <memory>
#include <mutex>

#include "base/require.hpp"

namespace heddle {

namespace {

constexpr double no_node = std::numeric_limits<double>::infinity();

}  // namespace

double reduce(Node& node, double value, Reduction reduction) {
  node.all_reduce({&value, 1}, reduction);
  return value;
}

std::vector<std::string> gather_texts(Node& node, const std::string& mine) {
  const auto length =
      static_cast<std::size_t>(reduce(node, static_cast<double>(mine.size()), Reduction::maximum));
  const auto nodes = static_cast<std::size_t>(node.size());
  // One number per character, 0 where another node's text stands: the sum is all texts in a row.
  std::vector<double> characters(length * nodes, 0.0);
  const std::size_t first = length * static_cast<std::size_t>(node.rank());
  for (std::size_t i = 0; i < mine.size(); ++i) {
    characters[first + i] = static_cast<unsigned char>(mine[i]);
  }
  node.all_reduce(characters, Reduction::sum);
  std::vector<std::string> texts(nodes);
  for (std::size_t r = 0; r < nodes; ++r) {
    for (std::size_t i = 0; i < length && characters[r * length + i] != 0; ++i) {
      texts[r].push_back(static_cast<char>(static_cast<unsigned char>(characters[r * length + i])));
    }
  }
  return texts;
}

/// What a node's visits have met. Shared with them: when the node fails, workers may go on while
/// the caller has left.
class FirstError {
 public:
  /// `visit` until one throws: after that visits do nothing.
  template <class Visit>
  [[nodiscard]] static auto guarded(std::shared_ptr<FirstError> first, Visit visit) {
    return [first = std::move(first), visit = std::move(visit)](auto... part) {
      if (first->is_there()) return;
      try {
        visit(part...);
      } catch (const std::exception& error) {
        first->keep(error);
      }
    };
  }
  /// With a text of its own: copies of an error share one, which the last visit may free while the
  /// caller reads it.
  void rethrow() {
    const std::lock_guard lock(mutex_);
    if (error_) throw Error(error_->code(), error_->what());
  }

 private:
  [[nodiscard]] bool is_there() {
    const std::lock_guard lock(mutex_);
    return error_.has_value();
  }
  void keep(const std::exception& other) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = as_error(other);
  }

  std::mutex mutex_;
  std::optional<Error> error_;  ///< guarded by the mutex
};

namespace {

/// `run(guarded visit)`, then `behind`.
template <class Visit, class Run>
void run_together(Node& node, const Visit& visit, const Run& run,
                  const std::function<void()>& behind) {
  together(node, [&] {
    const auto first = std::make_shared<FirstError>();
    run(FirstError::guarded(first, visit));
    first->rethrow();
    behind();
  });
}

}  // namespace

void read_together(const Matrix<double>& matrix, const Matrix<double>::ColumnsReader& visit,
                   const std::function<void()>& behind) {
  run_together(
      matrix.node(), visit, [&](const auto& guarded) { matrix.read_columns(guarded); }, behind);
}

void set_together(Node& node, const Matrix<double>::ColumnsVisitor& visit,
                  const std::function<void(const Matrix<double>::ColumnsVisitor& guarded)>& run,
                  const std::function<void()>& behind) {
  run_together(node, visit, run, behind);
}

SettingTogether::SettingTogether(const Matrix<double>& matrix,
                                 const Matrix<double>::ColumnsVisitor& visit)
    : node_(matrix.node()),
      first_(std::make_shared<FirstError>()),
      visits_(begin_set_columns(matrix, FirstError::guarded(first_, visit))) {}

SettingTogether::~SettingTogether() {
  if (is_finished_) return;
  try {
    visits_.wait();
  } catch (const std::exception&) {
    // Whoever leaves early knows why, or that the node has failed.
  }
}

void SettingTogether::finish(const std::function<void()>& behind) {
  is_finished_ = true;
  together(node_, [&] {
    visits_.wait();
    first_->rethrow();
    behind();
  });
}

void run_job(Node& node, JobSpec spec) {
  Job job = node.submit(std::move(spec));
  wait_for(job);
}

void wait_for(Job& job) {
  const JobResult result = job.wait();
  if (result.status == JobResult::Status::done) return;
  throw Error(ErrorCode::internal, fmt::format("a job ended without a result: {}", result.error));
}

void run_jobs(Node& node, std::vector<JobSpec> specs) {
  for (JobSpec& spec : specs) run_job(node, std::move(spec));
}

void agree(Node& node, const std::optional<Error>& mine, std::vector<double> order) {
  order.push_back(node.rank());
  bool leads = mine.has_value();
  double winner = no_node;
  for (const double key : order) {
    require(!std::isnan(key), "agree: a key of the order is not a number");
    winner = reduce(node, leads ? key : no_node, Reduction::minimum);
    if (winner == no_node) return;
    leads = leads && key == winner;
  }
  const double code = reduce(node, leads ? static_cast<double>(mine->code()) : 0, Reduction::sum);
  const std::vector<std::string> texts = gather_texts(node, leads ? mine->what() : "");
  const auto at = static_cast<std::size_t>(winner);
  const bool named = node.size() > 1 && order.size() == 1 && winner > 0;
  throw AgreedError(static_cast<ErrorCode>(static_cast<int>(code)),
                    named ? fmt::format("node {}: {}", at, texts[at]) : texts[at]);
}

}  // namespace heddle
