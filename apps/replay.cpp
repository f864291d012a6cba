#include "apps/replay.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "apps/report.hpp"
#include "apps/run_facts.hpp"
#include "apps/simulation/configuration_keys.hpp"
#include "apps/simulation/predict.hpp"
#include "apps/simulation/recorded_clock.hpp"
#include "apps/simulation/recorded_configuration.hpp"
#include "apps/simulation/recorded_machine.hpp"
#include "apps/simulation/this_machine.hpp"
#include "apps/terminal.hpp"
#include "base/error.hpp"
#include "base/median.hpp"
#include "base/units.hpp"
#include "config/problem.hpp"
#include "node-runtime/tuning.hpp"
#include "replay/analysis.hpp"
#include "replay/run.hpp"

namespace heddle {
namespace {

using nlohmann::json;

/// Why a prediction does not apply to what the run did; empty if it does.
std::string why_unlike_a_prediction(const replay::RunTrace& run, const RunFacts& facts) {
  if (!run.damages.empty()) return "is not whole";
  if (facts.status == status_name(RunStatus::not_positive_definite)) {
    return "ended at a pivot that is not positive";
  }
  if (!facts.factor_s) return "did not come to its end";
  return {};
}

/// The run with which a prediction is compared: its factorization's time and configuration.
class ActualRun {
 public:
  /// Throws Error(usage) for an incomplete run.
  explicit ActualRun(const std::string& path) : run_(replay::load_run(path)), configuration_(run_) {
    const auto job = replay::main_job(run_);
    const RunFacts facts = facts_of(run_, job.value_or(0));
    const bool tells = job || !run_.damages.empty();
    const std::string why = tells ? why_unlike_a_prediction(run_, facts) : "has no task";
    if (!why.empty()) {
      throw Error(ErrorCode::usage,
                  fmt::format("--actual: '{}' {}, so that it tells of no error{}", path, why,
                              run_.damages.empty() ? "" : ": " + run_.damages.front()));
    }
    seconds_ = std::max(replay::analyze(run_, *job).seconds(), *facts.factor_s);
  }

  [[nodiscard]] double seconds() const { return seconds_; }

  /// Throws Error(usage) if the run has another configuration, or number of nodes.
  void check_is_of(const PredictionCase& one) const {
    Config actual = configuration_.as_it_was();
    Config foreseen = resolved(one, cut_problem(one));
    for (config::Layout* layout : {&actual.layout, &foreseen.layout}) {
      const bool is_used =
          layout->strip.value_or(0) > 0 || layout->hierarchy == config::Hierarchy::on;
      if (!is_used) layout->small.reset();
    }
    // Free GPU memory differs from run to run.
    if (configuration_.was_open("runtime.devices.memory")) {
      actual.runtime.devices.memory = foreseen.runtime.devices.memory;
    }
    if (const auto difference = difference_of(actual, foreseen)) {
      // "layout.tile" is "tile" in the report.
      refuse(difference->path.substr(difference->path.find('.') + 1), difference->one,
             difference->other);
    }
    const auto nodes = configuration_.about().value<std::int32_t>("nodes", 1);
    const std::int32_t foreseen_nodes = one.machine.machine.nodes;
    if (nodes != foreseen_nodes) {
      refuse("nodes", std::to_string(nodes), std::to_string(foreseen_nodes));
    }
  }

 private:
  void refuse(std::string_view what, const std::string& actual, const std::string& foreseen) const {
    throw Error(ErrorCode::usage,
                fmt::format("--actual: '{}' has {} {}, but what is foreseen has {}: name a run of "
                            "the same, or change that with --set",
                            run_.source, what, actual, foreseen));
  }

  replay::RunTrace run_;
  RecordedConfiguration configuration_;
  double seconds_ = 0;
};

/// A recorded run as subject: kernels take the recorded times.
class RecordedRun final : public PredictionSubject {
 public:
  explicit RecordedRun(const ReplayOptions& options)
      : options_(options),
        run_(replay::load_run(options.run)),
        configuration_(run_),
        as_it_was_(configuration_.as_it_was()),
        here_(config(SplitOverrides(options.overrides))) {
    const auto job = replay::main_job(run_);
    if (!job) throw Error(ErrorCode::usage, fmt::format("no task ran in '{}'", options.run));
    const double of_tasks_s = replay::analyze(run_, *job).seconds();
    const RunFacts facts = facts_of(run_, *job);
    recorded_s_ = std::max(of_tasks_s, facts.factor_s.value_or(of_tasks_s));
    why_unlike_ = why_unlike_a_prediction(run_, facts);
    if (options.actual) actual_.emplace(*options.actual);
    stolen_share_ = facts.stolen_share.value_or(0);
    was_ = recorded_machine(run_, *job, configuration_.about(),
                            static_cast<std::int32_t>(as_it_was_.runtime.window.value()), here_);
    if (was_.description.inverse_block > 0) {
      was_.description.inverse_block =
          as_it_was_.layout.inner.value_or(was_.description.inverse_block);
    }
    // Simulated time begins before the generation of the first task.
    around_s_ = recorded_s_ - of_tasks_s - was_.description.machine.append_s;
    const PredictionCase as_it_was =
        prediction_case(as_it_was_, was_.description, here_.tuning(was_.description));
    recorded_what_ = cut_problem(as_it_was).what;
    recorded_ =
        std::make_shared<RecordedTimes>(run_, *job, recorded_what_, as_it_was.lends(), was_.costs);
  }

