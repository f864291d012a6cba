#include "apps/simulation/prediction.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string_view>
#include <sys/resource.h>
#include <utility>

#include "algorithms/qr/layout.hpp"
#include "base/error.hpp"
#include "config/effective.hpp"
#include "config/problem.hpp"
#include "node-runtime/node_facts.hpp"
#include "node-runtime/reader_way.hpp"
#include "node-runtime/trace/node_file.hpp"
#include "node-runtime/trace/run_folder.hpp"
#include "node-runtime/tuning.hpp"
#include "replay/bounds.hpp"

namespace heddle {
namespace {

/// The most memory that this process has had at a time.
std::uint64_t peak_bytes() {
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

replay::PriorityRule rule_of(config::Priorities priorities) {
  using config::Priorities;
  switch (priorities) {
    case Priorities::program:
      return replay::PriorityRule::program;
    case Priorities::fifo:
      return replay::PriorityRule::fifo;
    case Priorities::reverse:
      return replay::PriorityRule::reverse;
    case Priorities::random:
      return replay::PriorityRule::random;
    case Priorities::path:
      return replay::PriorityRule::path;
  }
  return replay::PriorityRule::program;
}

/// Tasks whose graph is kept: of some hundred megabytes.
constexpr std::int64_t tasks_max = 5'000'000;

NodeFacts facts_of(const PredictionCase& one) {
  const replay::SimulatedMachine& machine = one.machine.machine;
  NodeFacts facts;
  facts.nodes = machine.nodes;
  facts.nodes_on_host = machine.nodes_per_host;
  facts.cpu_workers = machine.cpu_workers;
  facts.cpu_workers_of_all = machine.cpu_workers * machine.nodes;
  facts.devices = machine.devices;
  facts.are_devices_wanted = true;  // by the machine's description, or by the configuration
  facts.moves_tasks = one.lends();
  facts.device_streams = machine.device_streams;
  facts.device_memory_bytes = machine.device_memory_bytes;
  facts.window = one.window();
  facts.device_backend = machine.devices > 0 ? one.machine.device_backend : "none";
  facts.distribution = grid_of(one.config, machine.nodes);
  facts.distribution.devices = machine.devices;
  // What was measured here tells about the machine as long as its kernels are this one's.
  if (one.machine.host.empty()) {
    facts.tuning = one.tuning;
  } else {
    facts.tuning.measured = measurements_of(one.machine);
  }
  if (!facts.tuning.measured.devices.empty()) {
    facts.device_name = facts.tuning.measured.devices.front().name;
  }
  return facts;
}

}  // namespace

PredictionCase prediction_case(Config config, MachineDescription machine, const Tuning& tuning) {
  const config::Matrix& matrix = config.require_problem().matrix;
  if (!matrix.generate || matrix.n < 1) {
    throw Error(ErrorCode::usage,
                fmt::format("{}: problem.matrix: a simulation reads no file; write its size: "
                            "{{generate: spd, n: 4096}}",
                            config.name));
  }
  return {std::move(config), std::move(machine), tuning};
}

namespace {

std::string divided_on_cpus(std::int64_t fine) {
  return fine > 0 ? fmt::format(", divided into {} on CPUs", fine) : std::string();
}

}  // namespace

CutProblem cut_problem(const PredictionCase& one) {
  const config::Matrix& matrix = one.problem().matrix;
  const NodeFacts facts = facts_of(one);
  CutProblem result;
  if (one.is_cholesky()) {
    const TileLayout layout = choose_layout(matrix.n, matrix.n, one.config.layout, facts);
    result.distribution = facts.distribution;
    result.distribution.devices = devices_for(matrix.n, matrix.n, facts);
    result.cut = fmt::format("{}", layout.tile);
    if (layout.strip > 0) {
      result.cut += fmt::format(", strips of {} in pieces of {}", layout.strip, layout.small);
    }
    result.layout = layout_keys(layout);
    result.cut += divided_on_cpus(layout.fine);
    result.what = simulated_cholesky(matrix.n, layout, result.distribution,
                                     facts.devices > 0 ? one.machine.inverse_block : 0,
                                     one.machine.machine.device_memory_bytes);
  } else {
    const QrCut cut = choose_qr_cut(matrix.rows(), matrix.n, one.config.layout, facts);
    result.distribution = cut.distribution;
    result.cut = fmt::format("{} x {}, inner {}", cut.layout.tile * cut.layout.virtual_tiles,
                             cut.layout.tile, cut.layout.inner);
    result.layout = layout_keys(cut.layout);
    result.cut += divided_on_cpus(cut.layout.fine);
    result.what = simulated_qr(matrix.rows(), matrix.n, cut.layout, result.distribution);
  }
  return result;
}

Config resolved(const PredictionCase& one, const CutProblem& problem) {
  return resolved(one.config, problem.layout, problem.distribution, facts_of(one));
}

double PredictionBounds::seconds() const {
  return std::max({area_s, node_s, critical_path_s.value_or(0)});
}

PreparedPrediction::PreparedPrediction(PredictionCase one, KernelClock& clock)
    : one_(std::move(one)),
      problem_(cut_problem(one_)),
      program_(problem_.what, clock, one_.lends()) {
  const replay::SimulatedMachine& machine = one_.machine.machine;
  const replay::TaskGraph graph(program_, machine.nodes, tasks_max);
  kernels_ = clock.source();
  tasks_ = graph.count();
  const bool by_path = one_.config.runtime.priorities == config::Priorities::path;
  if (graph.is_complete()) {
    critical_path_s_ = graph.critical_path_s(one_.lends());
  } else if (by_path) {
    throw Error(
        ErrorCode::usage,
        fmt::format("runtime.priorities: path looks at all tasks beforehand, at most {}; these are "
                    "more: choose larger tiles, or other priorities",
                    tasks_max));
  }
  if (by_path) {
    by_path_ = replay::priority_of(replay::PriorityRule::path, 0, &graph, program_, machine);
  }
  if (!graph.is_complete() && !one_.machine.noise.is_none()) {
    replay::meet_all_kinds(program_, machine.nodes);
  }
  take_paces(clock);
  draw_from(clock);
}

/// All of the case's workers, each on its core, tell best what they differ by; otherwise the more,
/// the better: on more cores it is more. How fast they are on average, the run tells.
void PreparedPrediction::take_paces(const KernelClock& clock) {
  const std::vector<double>& of_run = one_.paces_of_run;
  if (of_run.empty()) return;
  const replay::SimulatedMachine& machine = one_.machine.machine;
  const auto all =
      static_cast<std::size_t>(machine.nodes) * static_cast<std::size_t>(machine.cpu_workers);
  for (const std::vector<double>& seen : clock.worker_paces()) {
    if (seen.size() < std::min(of_run.size(), all)) continue;
    paces_.push_back(replay::paces_of_rate(seen, replay::mean_rate(of_run)));
  }
  paces_source_ = paces_.empty() ? "as the run's did" : "as in the rehearsal";
  if (paces_.empty()) paces_.push_back(of_run);
}

/// What the tasks of each kind are to differ by.
void PreparedPrediction::draw_from(const KernelClock& clock) {
  const KernelNoise& noise = one_.machine.noise;
  const bool has_paces = !one_.paces_of_run.empty() || !one_.machine.machine.worker_paces.empty();
  if (one_.course != nullptr || has_paces || !noise.is_none()) critical_path_s_.reset();
  if (noise.is_none()) return;
  replay::TaskKindId next{0};
  for (const replay::TaskKind& kind : program_.kinds()) {
    replay::Spread& spread = spreads_.emplace_back();
    spread.variation = noise.variation;
    // At its home: a task takes its share wherever it runs.
    const Runner runner = kind.seconds_device > 0 ? Runner::device : Runner::worker;
    if (noise.recorded) spread.shares = clock.spread(program_.case_of(next), runner);
    ++next;
    if (noise.recorded && spread.shares.empty()) {
      throw Error(
          ErrorCode::usage,
          fmt::format("machine.kernels.noise: recorded: no run has recorded what '{}' takes",
                      kind.kernel));
    }
  }
}

/// Which of them takes a task, or which pace each has.
bool PreparedPrediction::draws_workers() const {
  const replay::SimulatedMachine& machine = one_.machine.machine;
  const bool differ =
      one_.course == nullptr && machine.cpu_workers > 1 && !machine.worker_paces.empty();
  return differ || !one_.paces_of_run.empty();
}

bool PreparedPrediction::draws_wakings() const {
  return !one_.machine.machine.wakings.empty();
}

bool PreparedPrediction::draws() const {
  return !spreads_.empty() || draws_workers() || draws_wakings() ||
         one_.config.runtime.priorities == config::Priorities::random;
}

std::int32_t PreparedPrediction::usual_repeats() const {
  constexpr std::int32_t some = 9;
  constexpr std::int64_t few_tasks = 100'000;  // a fifth of a second
  return (draws_workers() || draws_wakings()) && tasks_ <= few_tasks ? some : 1;
}

Prediction PreparedPrediction::run(std::uint64_t seed, bool traces) {
  replay::SimulatedMachine machine = one_.machine.machine;
  Prediction prediction;
  if (!paces_.empty()) {
    machine.worker_paces = replay::dealt_paces(paces_[seed % paces_.size()],
                                               machine.nodes * machine.cpu_workers, seed);
    prediction.paces = machine.worker_paces;
    prediction.paces_source = paces_source_;
  }
  prediction.problem = problem_;
  prediction.kernels = kernels_;
  prediction.seed = seed;
  const auto begin = std::chrono::steady_clock::now();
  replay::SimulatedJob* job = &program_;
  std::optional<replay::RepeatedJob> repeated;
  if (one_.course != nullptr) job = &repeated.emplace(*job, *one_.course);
  std::optional<replay::NoisyJob> noisy;
  if (!spreads_.empty()) job = &noisy.emplace(*job, spreads_, seed);
  std::optional<replay::PrioritizedJob> prioritized;
  replay::PriorityOf priority = by_path_;
  if (!priority) {
    priority =
        replay::priority_of(rule_of(one_.config.runtime.priorities), seed, nullptr, *job, machine);
  }
  if (priority) job = &prioritized.emplace(*job, std::move(priority));
  prediction.result = replay::simulate(machine, *job,
                                       {.window = one_.window(),
                                        .lends = one_.lends(),
                                        .traces = traces,
                                        .readers = reader_way(one_.config.runtime.messages.readers),
                                        .seed = seed});
  prediction.simulated_in_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  prediction.peak_bytes = peak_bytes();
  add_bounds(prediction);
  const double time = prediction.result.seconds * machine.nodes;
  if (time <= 0) return prediction;
  double workers = 0;
  double devices = 0;
  for (const replay::SimulatedNodeTotals& node : prediction.result.nodes) {
    workers += node.busy_workers_s;
    devices += node.busy_devices_s;
  }
  prediction.busy = workers / time / machine.cpu_workers;
  if (machine.devices > 0) prediction.busy_devices = devices / time / machine.devices;
  return prediction;
}

namespace {

/// What a kind's tasks take wherever they may run; `tasks` as SimulatedNodeTotals counts them.
replay::KernelWork work_of(const replay::TaskKind& kind, double tasks) {
  replay::KernelWork work{tasks, std::nullopt, std::nullopt};
  if (kind.seconds_device > 0) work.device_s = kind.seconds_device;
  if (kind.seconds_host <= 0) return work;
  work.worker_s = kind.seconds_host;
  if (!kind.fine) return work;
  const std::vector<double>& seconds = kind.fine->seconds;
  work.worker_s = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  return work;
}

}  // namespace

void PreparedPrediction::add_bounds(Prediction& prediction) const {
  const replay::SimulatedMachine& machine = one_.machine.machine;
  PredictionBounds& bounds = prediction.bounds;
  bounds.critical_path_s = critical_path_s_;
  replay::SimulatedNodeTotals all;
  all.tasks_by_kind.resize(program_.kinds().size());
  const auto area = [&](const replay::SimulatedNodeTotals& totals) {
    // A device that has a kernel works at its full rate: it is busy for what its kernels take
    // alone.
    if (!one_.lends()) {
      return std::max(totals.busy_workers_s / machine.cpu_workers,
                      totals.busy_devices_s / std::max(1, machine.devices));
    }
    std::vector<replay::KernelWork> kernels;
    for (std::size_t kind = 0; kind < totals.tasks_by_kind.size(); ++kind) {
      kernels.push_back(work_of(program_.kinds()[kind], totals.tasks_by_kind[kind]));
    }
    return replay::area_bound(kernels, machine.cpu_workers, machine.devices);
  };
  for (const replay::SimulatedNodeTotals& node : prediction.result.nodes) {
    bounds.node_s = std::max(bounds.node_s, area(node));
    all.busy_workers_s += node.busy_workers_s;
    all.busy_devices_s += node.busy_devices_s;
    for (std::size_t kind = 0; kind < node.tasks_by_kind.size(); ++kind) {
      all.tasks_by_kind[kind] += node.tasks_by_kind[kind];
    }
  }
  bounds.area_s = area(all) / machine.nodes;
}

Prediction middle_of(std::vector<Prediction> runs) {
  std::ranges::stable_sort(runs, {}, [](const Prediction& one) { return one.result.seconds; });
  const std::size_t last = runs.size() - 1;
  const auto at = [&](double share) {
    return static_cast<std::size_t>(std::lround(share * static_cast<double>(last)));
  };
  const Repeats repeats{.first_seed = std::ranges::min_element(runs, {}, &Prediction::seed)->seed,
                        .count = static_cast<std::int32_t>(runs.size()),
                        .low_s = runs[at(0.05)].result.seconds,
                        .high_s = runs[at(0.95)].result.seconds};
  Prediction middle = std::move(runs[last / 2]);
  middle.repeats = repeats;
  return middle;
}

namespace {

constexpr std::string_view simulated_prefix = "simulated-";

}  // namespace

void check_holds_no_recorded_run(const std::string& folder) {
  if (!std::filesystem::is_directory(folder)) return;
  const auto files = trace::node_files_in(folder);
  if (files.empty()) return;
  const nlohmann::json metadata = nlohmann::json::parse(
      trace::salvage_node_file(files.begin()->second).trace.info.metadata, nullptr, false);
  const bool says = metadata.is_object() && metadata.contains("run");
  const std::string run = says ? metadata.value("run", "") : "";
  if (run.starts_with(simulated_prefix)) return;
  throw Error(ErrorCode::usage,
              fmt::format("--trace {}: holds a run that heddle solve has recorded; "
                          "choose another folder for what is simulated",
                          folder));
}

void write_simulated_run(const PredictionCase& one, Prediction& prediction,
                         const std::string& folder, nlohmann::json about,
                         const std::function<std::string(const std::string&)>& stage) {
  about["job"] = 0;
  about["resolved"] = to_json(resolved(one, prediction.problem));
  const nlohmann::json configuration = to_json(one.config);
  trace::make_run_folder(folder);
  const auto begun = std::chrono::system_clock::now().time_since_epoch();
  const std::string run = fmt::format("{}{}", simulated_prefix, begun.count());
  for (trace::NodeTrace& trace : prediction.result.traces) {
    const replay::SimulatedMachine& machine = one.machine.machine;
    const nlohmann::json node{
        {"host", fmt::format("simulated host {}", machine.host_of(trace.node))},
        {"host_cores", machine.cores}};
    const nlohmann::json metadata{{"run", run},
                                  {"about", trace.node == NodeId{0} ? about : nlohmann::json()},
                                  {"configuration", configuration},
                                  {"node", node}};
    trace.info.metadata = metadata.dump();
    const auto path = std::filesystem::path(folder) / trace::node_file_name(trace.node);
    trace::write_node_file(stage(path.string()), trace);
  }
}

}  // namespace heddle
