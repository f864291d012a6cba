#include "apps/replay.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/core.h>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "apps/report.hpp"
#include "apps/run_facts.hpp"
#include "apps/simulation/predict.hpp"
#include "apps/simulation/recorded_clock.hpp"
#include "apps/simulation/recorded_machine.hpp"
#include "apps/simulation/this_machine.hpp"
#include "apps/terminal.hpp"
#include "base/error.hpp"
#include "base/median.hpp"
#include "base/units.hpp"
#include "node-runtime/tuning.hpp"
#include "replay/analysis.hpp"
#include "replay/run.hpp"

namespace heddle {
namespace {

using nlohmann::json;

/// What a run says of itself as a configuration, but for what it had chosen itself among the keys
/// `anew` of its layout.
std::string configuration_of(const json& about, const std::string& run,
                             const std::vector<std::string>& anew) {
  try {
    const auto chosen = about.value("chosen", std::vector<std::string>());
    json layout;
    for (const char* key :
         {"grid", "tile", "strip", "small", "hierarchy", "inner", "virtual", "tree"}) {
      const bool again = std::ranges::count(anew, key) > 0 && std::ranges::count(chosen, key) > 0;
      if (!again && about.contains(key) && !about.at(key).is_null()) layout[key] = about.at(key);
    }
    // Without a strip or divided tasks there is no small size.
    if (layout.value("strip", 0) == 0 && layout.value("hierarchy", "off") == "off") {
      layout.erase("small");
    }
    const bool is_qr = about.at("factorization") == "qr";
    json matrix{{"generate", is_qr ? "random" : "spd"}, {"n", about.at("n")}};
    if (is_qr) matrix["m"] = about.at("m");
    const json all{{"problem", {{"factorization", about.at("factorization")}, {"matrix", matrix}}},
                   {"layout", layout},
                   {"runtime",
                    {{"cpu_workers", about.at("cpu_workers")},
                     {"placement", about.value("placement", "static")}}}};
    return all.dump();
  } catch (const json::exception& error) {
    throw Error(
        ErrorCode::usage,
        fmt::format("'{}' does not say what was factorized, and how ({}); only whole runs of "
                    "heddle solve can be replayed",
                    run, error.what()));
  }
}

/// What a run says of itself, which node 0 writes down.
json about_of(const replay::RunTrace& run) {
  json about = json::parse(run.about);
  if (about.is_object()) return about;
  const bool has_first = std::ranges::binary_search(run.nodes, NodeId{0});
  throw Error(ErrorCode::usage,
              fmt::format("'{}' does not say what was factorized, and how: {}; only what heddle "
                          "solve has recorded can be replayed",
                          run.source,
                          has_first ? "node 0 has written nothing of it"
                                    : "the trace of node 0, which would, is not there"));
}

bool sets(const std::vector<std::string>& overrides, std::string_view key) {
  return std::ranges::any_of(overrides, [&](const std::string& text) {
    return text.starts_with(fmt::format("{}=", key));
  });
}

/// A run, whose kernels take what they took.
class RecordedRun final : public PredictionSubject {
 public:
  explicit RecordedRun(const ReplayOptions& options)
      : options_(options),
        run_(replay::load_run(options.run)),
        about_(about_of(run_)),
        here_(config(SplitOverrides({}))) {
    const auto job = replay::main_job(run_);
    if (!job) throw Error(ErrorCode::usage, fmt::format("no task ran in '{}'", options.run));
    const double of_tasks_s = replay::analyze(run_, *job).seconds();
    const RunFacts facts = facts_of(run_, *job);
    recorded_s_ = std::max(of_tasks_s, facts.factor_s.value_or(of_tasks_s));
    why_unlike_ = why_unlike_a_prediction(run_, facts);
    if (options.actual) {
      const auto [seconds, settings] = whole_run(*options.actual);
      actual_s_ = seconds;
      actual_settings_ = settings;
    }
    stolen_share_ = facts.stolen_share.value_or(0);
    was_ = recorded_machine(run_, *job, about_, here_);
    // A simulation's time begins before its first task's generation, too.
    around_s_ = recorded_s_ - of_tasks_s - was_.description.machine.append_s;
    const PredictionCase as_it_was =
        prediction_case(config(SplitOverrides({})), options.run, was_.description,
                        here_.tuning(was_.description), {});
    recorded_what_ = cut_problem(as_it_was).what;
    recorded_ = std::make_shared<RecordedTimes>(run_, *job, recorded_what_, as_it_was.lends(),
                                                was_.costs.woken);
  }

  [[nodiscard]] const std::vector<std::string>& damages() const { return run_.damages; }