  [[nodiscard]] const std::vector<std::string>& damages() const { return run_.damages; }

  [[nodiscard]] PredictionCase with(const SplitOverrides& changes) override {
    check_said_once(changes);
    Config config = this->config(changes);
    check_measured_keys(config, as_it_was_);
    here_.check_file(config);
    // The configuration's machine settings: on another machine all, else those that changed.
    std::vector<std::string> of_machine =
        machine_changes(config, options_.machine ? Config() : as_it_was_);
    of_machine.insert(of_machine.end(), changes.machine.begin(), changes.machine.end());
    MachineDescription machine = described(of_machine);
    // Devices that the run left idle are none of its own.
    const std::optional<std::int64_t> used = config.runtime.devices.per_node;
    if (used && !options_.machine && !sets(changes.machine, "devices")) {
      machine.machine.devices = std::min(machine.machine.devices, static_cast<std::int32_t>(*used));
    }
    check_device_kind(config.runtime.devices, machine, changes);
    const bool is_as_it_was = this->is_as_it_was(changes, config);
    // A repeated run has its own wake-up times.
    if (is_as_it_was || options_.machine || sets(changes.machine, "runtime.wake_us")) {
      machine.machine.wakings.clear();
    }
    if (is_as_it_was) {
      // The run's time before its first task includes the first worker's wake-up.
      double& wake_s = machine.machine.wake_s;
      wake_s = std::clamp(around_s_ + machine.machine.append_s, 0.0, wake_s);
      machine.machine.job_s = std::max(0.0, around_s_ - wake_s);
    } else if (!options_.machine && !sets(changes.machine, "runtime.job_us")) {
      machine.machine.job_s = job_seconds(machine.machine);
    }
    drop_grid(config, changes.problem, machine);
    follow(machine.machine, changes, config.runtime.devices);
    PredictionCase one = prediction_case(config, machine, here_.tuning(machine));
    if (is_as_it_was) one.course = recorded_->course();
    if (actual_) actual_->check_is_of(one);
    if (!options_.machine) set_paces(one);
    return one;
  }
  [[nodiscard]] std::shared_ptr<KernelClock> clock(const PredictionCase& one) override {
    const Crowd crowd = crowd_of(one.machine);
    MachineDescription was = one.machine;
    was.machine.nodes = was_.description.machine.nodes;
    was.machine.cpu_workers = was_.description.machine.cpu_workers;
    was.machine.nodes_per_host = was_.description.machine.nodes_per_host;
    was.machine.host_order = was_.description.machine.host_order;
    was.machine.hosts = was_.description.machine.hosts;
    const MachineDescription& now = crowd == Crowd::other ? one.machine : was;
    const double bytes = one.matrix_bytes();
    // Lazy: it takes some seconds, and repeating a run unchanged does not need it.
    const auto rehearsed = std::make_shared<std::shared_ptr<const Rehearsed>>();
    const auto ratio = [=, this](const KernelCase& what, const KernelCase& other,
                                 Runner runner) -> RecordedClock::KnownRatio {
      if (runner == Runner::worker && now.host.empty()) {
        if (*rehearsed == nullptr) *rehearsed = rehearse(one, now, was);
        if (const double known = (*rehearsed)->ratio(what, other); known > 0) return {known, true};
      }
      return {here_.ratio(what, now, other, was, bytes, runner), false};
    };
    const auto paces = [rehearsed] {
      return *rehearsed == nullptr ? std::vector<std::vector<double>>()
                                   : (*rehearsed)->ratios->now().paces();
    };
    return std::make_shared<RecordedClock>(recorded_, here_.clock_of(now, bytes), ratio,
                                           crowd == Crowd::other, paces);
  }
  [[nodiscard]] std::string more(const Prediction& prediction) const override {
    const std::string messages = was_.messages_text();
    const double foreseen_s = prediction.result.seconds;
    std::string text =
        messages.empty() ? "" : fmt::format("  {:<18}{}\n", "its messages", messages);
    text += rehearsed_text();
    const std::string took = format_seconds(recorded_s_);
    if (!why_unlike_.empty()) {
      text += fmt::format("  {:<18}{} and {}: all of it is foreseen\n", "the run took", took,
                          why_unlike_);
    } else if (is_beside_itself()) {
      text += fmt::format("  {:<18}{}: the prediction's error is {:+.1f} %\n", "the run took", took,
                          percent_over(foreseen_s, recorded_s_));
    } else {
      text += fmt::format("  {:<18}{}: the changes make {:+.1f} %\n", "the run took", took,
                          percent_over(foreseen_s, recorded_s_));
    }
    if (actual_) {
      text += fmt::format("  {:<18}{}: the prediction's error is {:+.1f} %\n", "the actual run",
                          format_seconds(actual_->seconds()),
                          percent_over(foreseen_s, actual_->seconds()));
    }
    return text;
  }
  [[nodiscard]] std::string limits() const override {
    std::string text;
    if (crowd_is_unknown_) {
      text += fmt::format(
          "  {:<18}kernels take what they took beside the run's other workers: of more\n  {:<18}or "
          "fewer this machine knows nothing, which is another one\n",
          "limit", "");
    }
    if (stolen_share_ >= stolen_share_told) {
      text += fmt::format(
          "  {:<18}a virtual machine's host gave {:.1f} % of the run's workers' time to others:\n"
          "  {:<18}what the run's tasks took has that in it\n",
          "disturbed", 100 * stolen_share_, "");
    }
    return text;
  }
  void add_to(json& report) const override {
    report["recorded_seconds"] = recorded_s_;
    report["actual_seconds"] = actual_ ? json(actual_->seconds()) : json();
    report["error_percent"] = error_percent(report);
    report["recorded_evictions"] = configuration_.about().value("evictions", 0);
    report["learned"] = was_.to_json();
    report["learned"]["first_tasks"] = recorded_->first_tasks();
    report["learned"]["worker_paces"] = recorded_->worker_paces();
    report["rehearsed"] = json::array();
    for (const auto& one : rehearsals_) {
      json rehearsed{{"nodes", one->nodes}, {"cpu_workers", one->cpu_workers}};
      one->all.add_to(rehearsed);
      rehearsed["chance"] = one->chance;
      rehearsed["paces"] = one->ratios->now().paces();
      rehearsed["paces_as_it_was"] = one->ratios->then().paces();
      for (const auto& [kernel, rates] : one->by_kernel) {
        rates.add_to(rehearsed["kernels"][std::string(kernel->name)]);
      }
      report["rehearsed"].push_back(std::move(rehearsed));
    }
  }

