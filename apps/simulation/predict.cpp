#include "apps/simulation/predict.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <fmt/core.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>
#include <thread>
#include <utility>

#include "apps/report.hpp"
#include "apps/simulation/sweep.hpp"
#include "apps/simulation/sweep_table.hpp"
#include "apps/terminal.hpp"
#include "base/error.hpp"
#include "node-runtime/topology/cpu.hpp"
#include "node-runtime/trace/run_folder.hpp"

namespace heddle {
namespace {

/// The runs of all cases, those of one with as many seeds as make a difference: where that is
/// one, with traces if they are wanted. Whichever thread is free takes the next one.
class Runs {
 public:
  Runs(std::vector<std::unique_ptr<PreparedPrediction>>& prepared, const PredictionOptions& options)
      : prepared_(prepared), options_(options), runs_(prepared.size()) {
    for (std::size_t i = 0; i < prepared.size(); ++i) {
      if (prepared[i] == nullptr) continue;
      runs_[i].resize(static_cast<std::size_t>(repeats_of(*prepared[i])));
      for (std::size_t seed = 0; seed < runs_[i].size(); ++seed) order_.push_back({i, seed});
    }
    failures_.resize(order_.size());
  }
  Runs(const Runs&) = delete;
  Runs& operator=(const Runs&) = delete;
  ~Runs() = default;

  void simulate() {
    const auto cores = static_cast<std::size_t>(CpuTopology::detect().compute_thread_count());
    std::vector<std::jthread> threads;
    for (std::size_t t = 1; t < std::min(cores, order_.size()); ++t) {
      threads.emplace_back([this] { work(); });
    }
    work();
  }

  /// Once all threads are done. Throws what stopped a run of that case.
  [[nodiscard]] Prediction result(std::size_t number) {
    for (std::size_t at = 0; at < order_.size(); ++at) {
      if (order_[at].number == number && failures_[at]) std::rethrow_exception(failures_[at]);
    }
    std::vector<Prediction>& runs = runs_[number];
    return runs.size() == 1 ? std::move(runs.front()) : middle_of(std::move(runs));
  }

 private:
  struct Place {
    std::size_t number = 0;  ///< of the case
    std::size_t seed = 0;    ///< from the first one on
  };

  [[nodiscard]] std::int32_t repeats_of(const PreparedPrediction& one) const {
    if (!one.draws()) return 1;
    return options_.repeat.value_or(options_.seed ? 1 : one.usual_repeats());
  }

  void work() {
    for (;;) {
      const std::size_t at = next_.fetch_add(1, std::memory_order_relaxed);
      if (at >= order_.size()) return;
      const auto [number, seed] = order_[at];
      try {
        const bool traces = options_.trace.has_value() && runs_[number].size() == 1;
        runs_[number][seed] = prepared_[number]->run(options_.seed.value_or(1) + seed, traces);
      } catch (...) {
        failures_[at] = std::current_exception();
      }
    }
  }

