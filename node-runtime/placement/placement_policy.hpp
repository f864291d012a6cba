#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "base/index.hpp"

namespace heddle {

/// What a place would need for a ready task.
struct PlaceOffer {
  PlaceId place;
  double load_seconds = 0;      ///< until it comes to the task
  double transfer_seconds = 0;  ///< until the tiles that it lacks are there
  double kernel_seconds = 0;
  /// Of such a kernel, where all places of the kind, the workers or the devices, compute at once
  /// and have their tiles: what they are worth. 0: they are worth as much as the home.
  double kind_seconds = 0;

  /// When the task would be finished, from now. Tiles come while the place is at other tasks.
  [[nodiscard]] double end_seconds() const {
    return (load_seconds > transfer_seconds ? load_seconds : transfer_seconds) + kernel_seconds;
  }
};

/// Where ready tasks run (DESIGN D10). Implementations keep no state: the same offers give the same
/// choice. Any thread.
class PlacementPolicy {
 public:
  PlacementPolicy() = default;
  PlacementPolicy(const PlacementPolicy&) = delete;
  PlacementPolicy& operator=(const PlacementPolicy&) = delete;
  virtual ~PlacementPolicy() = default;

  /// As the configuration names it.
  [[nodiscard]] virtual std::string_view name() const = 0;
  /// Whether it ever chooses another place than a task's home.
  [[nodiscard]] virtual bool moves_tasks() const = 0;
  /// Which of the offers runs the task; the first one is its home's. At least one.
  [[nodiscard]] virtual std::size_t choose(std::span<const PlaceOffer> offers) const = 0;
};

/// Owner computes: a task runs where its main output lives (001 section 3).
class StaticPlacement final : public PlacementPolicy {
 public:
  [[nodiscard]] std::string_view name() const override { return "static"; }
  [[nodiscard]] bool moves_tasks() const override { return false; }
  [[nodiscard]] std::size_t choose(std::span<const PlaceOffer> offers) const override;
};

/// The place that would finish it first, by its load, the measured cost of the kernel there and the
/// tiles that it lacks (000 section 3.6); of equal ones the home, which owns most of them. No place
/// of a kind that is worth less than a 16th of the home's: that does not pay for copies, wakings
/// and cores that the devices' own threads would have. On four H200 beside 56 workers, which could
/// add 1.3 %, ten divided products cost a tenth of the job and more; on one, which they could add 5
/// to, fifteen cost one.
class DynamicPlacement final : public PlacementPolicy {
 public:
  [[nodiscard]] std::string_view name() const override { return "dynamic"; }
  [[nodiscard]] bool moves_tasks() const override { return true; }
  static constexpr double least_worth = 1.0 / 16;
  [[nodiscard]] std::size_t choose(std::span<const PlaceOffer> offers) const override;
};

}  // namespace heddle
