#pragma once

#include <atomic>
#include <cstdint>

#include "node-runtime/placement/placement_policy.hpp"

namespace heddle::testing {

/// Lends by turns, whatever it costs, so that tiles go to and fro.
class SomePlacement final : public PlacementPolicy {
 public:
  /// Of four times that it is asked, it keeps a task home as often; and in any case those times
  /// that it is asked first.
  explicit SomePlacement(unsigned kept, unsigned kept_first = 0)
      : kept_(kept), kept_first_(kept_first) {}

  [[nodiscard]] std::string_view name() const override { return "some"; }
  [[nodiscard]] bool moves_tasks() const override { return true; }
  [[nodiscard]] std::size_t choose(std::span<const PlaceOffer> offers) const override {
    // Relaxed: any order of the numbers will do.
    const unsigned asked = asked_.fetch_add(1, std::memory_order_relaxed);
    return asked < kept_first_ || asked * 7 % 4 < kept_ ? 0 : offers.size() - 1;
  }

 private:
  unsigned kept_;
  unsigned kept_first_;
  mutable std::atomic<unsigned> asked_{0};
};

}  // namespace heddle::testing
