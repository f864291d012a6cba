#pragma once

#include <chrono>
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

/// The steps of `heddle solve` from the moment that a node exists, on each node. Collective.
///
/// Errors that all nodes know are thrown as AgreedError; anything else that is thrown means that
/// this node, or the run, cannot go on.
class Solver {
 public:
  Solver(Run& run, const SolveOptions& options, const Config& config, Problem& problem, Node& node,
         spdlog::logger& log);
  Solver(const Solver&) = delete;
  Solver& operator=(const Solver&) = delete;
  ~Solver();

  /// Plans, reads, factorizes, solves, verifies, writes: what is to be written is then complete
  /// among node 0's results (Run::results()), for whoever commits them. A matrix that is not
  /// positive definite or not of full rank is in the report's status. With --dry-run only plans.
  void solve();

  /// What is known so far.
  [[nodiscard]] const Report& report() const { return report_; }

  /// Completes the trace of a run whose results have their names. Collective.
  void save_trace();

  /// The run does not come to its end: its trace keeps what there is. Not collective.
  void abandon_trace() noexcept { trace_.reset(); }

 private:
  using Clock = std::chrono::steady_clock;

  /// A file to be written by all nodes. On node 0 the name is on the janitor's list.
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
  void read();
  [[nodiscard]] Method::Prospect factorize();
  [[nodiscard]] std::optional<double> stolen_since(std::optional<double> before);
  void solve_sides();
  void agree_on_residuals();
  void verify(Method::Prospect prospect);
  void write(Method::Prospect prospect);
  void warn_quiet(const std::string& what);
  void begin_trace();
  [[nodiscard]] std::string about() const;
  void collect_figures();
  void tell_of_logs();
  [[nodiscard]] double seconds_since(Clock::time_point begin) const;
  [[nodiscard]] bool is_first() const { return node_.rank() == 0; }
  void phase_done(const char* name, std::optional<double>& seconds, Clock::time_point begin);

  Run& run_;
  const SolveOptions& options_;
  const Config& config_;
  Problem& problem_;
  Node& node_;
  spdlog::logger& log_;
  Clock::time_point begin_ = Clock::now();
  Report report_;
  std::int32_t factor_job_ = -1;  ///< as the trace numbers it
  std::string tag_;               ///< of temporary files
  OutputFile solution_;
  OutputFile factor_;
  OutputFile q_;
  std::unique_ptr<Method> method_;
  std::optional<LiveProgress> progress_;  ///< of the factorization
  std::unique_ptr<TraceFile> trace_;
};

}  // namespace heddle