  [[nodiscard]] PredictionCase with(const SplitOverrides& changes) override {
    Config config = this->config(changes);
    MachineDescription machine = described(changes.machine);
    const bool is_as_it_was = changes.problem.empty() && changes.machine.empty() &&
                              changes.policies.empty() && !options_.machine;
    // Those of a run that is repeated are the run's.
    if (is_as_it_was || options_.machine || sets(changes.machine, "runtime.wake_us")) {
      machine.machine.wakings.clear();
    }
    if (!options_.machine && !sets(changes.machine, "runtime.job_us")) {
      machine.machine.job_s = job_seconds(machine.machine);
    }
    drop_grid(config, changes.problem, machine);
    PredictionCase one = prediction_case(config, options_.run, machine, here_.tuning(machine),
                                         read_policies(changes.policies));
    if (is_as_it_was) one.course = recorded_->course();
    if (actual_s_) check_that_actual_is_of(one);
    if (!options_.machine) set_paces(one);
    return one;
  }
  [[nodiscard]] std::shared_ptr<KernelClock> clock(const PredictionCase& one) override {
    const Crowd crowd = crowd_of(one.machine);
    MachineDescription was = one.machine;
    was.machine.nodes = was_.description.machine.nodes;
    was.machine.cpu_workers = was_.description.machine.cpu_workers;
    was.machine.nodes_per_host = was_.description.machine.nodes_per_host;
    const MachineDescription& now = crowd == Crowd::other ? one.machine : was;
    const double bytes = one.matrix_bytes();
    // Once it is asked for: some seconds, and a replay of a run as it was needs none.
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
    } else if (is_as_it_was()) {
      text += fmt::format("  {:<18}{}: the prediction's error is {:+.1f} %\n", "the run took", took,
                          percent_over(foreseen_s, recorded_s_));
    } else {
      text += fmt::format("  {:<18}{}: the changes make {:+.1f} %\n", "the run took", took,
                          percent_over(foreseen_s, recorded_s_));
    }
    if (actual_s_) {
      text += fmt::format("  {:<18}{}: the prediction's error is {:+.1f} %\n", "the actual run",
                          format_seconds(*actual_s_), percent_over(foreseen_s, *actual_s_));
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
    report["actual_seconds"] = actual_s_ ? json(*actual_s_) : json();
    report["error_percent"] = error_percent(report);
    report["recorded_evictions"] = about_.value("evictions", 0);
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
  [[nodiscard]] bool is_as_it_was() const {
    return options_.overrides.empty() && !options_.machine && options_.sweeps.empty() &&
           !options_.policies;
  }
  /// Of what a report foresees, beside the actual run, or beside this one that is repeated; null
  /// where no run is of the same.
  [[nodiscard]] json error_percent(const json& report) const {
    const bool is_beside_itself = is_as_it_was() && why_unlike_.empty();
    const std::optional<double> real_s = actual_s_          ? actual_s_
                                         : is_beside_itself ? std::optional(recorded_s_)
                                                            : std::nullopt;
    if (!real_s) return {};
    return percent_over(report.at("seconds").at("factor").get<double>(), *real_s);
  }
  /// Why what is foreseen is not what the run did; empty: it did all.
  [[nodiscard]] static std::string why_unlike_a_prediction(const replay::RunTrace& run,
                                                           const RunFacts& facts) {
    if (!run.damages.empty()) return "is not whole";
    if (facts.status == status_name(RunStatus::not_positive_definite)) {
      return "ended at a pivot that is not positive";
    }
    if (!facts.factor_s) return "did not come to its end";
    return {};
  }
  using Settings = std::vector<std::pair<std::string, std::string>>;
  /// The run that a prediction is held against has its problem, nodes, workers and tiles. Throws
  /// Error(usage).
  void check_that_actual_is_of(const PredictionCase& one) const {
    const CutProblem cut = cut_problem(one);
    const Settings wanted{{"factorization", one.is_cholesky() ? "cholesky" : "qr"},
                          {"m", std::to_string(one.problem.matrix.rows())},
                          {"n", std::to_string(one.problem.matrix.n)},
                          {"nodes", std::to_string(one.machine.machine.nodes)},
                          {"cpu_workers", std::to_string(one.machine.machine.cpu_workers)},
                          {"tile", std::to_string(cut.layout.tile.value_or(0))}};
    for (const auto& setting : actual_settings_) {
      const auto same =
          std::ranges::find(wanted, setting.first, [](const auto& other) { return other.first; });
      if (same == wanted.end() || same->second == setting.second) continue;
      throw Error(
          ErrorCode::usage,
          fmt::format("--actual: '{}' has {} {}, but what is foreseen has {}: name a run of "
                      "the same, or change that with --set",
                      *options_.actual, setting.first, setting.second, same->second));
    }
  }
  /// What the factorization of a whole run took, and its settings. Throws Error(usage) of one that
  /// is not.
  [[nodiscard]] static std::pair<double, Settings> whole_run(const std::string& path) {
    const replay::RunTrace run = replay::load_run(path);
    const auto job = replay::main_job(run);
    const RunFacts facts = facts_of(run, job.value_or(0));
    const bool tells = job || !run.damages.empty();
    const std::string why = tells ? why_unlike_a_prediction(run, facts) : "has no task";
    if (!why.empty()) {
      throw Error(ErrorCode::usage,
                  fmt::format("--actual: '{}' {}, so that it tells of no error{}", path, why,
                              run.damages.empty() ? "" : ": " + run.damages.front()));
    }
    return {std::max(replay::analyze(run, *job).seconds(), *facts.factor_s), facts.settings};
  }
  /// What a worker reaches in a rehearsal of a case, in one of the run, and what the run's reached;
  /// operations a second. 0: there are no such tasks.
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
  /// Tasks as the run had them, and as a case is to have them.
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
  /// A case with times that follow from operations alone.
  struct Draft {
    SimulatedFactorization what;
    replay::RunTrace run;
    RecordedTimes times;
  };
  /// What rehearsals say beside the run.
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
  /// In which order a case's tasks will begin follows from what they take.
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
  /// How many workers a host has, and in how many nodes, beside the run's.
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
  /// What follows from the tile and the machine, and was chosen by the run itself, is chosen again
  /// where these change.
  [[nodiscard]] Config config(const SplitOverrides& changes) const {
    std::vector<std::string> anew;
    const bool has_other_tile = sets(changes.problem, "layout.tile");
    const auto changes_machine = [&](std::string_view key) { return sets(changes.machine, key); };
    const bool has_other_machine =
        options_.machine ||
        std::ranges::any_of(std::array{"nodes", "cpu_workers", "devices"}, changes_machine);
    if (has_other_tile || has_other_machine) anew = {"inner", "virtual", "tree"};
    if (has_other_tile) anew.insert(anew.end(), {"strip", "small", "hierarchy"});
    return Config::from_text(configuration_of(about_, options_.run, anew), options_.run,
                             changes.problem);
  }
  [[nodiscard]] MachineDescription described(const std::vector<std::string>& changes) {
    // What neighbours take to read each other a run of one node a host does not tell.
    if (!options_.machine && !was_.ways.memory && was_.cpu_model == here_.cpu_model()) {
      return here_.with_reading(changes, machine(changes));
    }
    return read_machine_description(options_.machine, changes, machine(changes));
  }
  [[nodiscard]] MachineDescription machine(const std::vector<std::string>& changes) const {
    MachineDescription result = was_.description;
    // Another number of nodes: each on a host of its own, unless that is said too.
    if (sets(changes, "nodes")) {
      result.machine.nodes_per_host = 1;
    }
    return result;
  }
  /// What a job takes around its tasks: as it was, and as many messages more or less as nodes tell
  /// each other that it is over.
  [[nodiscard]] double job_seconds(const replay::SimulatedMachine& now) const {
    const replay::SimulatedMachine& was = was_.description.machine;
    const auto agreeing_s = [](const replay::SimulatedMachine& machine) {
      if (machine.nodes < 2) return 0.0;
      const replay::Way& way = machine.way(NodeId{0}, NodeId{1});
      constexpr double messages = 2;  // to node 0 and back
      // The progress threads there and here. On 64 cores 2 and 4 nodes had 0.1 ms more around a job
      // than one, a waking 30 to 50 us.
      constexpr double wakings = 2;
      return messages * (way.latency_s + 2 * machine.message_s) + wakings * machine.wake_s;
    };
    const double first_s = now.wakings.empty() ? now.wake_s : median(now.wakings.back().seconds);
    return std::max(0.0, around_s_ - first_s - agreeing_s(was) + agreeing_s(now));
  }
  /// The run's workers were not alike; on as many of as many nodes each is as it was there. A run
  /// that is repeated has the rest in its tasks, whichever worker takes them.
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
  /// A grid of other nodes than the run's follows from their number.
  static void drop_grid(Config& config, const std::vector<std::string>& of_problem,
                        const MachineDescription& machine) {
    if (sets(of_problem, "layout.grid") || !config.layout.grid) return;
    const config::Grid& grid = *config.layout.grid;
    if (grid.rows * grid.columns != machine.machine.nodes) config.layout.grid.reset();
  }

  const ReplayOptions& options_;
  replay::RunTrace run_;
  json about_;
  ThisMachine here_;
  RecordedMachine was_;
  bool crowd_is_unknown_ = false;  ///< of a case so far
  double around_s_ = 0;            ///< of the job, before and behind its tasks
  double recorded_s_ = 0;
  std::string why_unlike_;          ///< why_unlike_a_prediction() of this run
  std::optional<double> actual_s_;  ///< of the run that was made with the changes
  Settings actual_settings_;        ///< likewise
  double stolen_share_ = 0;         ///< of its workers' time
  std::vector<std::shared_ptr<const Rehearsed>> rehearsals_;  ///< of the cases that needed one
  SimulatedFactorization recorded_what_;
  std::shared_ptr<const RecordedTimes> recorded_;
};

}  // namespace

int replay_run(const ReplayOptions& options, Results& results) {
  if (options.actual && (!options.sweeps.empty() || options.policies)) {
    throw Error(ErrorCode::usage, "--actual is a run of one case, not of --sweep or --policies");
  }
  FileUses files;
  files.reads_run("the run", options.run);
  if (options.actual) files.reads_run("--actual", *options.actual);
  files.reads_machine_file(std::nullopt);
  add_files(files, options);
  files.check_distinct();
  files.check_writable();
  RecordedRun run(options);
  for (const std::string& damage : run.damages()) print(fmt::format("not whole: {}\n", damage));
  predict(run, options, results);
  return run.damages().empty() ? 0 : 1;
}

}  // namespace heddle
