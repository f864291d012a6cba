#pragma once

namespace heddle {

/// Seconds that a task takes, as they are known before it runs.
struct TaskSeconds {
  double worker = 0;  ///< on one CPU worker
  double device = 0;  ///< on a device
};

/// Whether CPU workers run tasks whose tiles live on devices (DESIGN D10). Implementations keep no
/// state: the same arguments give the same answer. Any thread.
class PlacementPolicy {
 public:
  PlacementPolicy() = default;
  PlacementPolicy(const PlacementPolicy&) = delete;
  PlacementPolicy& operator=(const PlacementPolicy&) = delete;
  virtual ~PlacementPolicy() = default;

  /// Whether workers may run tasks of a kind at all: all devices together need `devices_seconds`
  /// for each, all workers together `workers_seconds`.
  [[nodiscard]] virtual bool may_lend(double devices_seconds, double workers_seconds) const = 0;
  /// Whether workers run a ready task of such a kind: its device would have finished it
  /// `device_seconds` from now (infinity if the device lacks the kernel), the workers
  /// `host_seconds` from now.
  [[nodiscard]] virtual bool lends(double device_seconds, double host_seconds) const = 0;
};

/// Owner computes: a task runs where its main output lives (001 section 3).
class StaticPlacement final : public PlacementPolicy {
 public:
  [[nodiscard]] bool may_lend(double devices_seconds, double workers_seconds) const override;
  [[nodiscard]] bool lends(double device_seconds, double host_seconds) const override;
};

/// Whoever would finish a task first runs it (000 section 3.6); at the same time, its device, which
/// has its tiles. Workers that are worth less than `least_worth` of the devices run no tasks: that
/// would not pay for copies and for the cores that the devices' threads need.
class DynamicPlacement final : public PlacementPolicy {
 public:
  /// bench/results/2026-11-26-64-cores-4-h200.md: beside four H200, of which 56 workers are worth
  /// 1.3 %, ten lent products cost a tenth of the job; beside one, of which they are worth 5 %,
  /// fifteen lent products cost 1 %.
  static constexpr double least_worth = 1.0 / 16;
  [[nodiscard]] bool may_lend(double devices_seconds, double workers_seconds) const override;
  [[nodiscard]] bool lends(double device_seconds, double host_seconds) const override;
};

}  // namespace heddle
