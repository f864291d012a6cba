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
/// each the first time that it needs them. Collective, in the order of other jobs.
class WarmUp {
 public:
  WarmUp() = default;
  WarmUp(const WarmUp&) = delete;
  WarmUp& operator=(const WarmUp&) = delete;
  /// Waits like end(): a node must not stop while others need its part of a job.
  ~WarmUp();

  /// Starts the job that `make` returns, on matrices that it makes from `specs`; does nothing where
  /// there are no devices, or on some node `spare` bytes of a device or its memory do not suffice.
  void begin(Node& node, std::uint64_t spare, const std::vector<MatrixSpec>& specs,
             const std::function<JobSpec()>& make);
  /// Waits for it; how it ends does not matter. Throws what made the node fail meanwhile.
  void end();

  /// Tile columns that let every device of all nodes run every kind of task.
  [[nodiscard]] static std::int64_t columns_for(const Distribution& distribution);

 private:
  std::optional<Job> job_;
};

}  // namespace heddle
