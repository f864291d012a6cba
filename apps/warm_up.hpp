#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "node-runtime/matrix.hpp"
#include "node-runtime/node.hpp"

namespace heddle {

/// A small factorization with tiles like those of the one to come, while the elements are read:
/// devices load kernels and libraries, choose products for the tiles' shapes and take workspaces,
/// each the first time that it needs them. Calls are collective, the destructor is not.
class WarmUp {
 public:
  /// Starts the job that `make` returns, on matrices that it makes from `specs`; does nothing where
  /// there are no devices, or on some node `spare` bytes of a device do not suffice.
  void begin(Node& node, std::uint64_t spare, const std::vector<MatrixSpec>& specs,
             const std::function<JobSpec()>& make);
  /// Waits for it; how it ends does not matter.
  void end();

  /// Tile columns that let every device of all nodes run every kind of task.
  [[nodiscard]] static std::int64_t columns_for(const Distribution& distribution);

 private:
  std::optional<Job> job_;
};

}  // namespace heddle
