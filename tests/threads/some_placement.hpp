#pragma once

#include <atomic>

#include "node-runtime/scheduling/placement_policy.hpp"

namespace heddle::testing {

/// Lends by turns, whatever it costs, so that tiles go to and fro.
class SomePlacement final : public PlacementPolicy {
 public:
  /// Lends `4 - kept` of every four tasks.
  explicit SomePlacement(unsigned kept) : kept_(kept) {}

  [[nodiscard]] bool may_lend(double /*devices*/, double /*workers*/) const override {
    return kept_ < 4;
  }
  [[nodiscard]] bool lends(double /*device*/, double /*host*/) const override {
    // Relaxed: any order of the numbers will do.
    return asked_.fetch_add(1, std::memory_order_relaxed) * 7 % 4 >= kept_;
  }

 private:
  unsigned kept_;
  mutable std::atomic<unsigned> asked_{0};
};

}  // namespace heddle::testing
