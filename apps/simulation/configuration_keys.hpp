#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/simulation/machine_description.hpp"
#include "apps/simulation/subject.hpp"
#include "config/config.hpp"
#include "config/config_error.hpp"

/// What the keys of a configuration are to a simulation.
namespace heddle {

enum class KeyUse : std::uint8_t {
  modelled,  ///< the simulated time follows from it
  measured,  ///< it is in times that were measured, and can only be what it was then
  neutral,   ///< it changes no time of a factorization
};

struct ConfigurationKey {
  std::string_view path;
  KeyUse use;
  std::string_view why;  ///< it is not modelled; empty where it is
};

/// One for each leaf of the option table (config/options.hpp).
[[nodiscard]] std::span<const ConfigurationKey> configuration_keys();

/// The key's value in a configuration that to_json() wrote; null where it has no such key.
[[nodiscard]] nlohmann::json value_of(const nlohmann::json& configuration, std::string_view path);

/// A key that is not neutral in which two configurations differ.
struct KeyDifference {
  std::string_view path;
  std::string one;    ///< its value in the first one
  std::string other;  ///< in the second one
};
/// The first one in the order of the option table, or nothing. `machine` does not count: it names
/// measurements of the machine that simulates.
[[nodiscard]] std::optional<KeyDifference> difference_of(const Config& one, const Config& other);

/// Throws ConfigError that names the first `measured` key whose value is not that of `measured`,
/// with which times were measured.
void check_measured_keys(const Config& wanted, const Config& measured);

/// What a run that is wanted so takes of a machine that has what `of_machine` says, as overrides of
/// read_machine_description(). Keys that are open change nothing.
[[nodiscard]] std::vector<std::string> machine_changes(const Config& wanted,
                                                       const Config& of_machine);

/// Throws Error(usage) where overrides give a key of the configuration, and the key of the machine
/// that says the same.
void check_said_once(const SplitOverrides& changes);

/// Throws Error(usage) where the configuration wants another kind of devices than the machine has,
/// or some that it lacks; but for devices that a change of the machine has taken out.
void check_device_kind(const config::Devices& wanted, const MachineDescription& machine,
                       const SplitOverrides& changes);

}  // namespace heddle
