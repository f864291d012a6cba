#include "apps/simulation/configuration_keys.hpp"

#include <algorithm>
#include <array>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.hpp"
#include "config/config_error.hpp"
#include "config/effective.hpp"
#include "config/options.hpp"
#include "config/words.hpp"

namespace heddle {
namespace {

using nlohmann::json;
using enum KeyUse;

constexpr std::string_view size_only = "only the size of a matrix counts";
constexpr std::string_view factorization_only = "only the factorization is simulated";
constexpr std::string_view no_collectives = "a factorization has no operations of groups";
constexpr std::string_view no_emulated = "it is about emulated devices' copies between nodes";
constexpr std::string_view output_only = "it is about what a command writes";

constexpr std::array<ConfigurationKey, 60> keys{
    {{"problem.factorization", modelled, {}},
     {"problem.matrix.file", neutral, size_only},
     {"problem.matrix.generate", neutral, size_only},
     {"problem.matrix.n", modelled, {}},
     {"problem.matrix.m", modelled, {}},
     {"problem.matrix.condition", neutral, size_only},
     {"problem.matrix.seed", neutral, size_only},
     {"problem.matrix.range", neutral, size_only},
     {"problem.matrix.smoothness", neutral, size_only},
     {"problem.matrix.nugget", neutral, size_only},
     {"problem.matrix.rank", neutral, size_only},
     {"problem.matrix.distance", neutral, size_only},
     {"problem.rhs.file", neutral, factorization_only},
     {"problem.rhs.generate", neutral, factorization_only},
     {"problem.rhs.columns", neutral, factorization_only},
     {"problem.rhs.seed", neutral, factorization_only},
     {"problem.output.solution", neutral, factorization_only},
     {"problem.output.factor", neutral, factorization_only},
     {"problem.output.q", neutral, factorization_only},
     {"problem.verify", neutral, factorization_only},
     {"problem.overlap", neutral, factorization_only},
     {"layout.grid", modelled, {}},
     {"layout.tile", modelled, {}},
     {"layout.strip", modelled, {}},
     {"layout.small", modelled, {}},
     {"layout.hierarchy", modelled, {}},
     {"layout.inner", modelled, {}},
     {"layout.virtual", modelled, {}},
     {"layout.tree", modelled, {}},
     {"runtime.cpu_workers", modelled, {}},
     {"runtime.devices.backend", modelled, {}},
     {"runtime.devices.per_node", modelled, {}},
     {"runtime.devices.memory", modelled, {}},
     {"runtime.devices.streams", modelled, {}},
     {"runtime.devices.nodes_per_device", neutral, no_emulated},
     {"runtime.devices.turn_us", neutral, no_emulated},
     {"runtime.devices.links.rate", neutral, no_emulated},
     {"runtime.devices.links.latency_us", neutral, no_emulated},
     {"runtime.devices.links.switch_rate", neutral, no_emulated},
     {"runtime.devices.links.devices_per_switch", neutral, no_emulated},
     {"runtime.devices.links.switches_per_socket", neutral, no_emulated},
     {"runtime.window", modelled, {}},
     {"runtime.placement", modelled, {}},
     {"runtime.priorities", modelled, {}},
     {"runtime.messages.path", measured,
      "the times of messages are measured, not modelled by path"},
     {"runtime.messages.explain", neutral, output_only},
     {"runtime.messages.readers", modelled, {}},
     {"runtime.messages.device_memory", neutral, "it is memory that no task uses"},
     {"runtime.collectives.order", neutral, no_collectives},
     {"runtime.collectives.algorithm", neutral, no_collectives},
     {"runtime.collectives.copies", neutral, no_collectives},
     {"runtime.collectives.fragment", neutral, no_collectives},
     {"runtime.collectives.explain", neutral, output_only},
     {"runtime.watchdog_seconds", neutral, "it ends runs that make no progress"},
     {"runtime.silence_seconds", neutral, "it ends runs that have lost a node"},
     {"runtime.wait", measured, "the times to wake a thread are measured, not modelled"},
     {"machine", modelled, {}},
     {"logging.level", neutral, output_only},
     {"logging.file", neutral, output_only},
     {"trace.file", neutral, output_only}}};

std::string text_of(const json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// Keys that say the same as one of a machine.
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> said_twice{
    {{"runtime.cpu_workers", "cpu_workers"},
     {"runtime.devices.backend", "devices"},
     {"runtime.devices.per_node", "devices"},
     {"runtime.devices.memory", "device_memory"},
     {"runtime.devices.streams", "device_streams"},
     {"layout.inner", "inverse_block"}}};

std::optional<std::int64_t> count_of(const config::Devices& devices) {
  return devices.backend == config::DeviceBackend::none ? std::optional<std::int64_t>(0)
                                                        : devices.per_node;
}

}  // namespace

json value_of(const json& configuration, std::string_view path) {
  return configuration.value(json::json_pointer(config::json_path(path)), json());
}

std::span<const ConfigurationKey> configuration_keys() {
  return keys;
}

std::optional<KeyDifference> difference_of(const Config& one, const Config& other) {
  const json first = to_json(one);
  const json second = to_json(other);
  for (const ConfigurationKey& key : keys) {
    if (key.use == neutral || key.path == "machine") continue;
    const json a = value_of(first, key.path);
    const json b = value_of(second, key.path);
    if (a != b) return KeyDifference{key.path, text_of(a), text_of(b)};
  }
  return std::nullopt;
}

void check_measured_keys(const Config& wanted, const Config& measured) {
  const json values = to_json(wanted);
  const json known = to_json(measured);
  for (const ConfigurationKey& key : keys) {
    const json value = value_of(values, key.path);
    const json other = value_of(known, key.path);
    if (key.use != KeyUse::measured || value == other) continue;
    throw ConfigError({{wanted.name,
                        0,
                        0,
                        std::string(key.path),
                        fmt::format("{} cannot be simulated: {}; the times here are those of {}",
                                    text_of(value), key.why, text_of(other)),
                        {}}});
  }
}

std::vector<std::string> machine_changes(const Config& wanted, const Config& of_machine) {
  std::vector<std::string> changes;
  const auto add = [&](const char* key, const auto& get) {
    const auto value = get(wanted);
    if (value && value != get(of_machine)) changes.push_back(fmt::format("{}={}", key, *value));
  };
  add("cpu_workers", [](const Config& one) { return one.runtime.cpu_workers; });
  add("devices", [](const Config& one) { return count_of(one.runtime.devices); });
  add("device_memory", [](const Config& one) { return one.runtime.devices.memory; });
  add("device_streams", [](const Config& one) { return one.runtime.devices.streams; });
  // Of Cholesky on devices; QR has its own use for the key.
  add("inverse_block", [](const Config& one) { return one.layout.inner; });
  return changes;
}

void check_said_once(const SplitOverrides& changes) {
  for (const auto& [key, of_machine] : said_twice) {
    if (!sets(changes.problem, key) || !sets(changes.machine, of_machine)) continue;
    throw Error(ErrorCode::usage,
                fmt::format("'{}' and 'machine.{}' are set at once, and say the same of a node; "
                            "leave one out",
                            key, of_machine));
  }
}

void check_device_kind(const config::Devices& wanted, const MachineDescription& machine,
                       const SplitOverrides& changes) {
  using config::DeviceBackend;
  if (!wanted.backend || *wanted.backend == DeviceBackend::none) return;
  const std::string_view kind = name_of(*wanted.backend);
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::usage,
                fmt::format("runtime.devices.backend: {} cannot be simulated: {}", kind, why));
  };
  if (machine.machine.devices == 0) {
    if (wanted.per_node == 0 || sets(changes.machine, "devices")) return;
    refuse(
        fmt::format("machine '{}' has no devices; set machine.devices and rates of kernels on "
                    "them (kernels.device), or runtime.devices.backend to none",
                    machine.machine.name));
  }
  if (machine.device_backend != kind) {
    refuse(fmt::format("the devices of machine '{}' are of the kind {}", machine.machine.name,
                       machine.device_backend));
  }
}

}  // namespace heddle
