#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <span>
#include <unordered_set>

#include "kernels/case_key.hpp"
#include "node-runtime/protocol/types.hpp"

namespace heddle {

/// A node's tasks whose kernels have a fine-grain form, each case of each of its places once: a few
/// for a job, as most of its tiles have one shape. One thread at a time.
class DividedCases {
 public:
  struct Case {
    CaseKey of;
    PlaceId place;  ///< where its main output lives

    friend bool operator==(const Case&, const Case&) = default;
  };
  struct Hash {
    std::size_t operator()(const Case& one) const {
      return CaseKey::Hash{}(one.of) ^ std::hash<PlaceId>{}(one.place);
    }
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
