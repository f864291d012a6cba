#pragma once

#include <string>

#include "replay/collectives/collective_machine.hpp"

namespace heddle {

/// Reads a machine on which collectives are simulated, such as config/machines/psg.yaml. Needed are
/// `heddle_collective_machine`, `hosts`, and the way of each two ranks that there are; other keys
/// may be left out. Throws Error(usage) that names the place, what was expected and what is wrong;
/// for a machine of more than 10,000 ranks, too.
[[nodiscard]] replay::CollectiveMachine read_collective_machine(const std::string& path);

}  // namespace heddle
