#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "apps/simulation/machine_description.hpp"
#include "apps/simulation/simulated_program.hpp"
#include "config/config.hpp"
#include "config/problem.hpp"
#include "node-runtime/machine/machine_file.hpp"
#include "replay/simulation/course.hpp"
#include "replay/simulation/noise.hpp"
#include "replay/simulation/priorities.hpp"
#include "replay/simulation/simulator.hpp"

/// One prediction: what `heddle simulate` and `heddle replay` have in common.
namespace heddle {

/// What is to be predicted.
struct PredictionCase {
  Config config;  ///< with a problem, whose matrix is generated: nothing is read
  MachineDescription machine;
  /// What sizes follow from, where the kernels are this machine's; of devices one kind at most.
  Tuning tuning;
  /// What is predicted is a run that has been recorded, nothing changed; null otherwise.
  std::shared_ptr<const replay::Course> course{};
  /// Paces of a recorded run's workers. Each simulated worker is dealt one of them
  /// (replay::dealt_paces), or one of the paces that the clock has seen: of all the case's workers,
  /// or of as many as the run had. Empty: workers are as the machine says.
  std::vector<double> paces_of_run{};

  [[nodiscard]] const config::Problem& problem() const { return config.require_problem(); }
  [[nodiscard]] std::int32_t window() const {
    return static_cast<std::int32_t>(config.runtime.window.value_or(8192));
  }
  /// `auto` goes by measurements of GPUs and their host, which other machines lack.
  [[nodiscard]] config::Placement placement() const {
    return config.runtime.placement.value_or(config::Placement::fixed);
  }
  /// CPU workers may run devices' tasks.
  [[nodiscard]] bool lends() const {
    return placement() == config::Placement::dynamic && machine.machine.devices > 0;
  }

  [[nodiscard]] bool is_cholesky() const {
    return problem().factorization == config::Factorization::cholesky;
  }
  /// Bytes of the matrix that are stored: half of a symmetric one.
  [[nodiscard]] double matrix_bytes() const {
    const auto rows = static_cast<double>(problem().matrix.rows());
    const auto columns = static_cast<double>(problem().matrix.n);
    return (is_cholesky() ? 0.5 : 1) * sizeof(double) * rows * columns;
  }
};

/// The problem of a configuration on a machine. Throws Error(usage) for a matrix from a file.
[[nodiscard]] PredictionCase prediction_case(Config config, MachineDescription machine,
                                             const Tuning& tuning);

/// A problem's factorization, cut for its machine.
struct CutProblem {
  SimulatedFactorization what;
  std::string cut;        ///< "192 x 192, inner 32"
  config::Layout layout;  ///< as it was chosen, nothing left open
  Distribution distribution;
};
[[nodiscard]] CutProblem cut_problem(const PredictionCase& one);
/// The configuration of a case with what was chosen for `auto`, as a run's trace keeps it.
[[nodiscard]] Config resolved(const PredictionCase& one, const CutProblem& problem);

/// No schedule of the same tasks on their places is shorter than these; where they may be lent, on
/// any places that they may run on.
struct PredictionBounds {
  double area_s = 0;  ///< all workers, or all devices, busy all the time
  double node_s = 0;  ///< the same on the node with most work
  /// Nothing: more tasks than are kept, or what they take is drawn.
  std::optional<double> critical_path_s{};
  [[nodiscard]] double seconds() const;
};

/// Several runs that differ in what was drawn.
struct Repeats {
  std::uint64_t first_seed = 1;
  std::int32_t count = 0;
  double low_s = 0;   ///< 5 of 100 were shorter
  double high_s = 0;  ///< 5 of 100 were longer
};

struct Prediction {
  CutProblem problem;
  replay::SimulationResult result;
  std::string kernels;  ///< where their times come from
  PredictionBounds bounds;
  double simulated_in_s = 0;
  std::uint64_t peak_bytes = 0;  ///< of the process so far
  double busy = 0;               ///< of all workers' time
  double busy_devices = 0;       ///< of all devices'
  std::uint64_t seed = 1;
  /// Paces that were dealt to workers, by node, and where the paces come from: "as the run's did".
  std::vector<double> paces{};
  std::string paces_source{};
  std::optional<Repeats> repeats{};  ///< this is the one in the middle of them

  [[nodiscard]] double gflops() const { return problem.what.flops / result.seconds * 1e-9; }
  /// How near it comes to the largest bound: 1 is as good as can be.
  [[nodiscard]] double share_of_bound() const { return bounds.seconds() / result.seconds; }
};

/// A case whose program has been walked once, so that all times of kernels are known, and the graph
/// of its tasks. Throws Error(usage) when the problem does not fit its machine.
class PreparedPrediction {
 public:
  /// The clock is asked here, and never again.
  PreparedPrediction(PredictionCase one, KernelClock& clock);
  PreparedPrediction(const PreparedPrediction&) = delete;
  PreparedPrediction& operator=(const PreparedPrediction&) = delete;
  ~PreparedPrediction() = default;

  [[nodiscard]] const PredictionCase& what() const { return one_; }
  /// The seed matters.
  [[nodiscard]] bool draws() const;
  /// With how many seeds to simulate where nobody has said it: with some where workers of a run are
  /// drawn, which a seed changes by several per cent, and the tasks take a moment.
  [[nodiscard]] std::int32_t usual_repeats() const;
  /// Simulates. May be called at the same time by several threads.
  [[nodiscard]] Prediction run(std::uint64_t seed, bool traces);

 private:
  [[nodiscard]] bool draws_workers() const;
  [[nodiscard]] bool draws_wakings() const;
  void draw_from(const KernelClock& clock);
  void take_paces(const KernelClock& clock);
  void add_bounds(Prediction& prediction) const;

  PredictionCase one_;
  CutProblem problem_;
  SimulatedProgram program_;
  std::string kernels_;
  std::optional<double> critical_path_s_;
  std::int64_t tasks_ = 0;  ///< at least
  replay::PriorityOf by_path_;
  /// One of them is dealt, by the seed; none: workers are as the machine says.
  std::vector<std::vector<double>> paces_;
  std::string paces_source_;
  std::vector<replay::Spread> spreads_;  ///< by kind; empty: all tasks of a kind take the same
};

/// The run with the median time among runs with several seeds, and how the others lie around it.
[[nodiscard]] Prediction middle_of(std::vector<Prediction> runs);

/// "Cholesky of 8000 x 8000", "window 8192, priorities program", and "4 as a grid of 2 x 2; 8
/// workers, 3 devices each".
[[nodiscard]] std::string problem_name(const PredictionCase& one);
[[nodiscard]] std::string runtime_name(const PredictionCase& one);
[[nodiscard]] std::string nodes_name(const PredictionCase& one, const Prediction& prediction);

/// For a terminal of 80 columns; ends with a line break.
[[nodiscard]] std::string prediction_table(const PredictionCase& one, const Prediction& prediction);
[[nodiscard]] nlohmann::json to_json(const PredictionCase& one, const Prediction& prediction);

/// Throws Error(usage) where the folder holds what a real run has recorded, which nobody could
/// record again.
void check_holds_no_recorded_run(const std::string& folder);
/// The nodes' files of a run's folder, which is made; `about` is the run's report. `stage` says
/// where a file is to be written until it gets its name.
void write_simulated_run(const PredictionCase& one, Prediction& prediction,
                         const std::string& folder, nlohmann::json about,
                         const std::function<std::string(const std::string&)>& stage);

}  // namespace heddle
