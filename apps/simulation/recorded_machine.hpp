#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "apps/simulation/machine_description.hpp"
#include "apps/simulation/this_machine.hpp"
#include "replay/message_ways.hpp"
#include "replay/run.hpp"
#include "replay/runtime_costs.hpp"

namespace heddle {

/// The machine of a recorded run, as its trace and its report tell of it.
struct RecordedMachine {
  MachineDescription description;  ///< what nobody tells is this machine's
  replay::MessageWays ways;
  replay::RuntimeCosts costs;
  std::string cpu_model;  ///< empty: nobody has said it

  /// Messages' line of a table; empty where there were none.
  [[nodiscard]] std::string messages_text() const;
  /// What was learned from the run, in microseconds and GB/s; null where it does not tell.
  [[nodiscard]] nlohmann::json to_json() const;
};

/// `about` is the run's report, `window` what it had.
[[nodiscard]] RecordedMachine recorded_machine(const replay::RunTrace& run, std::int32_t job,
                                               const nlohmann::json& about, std::int32_t window,
                                               ThisMachine& here);

}  // namespace heddle
