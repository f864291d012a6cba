#pragma once

#include "node-runtime/machine/measurements.hpp"
#include "node-runtime/machine/yaml_reader.hpp"

/// The part `measured` of a machine file.
namespace heddle {

[[nodiscard]] Measurements read_measurements(const YamlReader& reader, const YAML::Node& node);

/// A map with all that is there.
void write_measurements(YAML::Emitter& out, const Measurements& measured);

}  // namespace heddle
