#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "node-runtime/topology/links/gpu_topology.hpp"

namespace heddle {

/// Reads a topology: the name of a shipped one (`dgx-1v`; shipped_topologies() lists them), or the
/// path of a YAML file. A path has a '/' or a '.'; a name has neither. Throws Error(usage) with a
/// line for each mistake, which names the file, its line and column.
[[nodiscard]] GpuTopology read_topology(const std::string& name_or_path);

/// As read_topology(), from the text of a file. `source`: its name, for messages.
[[nodiscard]] GpuTopology topology_from_yaml(const std::string& text, const std::string& source);

/// Names of the topologies that come with heddle, in order.
[[nodiscard]] std::vector<std::string_view> shipped_topologies();

}  // namespace heddle
