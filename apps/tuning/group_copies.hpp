#pragma once

#include <functional>
#include <string>
#include <vector>

#include "node-runtime/machine/measurements.hpp"
#include "node-runtime/node.hpp"

namespace heddle::tuning {

/// How many copies of ranks that share a buffer on a device are best staged, for each operation and
/// some sizes: all nodes' ranks on the first device of each (002 section 5.2.1). Empty where nodes
/// are not on one host with devices, or are one, or more than 16. Ends after about `seconds`, with
/// the rows that it has by then. Collective; the result is node 0's.
[[nodiscard]] std::vector<StagedCopies> measure_group_copies(
    const Node& node, double seconds, const std::function<void(const std::string& what)>& tell);

}  // namespace heddle::tuning
