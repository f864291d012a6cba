#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "algorithms/io/trace_file.hpp"
#include "algorithms/matrix/npy_writer.hpp"
#include "apps/live_progress.hpp"
#include "apps/method.hpp"
#include "apps/plan.hpp"
#include "apps/problem.hpp"
#include "apps/report.hpp"
#include "apps/run.hpp"
#include "apps/solve.hpp"
#include "node-runtime/node.hpp"

namespace heddle {

/// The steps of `heddle solve` on each node, from the creation of the node. Collective.
///
/// Errors that all nodes know are thrown as AgreedError; any other exception means that this node,
/// or the run, cannot continue.
class Solver {
 public:
  Solver(Run& run, const SolveOptions& options, const Config& config, Problem& problem, Node& node,
         spdlog::logger& log, std::string device_note);
  Solver(const Solver&) = delete;
  Solver& operator=(const Solver&) = delete;
  ~Solver();

  /// Plans, reads, factorizes, solves, verifies and writes. The outputs are then staged in node 0's
  /// results (Run::results()) for the caller to commit. A matrix that is not positive definite or
  /// rank-deficient is reported in the status. With --dry-run only plans.
  void solve();

  /// State so far.
  [[nodiscard]] const Report& report() const { return report_; }

  /// Completes the trace after the results are committed. Collective.
  void save_trace();

  /// Closes the incomplete trace of a run that ends early. Not collective.
  void abandon_trace() noexcept { trace_.reset(); }

 private:
  using Clock = std::chrono::steady_clock;

  /// A file that all nodes write. Node 0's janitor has its temporary name.
  struct OutputFile {
    std::optional<std::string> path;
    std::unique_ptr<TemporaryName> name;
    std::optional<NpyWriter> writer;
  };

  void describe();
  void agree_on_tag();
  void open_output(OutputFile& output, const std::optional<std::string>& path, std::int64_t rows,
                   std::int64_t columns, NpyShape shape);
  void open_outputs();
  void write_output(OutputFile& output, Matrix<double> matrix);
  void read(std::uint64_t device_spare);
  [[nodiscard]] bool overlaps() const;
  void prepare_factorization();
  void start_factorization();
  void cancel_factorization() noexcept;
  [[nodiscard]] Method::Prospect factorize();
  [[nodiscard]] std::optional<double> stolen_since(std::optional<double> before);
  void solve_sides();
  void agree_on_residuals();
  void verify(Method::Prospect prospect);
  void write(Method::Prospect prospect);
  void warn_quiet(const std::string& what);
  /// Writes to the terminal, where a progress line may be.
  void between_progress(const std::function<void()>& write);
  void begin_trace();
  [[nodiscard]] std::string about() const;
  void collect_figures();
  void tell_of_logs();
  /// Runs `work`, and shows its progress by the tasks of this node, of which there are about
  /// `tasks`.
  template <class Work>
  void with_progress(const char* name, double tasks, const Work& work);
  [[nodiscard]] bool is_watched() const;
  [[nodiscard]] double tasks_so_far() const;
  [[nodiscard]] static double seconds_since(Clock::time_point begin);
  [[nodiscard]] bool is_first() const { return node_.rank() == 0; }
  void phase_done(const char* name, std::optional<double>& seconds, Clock::time_point begin);

  Run& run_;
  const SolveOptions& options_;
  const Config& config_;
  Problem& problem_;
  Node& node_;
  spdlog::logger& log_;
  std::string device_note_;  ///< of the plan
  Clock::time_point begin_ = Clock::now();
  Report report_;
  std::int32_t factor_job_ = -1;  ///< number in the trace
  std::string tag_;               ///< of temporary files
  OutputFile solution_;
  OutputFile factor_;
  OutputFile q_;
  std::unique_ptr<Method> method_;
  Plan::Tasks tasks_;
  std::optional<LiveProgress> progress_;  ///< of the current phase
  std::optional<Job> factorization_;
  Clock::time_point factor_begin_;
  std::optional<double> stolen_before_;
  std::unique_ptr<TraceFile> trace_;
};

}  // namespace heddle
