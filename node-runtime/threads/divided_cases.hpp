#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <span>
#include <unordered_set>

#include "kernels/fine/fine_tasks.hpp"
#include "kernels/kernel_case.hpp"
#include "node-runtime/protocol/types.hpp"

namespace heddle {

/// A node's tasks whose kernels have a fine-grain form, each case of each of its places once: a few
/// for a job, as most of its tiles have one shape. One thread at a time.
class DividedCases {
 public:
  struct Case {
    const Kernel* kernel = nullptr;
    KernelParameters parameters;
    PlaceId place;  ///< where its main output lives
    std::size_t operand_count = 0;
    std::array<OperandShape, FineTask::accesses_max> shapes;  ///< zeros behind the last one

    [[nodiscard]] KernelCase what() const {
      return {kernel, parameters, {shapes.data(), operand_count}};
    }
    friend bool operator==(const Case&, const Case&) = default;
  };
  struct Hash {
    std::size_t operator()(const Case& one) const;
  };
  using ShapeOf = std::function<OperandShape(protocol::TileId)>;

  /// A task of the node's. One that is like the last one of its kernel costs next to nothing.
  void add(const Kernel& kernel, const KernelParameters& parameters,
           std::span<const protocol::Access> accesses, const ShapeOf& shape_of);
  [[nodiscard]] const std::unordered_set<Case, Hash>& all() const { return all_; }

 private:
  std::unordered_set<Case, Hash> all_;
  /// By kernel: thousands of tasks are alike, and most follow such a one.
  std::array<Case, 16> last_{};
};

}  // namespace heddle
