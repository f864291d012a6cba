#include "apps/simulation/recorded_configuration.hpp"

#include <algorithm>
#include <array>
#include <fmt/core.h>
#include <span>
#include <string>
#include <vector>

#include "apps/simulation/configuration_keys.hpp"
#include "base/error.hpp"
#include "config/options.hpp"

namespace heddle {
namespace {

using nlohmann::json;

using Keys = std::span<const std::string_view>;

constexpr std::array<std::string_view, 2> taken_keys{"runtime.cpu_workers",
                                                     "runtime.devices.backend"};
constexpr std::array<std::string_view, 3> device_keys{
    "runtime.devices.per_node", "runtime.devices.memory", "runtime.devices.streams"};
constexpr std::array<std::string_view, 3> part_keys{"layout.strip", "layout.small",
                                                    "layout.hierarchy"};
constexpr std::array<std::string_view, 4> of_parts{
    "layout.tile", "runtime.placement", "runtime.devices.backend", "runtime.devices.per_node"};
constexpr std::array<std::string_view, 3> panel_keys{"layout.inner", "layout.virtual",
                                                     "layout.tree"};
constexpr std::array<std::string_view, 7> of_panels{
    "problem.factorization", "problem.matrix.n",        "problem.matrix.m",        "layout.tile",
    "runtime.cpu_workers",   "runtime.devices.backend", "runtime.devices.per_node"};
constexpr std::array<std::string_view, 3> machine_keys{"devices", "nodes", "cpu_workers"};

/// Keys that follow from others, where they are `auto`; and from the machine, all of them.
struct Following {
  Keys keys;
  Keys of_run;
  Keys of_machine;
};
constexpr std::array<Following, 4> followings{{{taken_keys, {}, {}},
                                               {device_keys, Keys(taken_keys).last(1), {}},
                                               {part_keys, of_parts, Keys(machine_keys).first(1)},
                                               {panel_keys, of_panels, machine_keys}}};

[[noreturn]] void refuse(const replay::RunTrace& run, const std::string& why) {
  throw Error(ErrorCode::usage,
              fmt::format("'{}' does not say what was factorized, and how: {}", run.source, why));
}

/// The size of the recorded run's matrix, as the size of a generated one: a matrix file cannot be
/// read again, and values change no time.
json size_of(const std::string& factorization, const json& about) {
  const auto m = about.at("m").get<std::int64_t>();
  const auto n = about.at("n").get<std::int64_t>();
  json matrix{{"generate", factorization == "qr" ? "random" : "spd"}, {"n", n}};
  if (m != n) matrix["m"] = m;
  return matrix;
}

}  // namespace

RecordedConfiguration::RecordedConfiguration(const replay::RunTrace& run)
    : source_(run.source), about_(json::parse(run.about)), given_(json::parse(run.configuration)) {
  if (!about_.is_object()) {
    const bool has_first = std::ranges::binary_search(run.nodes, NodeId{0});
    const std::string why =
        has_first ? "node 0 has written nothing of it; only what heddle solve has recorded can be "
                    "replayed"
                  : "the trace of node 0, which would, is not there";
    refuse(run, run.collectives.empty()
                    ? why
                    : why +
                          "; operations of groups are simulated by 'heddle bench collectives "
                          "--machine'");
  }
  if (!about_.contains("resolved")) {
    refuse(run,
           "it was recorded by an older heddle, whose traces do not keep the whole configuration "
           "of a run; record the run once more");
  }
  try {
    resolved_ = about_.at("resolved");
    const auto factorization = resolved_.at("problem").at("factorization").get<std::string>();
    resolved_["problem"] = {{"factorization", factorization},
                            {"matrix", size_of(factorization, about_)}};
    resolved_["machine"] = "auto";
  } catch (const json::exception& error) {
    refuse(run, error.what());
  }
}

bool RecordedConfiguration::was_open(std::string_view key) const {
  return value_of(given_, key) == "auto";
}

Config RecordedConfiguration::as_it_was() const {
  return Config::from_text(resolved_.dump(), source_);
}

Config RecordedConfiguration::with(const SplitOverrides& changes, bool on_another_machine) const {
  json all = resolved_;
  for (const Following& one : followings) {
    const auto is_changed = [](const std::vector<std::string>& overrides) {
      return [&](std::string_view cause) { return sets(overrides, cause); };
    };
    if (!on_another_machine && std::ranges::none_of(one.of_run, is_changed(changes.problem)) &&
        std::ranges::none_of(one.of_machine, is_changed(changes.machine))) {
      continue;
    }
    for (const std::string_view key : one.keys) {
      if (was_open(key)) all[json::json_pointer(config::json_path(key))] = "auto";
    }
  }
  return Config::from_text(all.dump(), source_, changes.problem);
}

}  // namespace heddle
