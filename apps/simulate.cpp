#include "apps/simulate.hpp"

#include <cstdint>
#include <fmt/core.h>
#include <memory>

#include "apps/simulation/predict.hpp"
#include "apps/simulation/this_machine.hpp"
#include "base/error.hpp"

namespace heddle {
namespace {

/// The problem of a file, on the machine of another one, or on this one.
class ProblemOfFile final : public PredictionSubject {
 public:
  explicit ProblemOfFile(const SimulateOptions& options)
      : options_(options),
        here_(Config::from_file(options.file, SplitOverrides(options.overrides).problem)) {}

  [[nodiscard]] PredictionCase with(const SplitOverrides& changes) override {
    const Config config = Config::from_file(options_.file, changes.problem);
    // A machine of a file has the devices that the file gives it.
    MachineDescription defaults = here_.description();
    if (!options_.machine) {
      here_.add_devices(config.runtime.devices, defaults);
      defaults.machine.wake_s = here_.waking().wake_s;
    }
    if (config.runtime.cpu_workers) {
      defaults.machine.cpu_workers = static_cast<std::int32_t>(*config.runtime.cpu_workers);
    }
    const MachineDescription machine =
        options_.machine ? read_machine_description(options_.machine, changes.machine, defaults)
                         : here_.with_reading(changes.machine, defaults);
    if (machine.machine.devices > 0 && machine.device.empty()) {
      throw Error(ErrorCode::usage,
                  fmt::format("machine '{}' has devices, but no rates of kernels on them "
                              "(kernels.device)",
                              machine.machine.name));
    }
    return prediction_case(config, options_.file, machine, here_.tuning(machine),
                           read_policies(changes.policies));
  }
  [[nodiscard]] std::shared_ptr<KernelClock> clock(const PredictionCase& one) override {
    return here_.clock_of(one.machine, one.matrix_bytes());
  }

 private:
  const SimulateOptions& options_;
  ThisMachine here_;
};

}  // namespace

int simulate_problem(const SimulateOptions& options) {
  ProblemOfFile problem(options);
  predict(problem, options);
  return 0;
}

}  // namespace heddle
