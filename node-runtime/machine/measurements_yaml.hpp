#pragma once

#include "node-runtime/machine/measurements.hpp"
#include "node-runtime/machine/yaml_reader.hpp"

/// The part `measured` of a machine file.
namespace heddle {

/// The kernel that `entry`'s key 'kernel' names, one of those that machines are measured by.
[[nodiscard]] const Kernel* read_measured_kernel(const YamlReader& reader, const YAML::Node& entry);

[[nodiscard]] Measurements read_measurements(const YamlReader& reader, const YAML::Node& node);

/// A map with all that is there.
void write_measurements(YAML::Emitter& out, const Measurements& measured);

}  // namespace heddle
