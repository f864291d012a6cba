#pragma once

#include <yaml-cpp/yaml.h>

#include "node-runtime/machine/yaml_reader.hpp"
#include "node-runtime/topology/links/gpu_topology.hpp"

namespace heddle {

/// The topology that a document describes; throws Error(usage) with all that is wrong.
[[nodiscard]] GpuTopology topology_of(const YamlReader& yaml, const YAML::Node& root);

}  // namespace heddle