 private:
  [[nodiscard]] static double percent_over(double seconds, double others) {
    return 100 * (seconds / others - 1);
  }
  /// No setting that affects the time is changed.
  [[nodiscard]] bool is_as_it_was(const SplitOverrides& changes, const Config& changed) const {
    return !options_.machine && changes.machine.empty() && !difference_of(changed, as_it_was_);
  }
  /// The only case is the run itself.
  [[nodiscard]] bool is_beside_itself() const {
    const SplitOverrides changes(options_.overrides);
    return options_.sweeps.empty() && !options_.policies && is_as_it_was(changes, config(changes));
  }
  /// Error of a report's prediction, compared with the actual run, or with this one if it is
  /// repeated; null if none matches.
  [[nodiscard]] json error_percent(const json& report) const {
    const bool repeats = why_unlike_.empty() && is_beside_itself();
    const std::optional<double> real_s = actual_   ? std::optional(actual_->seconds())
                                         : repeats ? std::optional(recorded_s_)
                                                   : std::nullopt;
    if (!real_s) return {};
    return percent_over(report.at("seconds").at("factor").get<double>(), *real_s);
  }
  /// Operations per second of a worker in a rehearsal of the case, in one of the run, and in the
  /// run. 0: no such tasks.
  struct RehearsedRates {
    double now = 0;
    double as_it_was = 0;
    double recorded = 0;

