#include "apps/solver.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "algorithms/cholesky/cholesky.hpp"
#include "algorithms/io/agreement.hpp"
#include "algorithms/io/distributed_read.hpp"
#include "algorithms/io/distributed_write.hpp"
#include "algorithms/io/measures.hpp"
#include "algorithms/io/trace_file.hpp"
#include "algorithms/solve/products.hpp"
#include "algorithms/solve/triangular.hpp"
#include "apps/gemm_rate.hpp"
#include "apps/live_progress.hpp"
#include "base/units.hpp"

namespace heddle {
namespace {

void print(const std::string& text) {
  // A run goes on when nobody reads what it says.
  static_cast<void>(std::fwrite(text.data(), 1, text.size(), stdout));
  static_cast<void>(std::fflush(stdout));
}

}  // namespace

Solver::Solver(Run& run, const SolveOptions& options, const Config& config, Problem& problem,
               Node& node, spdlog::logger& log)
    : run_(run), options_(options), config_(config), problem_(problem), node_(node), log_(log) {}

double Solver::seconds_since(Clock::time_point begin) const {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

void Solver::phase_done(const char* name, std::optional<double>& seconds, Clock::time_point begin) {
  node_.barrier();
  seconds = seconds_since(begin);
  if (is_first()) log_.info("{}: {}", name, format_seconds(*seconds));
}

void Solver::solve() {
  const Plan plan(node_, problem_, config_);
  describe(plan);
  if (is_first() && options_.verbosity != Verbosity::quiet) print(plan.text());
  if (options_.dry_run) {
    report_.status = RunStatus::ok;
    return;
  }
  agree_on_tag();
  const config::Output& output = problem_.wanted().output;
  if (output.solution) {
    open_output(solution_, *output.solution, problem_.sides(),
                problem_.side_is_vector() ? NpyShape::vector : NpyShape::matrix);
  }
  if (output.factor) open_output(factor_, *output.factor, problem_.n(), NpyShape::matrix);
  report_.gemm_gflops = measure_gemm_rate(node_, plan.layout(), problem_.n());

  read();
  if (factorize()) {
    solve_sides();
    verify();
    if (report_.status == RunStatus::ok) write();
  }
  report_.seconds.total = seconds_since(begin_);
  collect_figures();
  save_trace();
}

void Solver::describe(const Plan& plan) {
  const NodeFacts& facts = node_.facts();
  const TileLayout& layout = plan.layout();
  report_.m = report_.n = problem_.n();
  report_.nrhs = problem_.sides();
  report_.nodes = facts.nodes;
  report_.grid = {facts.distribution.grid_rows, facts.distribution.grid_columns};
  report_.tile = layout.tile;
  report_.strip = layout.strip;
  report_.small = layout.small;
  report_.cpu_workers = facts.cpu_workers;
  report_.devices = facts.devices;
  report_.device_backend = facts.device_backend;
  report_.blas_kernels = facts.blas_kernels;
  if (!facts.machine_file.empty()) report_.machine_file = facts.machine_file;
  for (const std::string& warning : facts.warnings) {
    if (is_first()) log_.warn("{}", warning);
  }
  log_.debug("node {} of {}: {}, {} workers, {} devices", facts.rank, facts.nodes, facts.cpu_model,
             facts.cpu_workers, facts.devices);
}

/// Temporary names are unique to the run and known to all nodes.
void Solver::agree_on_tag() {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(
                           std::chrono::system_clock::now().time_since_epoch())
                           .count();
  const std::string mine = is_first() ? fmt::format("{}-{:x}", ::getpid(), seconds) : "";
  tag_ = gather_texts(node_, mine).front();
}

/// Node 0 makes the file, with all its space, before the work begins: a full disk shows now.
void Solver::open_output(OutputFile& output, const std::string& path, std::int64_t columns,
                         NpyShape shape) {
  const std::string temporary = NpyWriter::temporary_path_of(path, tag_);
  together(node_, [&] {
    if (!is_first()) return;
    output.name.emplace(run_.janitor(), temporary);
    output.writer.emplace(NpyWriter::create(path, problem_.n(), columns, tag_, shape));
  });
  together(node_, [&] {
    if (is_first()) return;
    output.writer.emplace(NpyWriter::open(temporary, problem_.n(), columns));
  });
}

void Solver::commit(OutputFile& output) {
  together(node_, [&] {
    if (is_first()) output.writer->commit();
  });
  output.writer.reset();
  output.name.reset();
}

void Solver::read() {
  const Clock::time_point begin = Clock::now();
  MatrixSpec spec;
  spec.rows = spec.columns = problem_.n();
  spec.storage = Storage::lower;
  together(node_, [&] {
    a_ = node_.matrix<double>(spec);
    MatrixSource& source = problem_.matrix();
    source.prepare(wanted_of_symmetric(*a_, source));
  });
  read_symmetric(problem_.matrix(), *a_, Checked::yes, problem_.matrix_name());
  if (problem_.has_sides()) {
    together(node_, [&] {
      x_ = right_hand_sides(*a_, problem_.sides());
      problem_.right_hand_sides().prepare(wanted_of_sides(*x_));
    });
    read_sides(problem_.right_hand_sides(), *x_, Checked::yes, problem_.sides_name());
  }
  phase_done("read", report_.seconds.read, begin);
}

/// False when the matrix is not positive definite.
bool Solver::factorize() {
  const double flops = cholesky_flops(static_cast<double>(problem_.n()));
  Job job = node_.prepare(cholesky(*a_));
  node_.barrier();
  const Clock::time_point begin = Clock::now();
  JobResult result;
  {
    const LiveProgress progress(
        job, "factorizing", flops,
        is_first() && options_.verbosity != Verbosity::quiet && stderr_is_watched(run_.launcher()));
    job.start();
    result = job.wait();
  }
  phase_done("factor", report_.seconds.factor, begin);
  if (result.status == JobResult::Status::numerical_failure) {
    report_.status = RunStatus::not_positive_definite;
    report_.info = result.info;
    report_.hint = fmt::format(
        "the matrix is not positive definite: its leading minor of order {} is not, pivot {} "
        "(counted from 1) is {:.17g} and must be > 0. No results were written. Check the matrix "
        "there, or add a larger nugget to its diagonal.",
        result.info, result.info, result.pivot);
    return false;
  }
  if (result.status != JobResult::Status::done) {
    throw Error(ErrorCode::internal, "the factorization ended without a result");
  }
  report_.status = RunStatus::ok;
  report_.gflops = flops / std::max(*report_.seconds.factor, 1e-9) / 1e9;
  if (report_.gemm_gflops) report_.efficiency = *report_.gflops / *report_.gemm_gflops;
  report_.log_determinant = log_determinant_of_factor(*a_);
  return true;
}

void Solver::run_job(JobSpec spec) {
  const JobResult result = node_.submit(std::move(spec)).wait();
  if (result.status != JobResult::Status::done) {
    throw Error(ErrorCode::internal, fmt::format("a job ended without a result: {}", result.error));
  }
}

void Solver::solve_sides() {
  if (!problem_.has_sides()) return;
  const Clock::time_point begin = Clock::now();
  run_job(solve_cholesky(*a_, *x_));
  phase_done("solve", report_.seconds.solve, begin);
}

/// |A - L L^T| and |b - A x|, with A and b read once more.
void Solver::verify() {
  if (!problem_.wanted().verify) return;
  const Clock::time_point begin = Clock::now();
  const auto n = static_cast<double>(problem_.n());
  MatrixSpec spec;
  spec.rows = spec.columns = problem_.n();
  spec.storage = Storage::lower;
  Matrix<double> r = node_.matrix<double>(spec);
  read_symmetric(problem_.matrix(), r, Checked::before, problem_.matrix_name());
  const double a_norm = symmetric_one_norm(r);
  if (problem_.has_sides()) {
    Matrix<double> y = right_hand_sides(*a_, problem_.sides());
    read_sides(problem_.right_hand_sides(), y, Checked::before, problem_.sides_name());
    const std::vector<double> b_norms = column_norms(y);
    run_job(subtract_symmetric_product(y, r, *x_));
    report_.solution_residual =
        scaled_solution_residual(column_norms(y), column_norms(*x_), b_norms, a_norm, n);
  }
  run_job(subtract_product(r, *a_));
  report_.factorization_residual = scaled_factor_residual(symmetric_one_norm(r), a_norm, n);
  report_.residual = report_.factorization_residual;
  if (const auto other = report_.solution_residual; other && !(*other <= *report_.residual)) {
    report_.residual = other;
  }
  phase_done("verify", report_.seconds.verify, begin);
  if (*report_.residual < residual_limit) return;
  report_.status = RunStatus::failed;
  report_.hint = fmt::format(
      "the verification failed: scaled residual {:.3g}, expected < {}. No results were written. "
      "Numbers beyond the range of doubles, faulty memory or a defect of heddle can be the cause.",
      *report_.residual, residual_limit);
}

void Solver::write() {
  const Clock::time_point begin = Clock::now();
  if (solution_.writer) write_tiles(*x_, *solution_.writer);
  if (factor_.writer) write_tiles(*a_, *factor_.writer);
  // Nothing gets its final name before everything is on the disk.
  if (solution_.writer) commit(solution_);
  if (factor_.writer) commit(factor_);
  phase_done("write", report_.seconds.write, begin);
}

/// What all nodes did, for the report of node 0.
void Solver::collect_figures() {
  nlohmann::json rows = nlohmann::json::array();
  for (const ThreadReport& thread : node_.threads()) {
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
  const Engine::Traffic traffic = node_.engine().traffic();
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
  report_.peak_bytes.host = most(node_.store().peak_host_bytes());
  const std::uint64_t device = most(node_.store().peak_device_bytes());
  if (node_.facts().devices > 0) report_.peak_bytes.device = device;
}

void Solver::save_trace() {
  if (!config_.trace.file) return;
  const trace::ExportSummary summary =
      write_trace(node_, *config_.trace.file, [this](const std::string& path) {
        return std::make_shared<TemporaryName>(run_.janitor(), path);
      });
  if (!is_first()) return;
  log_.info("trace: {} slices, {} arrows", summary.slices, summary.arrows);
  if (summary.records_dropped > 0) {
    log_.warn("the trace lacks {} records, which found no room", summary.records_dropped);
  }
}

}  // namespace heddle
