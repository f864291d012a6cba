#pragma once

#include <atomic>
#include <cstdint>

#include "node-runtime/placement/placement_policy.hpp"

namespace heddle::testing {

/// Lends by turns, whatever it costs, so that tiles go to and fro.
class SomePlacement final : public PlacementPolicy {
 public:
  /// Of four times that it is asked, it keeps a task home as often.
  explicit SomePlacement(unsigned kept) : kept_(kept) {}

  [[nodiscard]] std::string_view name() const override { return "some"; }
  [[nodiscard]] bool moves_tasks() const override { return true; }
  [[nodiscard]] std::size_t choose(std::span<const PlaceOffer> offers) const override {
    // Relaxed: any order of the numbers will do.
    const unsigned turn = asked_.fetch_add(1, std::memory_order_relaxed) * 7 % 4;
    return turn < kept_ ? 0 : offers.size() - 1;
  }

 private:
  unsigned kept_;
  mutable std::atomic<unsigned> asked_{0};
};

}  // namespace heddle::testing