    void add_to(json& report) const {
      report["gflops"] = now * 1e-9;
      report["gflops_as_it_was"] = as_it_was * 1e-9;
      report["gflops_recorded"] = recorded * 1e-9;
    }
  };
  /// Tasks of the run and of the case, rehearsed.
  struct Rehearsed {
    std::unique_ptr<const RehearsedRatios> ratios;
    std::int32_t nodes = 0;  ///< of the case
    std::int32_t cpu_workers = 0;
    RehearsedRates all;
    std::vector<std::pair<const Kernel*, RehearsedRates>> by_kernel;
    double chance = 1;  ///< chance_in_ratio()

    [[nodiscard]] double ratio(const KernelCase& now, const KernelCase& then) const {
      return ratios->ratio(now, then) * chance;
    }
  };
  /// A case with times derived from operation counts only.
  struct Draft {
    SimulatedFactorization what;
    replay::RunTrace run;
    RecordedTimes times;
  };
  /// Results of rehearsals compared with the run.
  [[nodiscard]] std::string rehearsed_text() const {
    std::string text;
    for (const auto& one : rehearsals_) {
      text += fmt::format("  {:<18}{:.1f} GFLOP/s a worker; as the run was {:.1f}, it had {:.1f}\n",
                          "rehearsed", one->all.now * 1e-9, one->all.as_it_was * 1e-9,
                          one->all.recorded * 1e-9);
    }
    return text;
  }
  [[nodiscard]] std::shared_ptr<const Rehearsed> rehearse(const PredictionCase& one,
                                                          const MachineDescription& now,
                                                          const MachineDescription& was) {
    const Draft draft = draft_of(one, now);
    auto result = std::make_shared<Rehearsed>();
    result->ratios =
        here_.rehearse({draft.what, now, begin_orders(draft.run, 0)},
                       {recorded_what_, was, begin_orders(run_, *replay::main_job(run_))});
    result->nodes = now.machine.nodes;
    result->cpu_workers = now.machine.cpu_workers;
    const auto rates_of = [&](const Kernel* kernel) {
      const auto [recorded, as_it_was] = recorded_->rates(
          kernel, [&](const KernelCase& what) { return result->ratios->then().seconds(what); });
      const RecordedTimes::Rates of_case = draft.times.rates(
          kernel, [&](const KernelCase& what) { return result->ratios->now().seconds(what); });
      return RehearsedRates{of_case.otherwise, as_it_was, recorded};
    };
    result->all = rates_of(nullptr);
    for (const Kernel* kernel : recorded_->kernels()) {
      const RehearsedRates rates = rates_of(kernel);
      if (rates.as_it_was > 0) result->by_kernel.emplace_back(kernel, rates);
    }
    result->chance =
        chance_in_ratio(result->all.as_it_was, result->all.recorded, recorded_->worker_paces());
    if (result->all.as_it_was > 0) rehearsals_.push_back(result);
    return result;
  }
  /// The case's order of tasks, by operation counts.
  [[nodiscard]] Draft draft_of(const PredictionCase& one, const MachineDescription& now) {
    const auto by_flops = [](const KernelCase&, const KernelCase&, Runner) {
      return RecordedClock::KnownRatio{};
    };
    RecordedClock clock(recorded_, here_.clock_of(now, one.matrix_bytes()), by_flops, false);
    PreparedPrediction first(one, clock);
    const Prediction prediction = first.run(1, true);
    const SimulatedFactorization& what = prediction.problem.what;
    replay::RunTrace run = replay::make_run("simulated", prediction.result.traces);
    RecordedTimes times(run, 0, what, one.lends());
    return {what, std::move(run), std::move(times)};
  }
  /// Whether workers per host and number of nodes equal the run's.
  enum class Crowd : std::uint8_t { same, other, unknown };
  [[nodiscard]] Crowd crowd_of(const MachineDescription& now) {
    if (!now.host.empty()) {
      const std::int32_t then = was_.description.machine.workers_on_host();
      return now.machine.workers_on_host() == then ? Crowd::same : Crowd::other;
    }
    if (here_.times_alike(now, was_.description)) return Crowd::same;
    if (was_.cpu_model == here_.cpu_model()) return Crowd::other;
    crowd_is_unknown_ = true;
    return Crowd::unknown;
  }
  [[nodiscard]] Config config(const SplitOverrides& changes) const {
    return configuration_.with(changes, options_.machine.has_value());
  }
  /// Applies changes of the machine to the keys of devices.
  static void follow(const replay::SimulatedMachine& machine, const SplitOverrides& changes,
                     config::Devices& devices) {
    if (sets(changes.machine, "device_memory")) devices.memory = machine.device_memory_bytes;
    if (sets(changes.machine, "device_streams")) devices.streams = machine.device_streams;
  }
  [[nodiscard]] MachineDescription described(const std::vector<std::string>& changes) {
    // A run with one node per host does not show the cost of reading a neighbour's memory.
    if (!options_.machine && !was_.ways.memory && was_.cpu_model == here_.cpu_model()) {
      return here_.with_reading(changes, machine(changes));
    }
    return read_machine_description(options_.machine, changes, machine(changes));
  }
  [[nodiscard]] MachineDescription machine(const std::vector<std::string>& changes) const {
    MachineDescription result = was_.description;
    // Another number of nodes: one per host, unless stated.
    if (sets(changes, "nodes")) {
      result.machine.nodes_per_host = 1;
    }
    return result;
  }
  /// A job's time outside its tasks: the recorded one, adjusted for the messages with which more or
  /// fewer nodes report their end.
  [[nodiscard]] double job_seconds(const replay::SimulatedMachine& now) const {
    const replay::SimulatedMachine& was = was_.description.machine;
    const auto agreeing_s = [](const replay::SimulatedMachine& machine) {
      if (machine.nodes < 2) return 0.0;
      const replay::Way& way = machine.way(NodeId{0}, NodeId{1});
      constexpr double messages = 2;  // to node 0 and back
      // The progress thread of each side wakes once. On 64 cores a job took 0.1 ms longer on 2 and
      // 4 nodes than on one; a wake-up takes 30 to 50 us.
      constexpr double wakings = 2;
      return messages * (way.latency_s + 2 * machine.message_s) + wakings * machine.wake_s;
    };
    const double first_s = now.wakings.empty() ? now.wake_s : median(now.wakings.back().seconds);
    return std::max(0.0, around_s_ - first_s - agreeing_s(was) + agreeing_s(now));
  }
  /// With the run's numbers of workers and nodes each worker keeps its recorded pace. An unchanged
  /// run has it in the tasks' times already.
  void set_paces(PredictionCase& one) const {
    replay::SimulatedMachine& machine = one.machine.machine;
    const replay::SimulatedMachine& was = was_.description.machine;
    const std::vector<double>& paces = recorded_->worker_paces();
    if (one.course == nullptr) machine.first_tasks = recorded_->first_tasks();
    if (one.course != nullptr) {
      for (const double pace : recorded_->node_paces()) {
        machine.worker_paces.insert(machine.worker_paces.end(),
                                    static_cast<std::size_t>(machine.cpu_workers), pace);
      }
    } else if (machine.nodes == was.nodes && machine.cpu_workers == was.cpu_workers &&
               std::ssize(paces) == std::int64_t{was.nodes} * was.cpu_workers) {
      machine.worker_paces = paces;
    } else {
      one.paces_of_run = paces;
    }
  }
  /// With another number of nodes the grid is chosen again.
  static void drop_grid(Config& config, const std::vector<std::string>& of_problem,
                        const MachineDescription& machine) {
    if (sets(of_problem, "layout.grid") || !config.layout.grid) return;
    const config::Grid& grid = *config.layout.grid;
    if (grid.rows * grid.columns != machine.machine.nodes) config.layout.grid.reset();
  }

