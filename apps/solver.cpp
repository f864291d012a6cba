#include "apps/solver.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fmt/core.h>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <unistd.h>
#include <utility>

#include "algorithms/io/agreement.hpp"
#include "algorithms/io/distributed_write.hpp"
#include "algorithms/reductions/measures.hpp"
#include "algorithms/reductions/verification.hpp"
#include "apps/command.hpp"
#include "apps/gemm_rate.hpp"
#include "base/printable.hpp"
#include "base/units.hpp"
#include "config/effective.hpp"
#include "config/problem.hpp"
#include "config/words.hpp"
#include "node-runtime/machine/host.hpp"
#include "node-runtime/memory/tile_store.hpp"
#include "node-runtime/node_facts.hpp"
#include "node-runtime/node_internals.hpp"
#include "node-runtime/threads/engine.hpp"
#include "node-runtime/tuning.hpp"

namespace heddle {
Solver::Solver(Run& run, const SolveOptions& options, const Config& config, Problem& problem,
               Node& node, spdlog::logger& log, std::string device_note)
    : run_(run),
      options_(options),
      config_(config),
      problem_(problem),
      node_(node),
      log_(log),
      device_note_(std::move(device_note)) {
  node_.on_quiet([this](const std::string& what) { warn_quiet(what); });
}

Solver::~Solver() {
  node_.on_quiet({});
}

void Solver::warn_quiet(const std::string& what) {
  between_progress([&] { log_.warn("{}", what); });
}

void Solver::between_progress(const std::function<void()>& write) {
  if (progress_) return progress_->between(write);
  write();
}

double Solver::seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

bool Solver::is_watched() const {
  return is_first() && options_.verbosity != Verbosity::quiet && stderr_is_watched(run_.launcher());
}

double Solver::tasks_so_far() const {
  double tasks = 0;
  for (const ThreadReport& thread : NodeInternals(node_).threads()) {
    tasks += static_cast<double>(thread.tasks);
  }
  return tasks;
}

template <class Work>
void Solver::with_progress(const char* name, double tasks, const Work& work) {
  const auto fraction = [this, tasks, before = tasks_so_far()] {
    return (tasks_so_far() - before) / tasks;
  };
  // Without tasks of its own the node has nothing to tell.
  progress_.emplace(node_, LivePhase{name, tasks, "", fraction}, tasks > 0 && is_watched());
  try {
    work();
  } catch (...) {
    progress_.reset();
    throw;
  }
  progress_.reset();
}

void Solver::phase_done(const char* name, std::optional<double>& seconds, Clock::time_point begin) {
  // The slowest node's time, without the reduction.
  seconds = reduce(node_, seconds_since(begin), Reduction::maximum);
  between_progress([&] {
    if (is_first()) log_.info("{}: {}", name, format_seconds(*seconds));
  });
}

void Solver::solve() {
  together(node_, [&] { method_ = make_method(node_, problem_); });
  const Plan plan(node_, problem_, *method_, config_, device_note_);
  tasks_ = plan.tasks();
  describe();
  report_.seconds.start = seconds_of_process().value_or(seconds_since(begin_));
  if (is_first() && options_.verbosity != Verbosity::quiet) print(plan.text());
  if (options_.dry_run) {
    report_.status = RunStatus::ok;
    return;
  }
  for (std::int32_t p = 1; p <= node_.facts().devices; ++p) {
    const PlaceId place{p};
    NodeInternals(node_).store().cache(place).set_budget(plan.device_budget(place));
  }
  agree_on_tag();
  open_outputs();
  begin_trace();

  read(plan.device_spare());
  const Method::Prospect prospect = factorize();
  if (prospect != Method::Prospect::nothing) {
    if (prospect == Method::Prospect::solution) solve_sides();
    if (report_.status != RunStatus::failed) verify(prospect);
    if (report_.status != RunStatus::failed) write(prospect);
  }
  report_.seconds.total = seconds_of_process().value_or(seconds_since(begin_));
  collect_figures();
  tell_of_logs();
}

void Solver::describe() {
  const NodeFacts& facts = node_.facts();
  const Distribution& distribution = method_->distribution();
  report_.m = problem_.m();
  report_.n = problem_.n();
  report_.nrhs = problem_.sides();
  report_.factorization = config::name_of(problem_.wanted().factorization);
  report_.nodes = facts.nodes;
  report_.nodes_per_host = facts.nodes_on_host;
  report_.grid = {distribution.grid_rows, distribution.grid_columns};
  const config::Layout layout = method_->layout();
  report_.tile = layout.tile;
  report_.strip = layout.strip;
  report_.small = layout.small;
  report_.hierarchy = name_of(layout.hierarchy.value_or(config::Hierarchy::off));
  report_.inner = layout.inner;
  report_.virtual_tiles = layout.virtual_tiles;
  if (layout.tree) report_.tree = name_of(*layout.tree);
  report_.chosen = config::keys_left_open(node_.config().layout);
  report_.cpu_workers = facts.cpu_workers;
  report_.window = facts.window;
  report_.priorities = name_of(config_.runtime.priorities);
  report_.devices = facts.devices;
  report_.device_backend = facts.device_backend;
  report_.verification = config::name_of(problem_.wanted().verify);
  report_.placement = facts.moves_tasks ? "dynamic" : "static";
  report_.reproducible = !facts.moves_tasks;
  report_.blas_kernels = facts.blas_kernels;
  if (!facts.machine_file.empty()) report_.machine_file = facts.machine_file;
  for (const std::string& warning : facts.warnings) {
    if (is_first()) log_.warn("{}", printable(warning, LineBreaks::kept));
  }
  log_.debug("node {} of {}: {}, {} workers, {} devices", facts.rank, facts.nodes, facts.cpu_model,
             facts.cpu_workers, facts.devices);
}

/// Makes temporary names unique to the run and known to all nodes.
void Solver::agree_on_tag() {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(
                           std::chrono::system_clock::now().time_since_epoch())
                           .count();
  const std::string mine = is_first() ? fmt::format("{}-{:x}", ::getpid(), seconds) : "";
  tag_ = gather_texts(node_, mine).front();
}

/// Node 0 allocates the whole file before the work: a full disk is detected now.
void Solver::open_output(OutputFile& output, const std::optional<std::string>& path,
                         std::int64_t rows, std::int64_t columns, NpyShape shape) {
  if (!path) return;
  output.path = path;
  const std::string temporary = NpyWriter::temporary_path_of(*path, tag_);
  together(node_, [&] {
    if (!is_first()) return;
    output.name = std::make_unique<TemporaryName>(run_.janitor(), temporary);
    output.writer.emplace(NpyWriter::create(*path, rows, columns, tag_, shape));
  });
  together(node_, [&] {
    if (is_first()) return;
    output.writer.emplace(NpyWriter::open(temporary, rows, columns));
  });
}

void Solver::open_outputs() {
  const config::Output& output = problem_.wanted().output;
  open_output(solution_, output.solution, problem_.n(), problem_.sides(),
              problem_.side_is_vector() ? NpyShape::vector : NpyShape::matrix);
  open_output(factor_, output.factor, problem_.n(), problem_.n(), NpyShape::matrix);
  open_output(q_, output.q, problem_.m(), problem_.n(), NpyShape::matrix);
}

/// The file is complete and synced on return, under its temporary name.
void Solver::write_output(OutputFile& output, Matrix<double> matrix) {
  write_tiles(std::move(matrix), *output.writer);
  if (is_first()) {
    output.writer->keep();
    run_.results().add(std::move(output.name), *output.path);
  }
  output.writer.reset();
}

/// Whether the factorization begins while its matrix is still read. CPU workers that read are those
/// that would factorize, a generated matrix is there at once, and a trace is to show what the
/// factorization needs.
bool Solver::overlaps() const {
  return problem_.wanted().overlap && method_->distribution().devices > 0 &&
         !problem_.generated() && !trace_;
}

void Solver::read(std::uint64_t device_spare) {
  const Clock::time_point begin = Clock::now();
  with_progress("reading", tasks_.reading, [&] {
    method_->begin_reading(device_spare);
    if (overlaps()) return prepare_factorization();
    method_->finish_reading();
  });
  if (factorization_) {
    start_factorization();
    try {
      method_->finish_reading();
      report_.seconds.overlap = reduce(node_, seconds_since(factor_begin_), Reduction::maximum);
    } catch (...) {
      cancel_factorization();
      throw;
    }
  }
  phase_done("read", report_.seconds.read, begin);
}

void Solver::prepare_factorization() {
  factorization_ = node_.prepare(method_->factorization());
  together(node_, [&] { factorization_->reserve(); });
}

void Solver::start_factorization() {
  stolen_before_ = stolen_seconds();
  factor_begin_ = Clock::now();
  progress_.emplace(node_,
                    LivePhase{"factorizing", method_->flops(), "GFLOP/s",
                              [job = *factorization_] { return job.progress(); }},
                    is_watched());
  try {
    factorization_->start();
  } catch (...) {
    progress_.reset();
    throw;
  }
}

/// Its matrix is not what it should be, as all nodes know, or this node has failed.
void Solver::cancel_factorization() noexcept {
  progress_.reset();
  try {
    factorization_->cancel();
    static_cast<void>(factorization_->wait());
  } catch (const std::exception&) {
    // The node has failed; the reading tells how.
  }
}

/// Total of all hosts; nothing if one is unknown.
std::optional<double> Solver::stolen_since(std::optional<double> before) {
  const std::optional<double> now = stolen_seconds();
  // Each node of a host reads the host's total.
  const double mine = before && now ? (*now - *before) / node_.facts().nodes_on_host
                                    : std::numeric_limits<double>::quiet_NaN();
  const double all = reduce(node_, mine, Reduction::sum);
  return std::isnan(all) ? std::nullopt : std::optional(all);
}

Method::Prospect Solver::factorize() {
  const double flops = method_->flops();
  if (!factorization_) {
    const Clock::time_point preparation = Clock::now();
    prepare_factorization();
    // Immediately before: same clock frequency and temperature of the cores.
    report_.gemm_gflops = measure_gemm_rate(node_, method_->product_layout(), flops);
    phase_done("prepare", report_.seconds.prepare, preparation);
    start_factorization();
  }
  Job job = *std::exchange(factorization_, std::nullopt);
  JobResult result;
  try {
    result = job.wait();
  } catch (...) {
    progress_.reset();
    throw;
  }
  progress_.reset();
  factor_job_ = JobInternals(job).number();
  phase_done("factor", report_.seconds.factor, factor_begin_);
  report_.stolen = stolen_since(stolen_before_);
  if (result.status == JobResult::Status::cancelled || result.status == JobResult::Status::failed) {
    throw Error(ErrorCode::internal, "the factorization ended without a result");
  }
  const Method::Prospect prospect = method_->judge(result, report_);
  if (prospect == Method::Prospect::nothing) return prospect;
  // Beside the reading it is no rate of the factorization.
  if (report_.seconds.overlap) return prospect;
  report_.gflops = flops / std::max(*report_.seconds.factor, 1e-9) / 1e9;
  if (report_.gemm_gflops) report_.efficiency = *report_.gflops / *report_.gemm_gflops;
  return prospect;
}

void Solver::solve_sides() {
  if (!problem_.has_sides()) return;
  const Clock::time_point begin = Clock::now();
  with_progress("solving", tasks_.solution, [&] { method_->solve(report_); });
  phase_done("solve", report_.seconds.solve, begin);
  // Even without verification: infinity is not a solution.
  const auto element = first_non_finite(method_->solution());
  if (!element) return;
  report_.status = RunStatus::failed;
  report_.hint =
      fmt::format("the solution has elements that are not finite, first {}. {}",
                  heddle::describe(*element), beyond_doubles("the right-hand sides or the matrix"));
}

/// All nodes use the maximum; NaN if any node found NaN.
void Solver::agree_on_residuals() {
  for (std::optional<double>* residual :
       {&report_.factorization_residual, &report_.solution_residual, &report_.orthogonality}) {
    if (*residual) *residual = reduce(node_, **residual, Reduction::maximum);
  }
}

void Solver::verify(Method::Prospect prospect) {
  if (problem_.wanted().verify == config::Verify::none) return;
  const Clock::time_point begin = Clock::now();
  with_progress("verifying", tasks_.verification, [&] { method_->verify(prospect, report_); });
  agree_on_residuals();
  report_.residual = report_.factorization_residual;
  if (const auto other = report_.solution_residual; other && !(*other <= *report_.residual)) {
    report_.residual = other;
  }
  phase_done("verify", report_.seconds.verify, begin);
  // Negated so that NaN fails.
  const bool is_solved = *report_.residual < residual_limit;
  const bool is_orthogonal = !report_.orthogonality || *report_.orthogonality < residual_limit;
  if (is_solved && is_orthogonal) return;
  report_.status = RunStatus::failed;
  report_.hint = fmt::format(
      "the verification failed: scaled {} {:.3g}, expected < {}. No results were written. "
      "Numbers beyond the range of doubles, faulty memory or a defect of heddle can be the cause.",
      is_solved ? "loss of orthogonality" : "residual",
      is_solved ? *report_.orthogonality : *report_.residual, residual_limit);
}

void Solver::write(Method::Prospect prospect) {
  const Clock::time_point begin = Clock::now();
  const bool solved = prospect == Method::Prospect::solution;
  with_progress("writing", tasks_.writing, [&] {
    if (solution_.writer && solved) write_output(solution_, method_->solution());
    if (factor_.writer) write_output(factor_, method_->factor());
    if (q_.writer) write_output(q_, method_->explicit_q());
  });
  phase_done("write", report_.seconds.write, begin);
}

/// Reports missing log messages of nodes without a terminal; once, since they share the file.
void Solver::tell_of_logs() {
  const std::vector<std::string> troubles = gather_texts(node_, log_trouble(log_));
  if (!is_first() || !troubles.front().empty()) return;
  for (std::size_t node = 1; node < troubles.size(); ++node) {
    if (troubles[node].empty()) continue;
    return log_.warn("node {}: {}", node, troubles[node]);
  }
}

/// Collects all nodes' figures for node 0's report.
void Solver::collect_figures() {
  nlohmann::json rows = nlohmann::json::array();
  for (const ThreadReport& thread : NodeInternals(node_).threads()) {
    rows.push_back({thread.role, thread.busy_seconds, thread.waiting_seconds, thread.tasks});
  }
  const std::vector<std::string> texts = gather_texts(node_, rows.dump());
  for (std::size_t node = 0; node < texts.size(); ++node) {
    for (const auto& row : nlohmann::json::parse(texts[node])) {
      report_.threads.push_back({row.at(0).get<std::string>(), static_cast<std::int64_t>(node),
                                 row.at(1).get<double>(), row.at(2).get<double>(),
                                 row.at(3).get<std::uint64_t>()});
      report_.tasks += report_.threads.back().tasks;
    }
  }
  const Counters::Traffic traffic = NodeInternals(node_).engine().counters().traffic();
  const auto sum = [this](std::uint64_t value) {
    return static_cast<std::uint64_t>(reduce(node_, static_cast<double>(value), Reduction::sum));
  };
  report_.messages = sum(traffic.messages);
  report_.bytes_sent = sum(traffic.bytes_sent);
  report_.copies = sum(traffic.copies);
  report_.bytes_copied = sum(traffic.bytes_copied);
  const auto most = [this](std::uint64_t value) {
    return static_cast<std::uint64_t>(
        reduce(node_, static_cast<double>(value), Reduction::maximum));
  };
  report_.tasks_lent = sum(static_cast<std::uint64_t>(NodeInternals(node_).engine().tasks_lent()));
  report_.evictions = sum(NodeInternals(node_).store().evictions());
  report_.peak_bytes.host = most(NodeInternals(node_).store().peak_host_bytes());
  const std::uint64_t device = most(NodeInternals(node_).store().peak_device_bytes());
  if (node_.facts().devices == 0) return;
  report_.peak_bytes.device = device;
  report_.device_memory = node_.facts().device_memory_bytes;
}

/// The trace's metadata; of a failed run, what was known at its start.
std::string Solver::about() const {
  nlohmann::json about = to_json(report_);
  if (factor_job_ >= 0) about["job"] = factor_job_;
  about["resolved"] =
      to_json(resolved(node_.config(), method_->layout(), method_->distribution(), node_.facts()));
  return about.dump();
}

void Solver::begin_trace() {
  if (!config_.trace.file) return;
  const auto guard = [this](const std::string& path) {
    return std::make_shared<TemporaryName>(run_.janitor(), path);
  };
  trace_ = std::make_unique<TraceFile>(node_, *config_.trace.file, about(), guard);
}

void Solver::save_trace() {
  if (!trace_) return;
  const TraceFile::Summary summary = trace_->finish(about());
  trace_.reset();
  if (!is_first()) return;
  if (is_chrome_trace(*config_.trace.file)) {
    log_.info("trace: {} slices, {} arrows", summary.slices, summary.arrows);
  } else {
    log_.info("trace: heddle analyze {}", *config_.trace.file);
  }
  if (summary.records_dropped > 0) {
    log_.warn("the trace lacks {} records, which found no room", summary.records_dropped);
  }
}

}  // namespace heddle
