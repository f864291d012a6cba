#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/simulation/machine_description.hpp"
#include "apps/simulation/measured_clock.hpp"
#include "apps/simulation/simulated_program.hpp"
#include "config/config.hpp"
#include "node-runtime/machine/prepare.hpp"
#include "replay/simulation/simulator.hpp"

/// What `heddle simulate` and `heddle replay` have in common.
namespace heddle {

/// Overrides of the machine ("machine.nodes=4"), without the prefix, and the others.
[[nodiscard]] std::pair<std::vector<std::string>, std::vector<std::string>> split_overrides(
    const std::vector<std::string>& overrides);

/// This machine: its workers, and what `heddle tune` has measured of links. Measures OpenBLAS's
/// kernel sets where nobody has so far.
class ThisMachine {
 public:
  explicit ThisMachine(const Config& config);

  [[nodiscard]] MachineDescription description() const;
  [[nodiscard]] const Tuning& tuning() const { return profile_.tuning; }
  /// Loads OpenBLAS.
  [[nodiscard]] std::unique_ptr<MeasuredClock> clock() const;

 private:
  MachineProfile profile_;
  tuning::Workers workers_;
};

/// What is to be predicted.
struct PredictionCase {
  config::Problem problem;  ///< whose matrix is generated: nothing is read
  config::Layout layout;
  MachineDescription machine;
  Tuning tuning;  ///< what sizes follow from, where the kernels are this machine's
  std::int32_t window = 8192;
};

/// The problem of a configuration on a machine. Throws Error(usage) for a matrix from a file, and
/// for devices without rates of kernels.
[[nodiscard]] PredictionCase prediction_case(const Config& config, const std::string& source,
                                             MachineDescription machine, const Tuning& tuning);

/// A problem's factorization, cut for its machine.
struct CutProblem {
  SimulatedFactorization what;
  std::string cut;        ///< "192 x 192, inner 32"
  config::Layout layout;  ///< as it was chosen, nothing left open
  Distribution distribution;
};
[[nodiscard]] CutProblem cut_problem(const PredictionCase& one);

struct Prediction {
  CutProblem problem;
  replay::SimulationResult result;
  std::string kernels;  ///< where their times come from
  double simulated_in_s = 0;
  double busy = 0;          ///< of all workers' time
  double busy_devices = 0;  ///< of all devices'
};

/// `kernels` says where the clock's times come from.
[[nodiscard]] Prediction predict(const PredictionCase& one, KernelClock& clock, std::string kernels,
                                 bool traces);

/// For a terminal of 80 columns; ends with a line break.
[[nodiscard]] std::string prediction_table(const PredictionCase& one, const Prediction& prediction);
[[nodiscard]] nlohmann::json to_json(const PredictionCase& one, const Prediction& prediction);

/// A run's folder; `about` is the run's report.
void write_simulated_run(std::vector<trace::NodeTrace>& traces, const std::string& folder,
                         nlohmann::json about);

}  // namespace heddle