  std::vector<std::unique_ptr<PreparedPrediction>>& prepared_;
  const PredictionOptions& options_;
  std::vector<std::vector<Prediction>> runs_;  ///< by case and seed
  std::vector<Place> order_;
  std::vector<std::exception_ptr> failures_;
  std::atomic<std::size_t> next_ = 0;
};

void check_repeat(const std::vector<std::unique_ptr<PreparedPrediction>>& prepared,
                  const PredictionOptions& options) {
  const auto draws = [](const auto& one) { return one != nullptr && one->draws(); };
  if (options.repeat.value_or(1) == 1 || std::ranges::any_of(prepared, draws)) return;
  throw Error(ErrorCode::usage,
              "--repeat: nothing is drawn, so all runs are alike; set machine.kernels.noise");
}

void predict_one(PredictionSubject& subject, const PredictionOptions& options, Results& results) {
  const PredictionCase one = subject.with(SplitOverrides(options.overrides));
  std::vector<std::unique_ptr<PreparedPrediction>> prepared;
  prepared.push_back(std::make_unique<PreparedPrediction>(one, *subject.clock(one)));
  check_repeat(prepared, options);
  Runs runs(prepared, options);
  runs.simulate();
  Prediction prediction = runs.result(0);
  print(prediction_table(one, prediction) + subject.more(prediction) + subject.limits());
  nlohmann::json report = to_json(one, prediction);
  subject.add_to(report);
  if (options.trace) {
    if (prediction.repeats) {  // the one in the middle, once more
      prediction.result.traces = prepared.front()->run(prediction.seed, true).result.traces;
    }
    write_simulated_run(one, prediction, *options.trace, report,
                        [&](const std::string& path) { return results.stage(path); });
  }
  if (options.report) results.add_text(*options.report, json_text(report));
  results.commit();
  if (options.trace) {
    const std::size_t nodes = prediction.result.traces.size();
    trace::remove_node_files(*options.trace, NodeId{static_cast<std::int32_t>(nodes)});
  }
}

/// Asks the clocks, case by case. What is refused keeps the reason.
std::vector<std::unique_ptr<PreparedPrediction>> prepare(PredictionSubject& subject,
                                                         const PredictionOptions& options,
                                                         const Sweep& sweep,
                                                         std::vector<SweptCase>& cases) {
  std::vector<std::unique_ptr<PreparedPrediction>> prepared;
  for (std::size_t i = 0; i < sweep.cases.size(); ++i) {
    std::vector<std::string> overrides = options.overrides;
    const std::vector<std::string> own = sweep.overrides(i);
    overrides.insert(overrides.end(), own.begin(), own.end());
    prepared.emplace_back();
    SweptCase& one = cases.emplace_back();
    one.values = sweep.cases[i];
    try {
      const PredictionCase what = subject.with(SplitOverrides(overrides));
      prepared.back() = std::make_unique<PreparedPrediction>(what, *subject.clock(what));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::usage) throw;
      one.refused = error.what();
    }
  }
  return prepared;
}

void predict_many(PredictionSubject& subject, const PredictionOptions& options, const Sweep& sweep,
                  Results& results) {
  std::vector<SweptCase> cases;
  auto prepared = prepare(subject, options, sweep, cases);
  if (std::ranges::any_of(prepared, [](const auto& one) { return one != nullptr; })) {
    check_repeat(prepared, options);
  }
  Runs runs(prepared, options);
  runs.simulate();
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (prepared[i] == nullptr) continue;
    try {
      cases[i].prediction = runs.result(i);
      cases[i].what = prepared[i]->what();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::usage) throw;
      cases[i].refused = error.what();
    }
  }
  if (std::ranges::none_of(cases,
                           [](const SweptCase& one) { return one.prediction.has_value(); })) {
    throw Error(ErrorCode::usage, cases.front().refused);
  }
  fill_in(sweep, cases);
  print(sweep_table(sweep, cases) + subject.limits());
  nlohmann::json report = to_json(sweep, cases);
  subject.add_to(report);
  if (options.report) results.add_text(*options.report, json_text(report));
  if (options.picture) results.add_text(*options.picture, sweep_picture(sweep, cases));
  results.commit();
}

}  // namespace

bool sets(const std::vector<std::string>& overrides, std::string_view key) {
  return std::ranges::any_of(overrides, [&](const std::string& text) {
    const std::string path = text.substr(0, text.find('='));
    return key == path || key.starts_with(path + ".");
  });
}

SplitOverrides::SplitOverrides(const std::vector<std::string>& overrides) {
  constexpr std::string_view of_machine = "machine.";
  for (const std::string& text : overrides) {
    if (text.starts_with(of_machine)) {
      machine.push_back(text.substr(of_machine.size()));
    } else {
      problem.push_back(text);
    }
  }
}

namespace {

/// In the cases of a sweep, or in one of them.
bool has_devices(PredictionSubject& subject, const PredictionOptions& options) {
  const auto is_of_devices = [](const std::string& text) {
    return text.starts_with("machine.devices=");
  };
  if (std::ranges::any_of(options.sweeps, is_of_devices)) return true;
  try {
    return subject.with(SplitOverrides(options.overrides)).machine.machine.devices > 0;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::usage) throw;
    return false;  // what is wrong with it is said in the rows
  }
}

}  // namespace

void add_files(FileUses& files, const PredictionOptions& options) {
  if (options.machine) files.reads("--machine", *options.machine);
  if (options.report) files.writes("--report", *options.report);
  if (options.picture) files.writes("--picture", *options.picture);
  if (options.trace) files.writes_run("--trace", *options.trace);
}

void predict(PredictionSubject& subject, const PredictionOptions& options, Results& results) {
  if (options.trace && options.trace->ends_with(".json")) {
    throw Error(ErrorCode::usage,
                fmt::format("--trace {}: what is simulated is written as a run's folder; choose a "
                            "name for one, and heddle export makes files for viewers of it",
                            *options.trace));
  }
  if (options.trace) check_holds_no_recorded_run(*options.trace);
  const bool devices = options.policies && has_devices(subject, options);
  const Sweep sweep = plan_sweep(options.sweeps, options.policies, devices);
  if (sweep.empty()) {
    if (options.picture) {
      throw Error(ErrorCode::usage, "--picture draws what --sweep or --policies compares");
    }
    return predict_one(subject, options, results);
  }
  if (options.trace) {
    throw Error(ErrorCode::usage, "--trace writes one run, not those of --sweep or --policies");
  }
  predict_many(subject, options, sweep, results);
}

}  // namespace heddle
