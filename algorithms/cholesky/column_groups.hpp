#pragma once

#include <cstdint>
#include <vector>

#include "base/index.hpp"
#include "node-runtime/matrix.hpp"

/// The order of updates where the devices of a node do not hold its part of the matrix.
namespace heddle {

/// For each tile column the column whose priority its updates have: in core, itself. Out of core,
/// columns that fit into a device's memory together form a group: one panel updates all of them
/// before the next panel does, so each panel is copied to the device once for a group and not once
/// for a column.
using ColumnGroups = std::vector<TileColumn>;

/// How the tiles of a node share the memory of its devices.
struct MemoryUse {
  ColumnGroups groups;
  bool has_room = true;  ///< nothing is evicted, so that tiles may be fetched at any time

  /// JobSpec::priority_span.
  [[nodiscard]] std::int32_t priority_span() const;
};

/// For a node whose devices have `device_memory` bytes each; 0: no limit.
[[nodiscard]] MemoryUse use_of_memory(const Matrix<double>& a, NodeId node,
                                      std::uint64_t device_memory);

}  // namespace heddle