  const ReplayOptions& options_;
  replay::RunTrace run_;
  RecordedConfiguration configuration_;
  Config as_it_was_;
  ThisMachine here_;
  RecordedMachine was_;
  bool crowd_is_unknown_ = false;  ///< of a case so far
  double around_s_ = 0;            ///< of the job's time, before and after its tasks
  double recorded_s_ = 0;
  std::string why_unlike_;           ///< why_unlike_a_prediction() of this run
  std::optional<ActualRun> actual_;  ///< made with the changes
  double stolen_share_ = 0;          ///< fraction of its workers' time
  std::vector<std::shared_ptr<const Rehearsed>> rehearsals_;  ///< of the cases that needed one
  SimulatedFactorization recorded_what_;
  std::shared_ptr<const RecordedTimes> recorded_;
};

}  // namespace

int replay_run(ReplayOptions options, Results& results) {
  take_old_spellings(options);
  if (options.actual && (!options.sweeps.empty() || options.policies)) {
    throw Error(ErrorCode::usage, "--actual is a run of one case, not of --sweep or --policies");
  }
  FileUses files;
  files.reads_run("the run", options.run);
  if (options.actual) files.reads_run("--actual", *options.actual);
  files.reads_machine_file(std::nullopt);
  add_files(files, options);
  files.check_distinct();
  files.check_writable(results.janitor());
  RecordedRun run(options);
  for (const std::string& damage : run.damages()) print(fmt::format("not whole: {}\n", damage));
  predict(run, options, results);
  return run.damages().empty() ? 0 : 1;
}

}  // namespace heddle
