#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "algorithms/qr/qr_matrix.hpp"
#include "apps/simulation/kernel_clock.hpp"
#include "config/config.hpp"
#include "kernels/case_key.hpp"
#include "node-runtime/node.hpp"
#include "replay/simulation/simulated_job.hpp"

namespace heddle {

/// A factorization for nodes that are not there: its program, walked in virtual time.
struct SimulatedFactorization {
  JobSpec spec;
  std::vector<Matrix<double>> matrices;  ///< numbered by their place here; no node has them
  double flops = 0;                      ///< the standard count
};

/// `device_memory` of each device; 0: as much as is of use.
[[nodiscard]] SimulatedFactorization simulated_cholesky(std::int64_t n, const TileLayout& layout,
                                                        const Distribution& distribution,
                                                        std::int64_t inverse_block,
                                                        std::uint64_t device_memory);
[[nodiscard]] SimulatedFactorization simulated_qr(std::int64_t rows, std::int64_t columns,
                                                  const QrLayout& layout,
                                                  const Distribution& distribution);

/// The program of a job of algorithms/ as the simulation walks it: one coroutine for each node, and
/// kernels as cases of shapes whose times a clock knows. Walks that meet no new case may go on at
/// the same time, each on a thread.
class SimulatedProgram final : public replay::SimulatedJob {
 public:
  /// `lends`: workers may run devices' tasks, so the clock is asked for both. It outlives the
  /// program.
  SimulatedProgram(SimulatedFactorization what, KernelClock& clock, bool lends);

  [[nodiscard]] std::span<const replay::SimulatedMatrixSpec> matrices() const override {
    return specs_;
  }
  [[nodiscard]] std::unique_ptr<replay::NodeWalk> walk(NodeId node,
                                                       replay::WalkSink& sink) override;
  [[nodiscard]] std::span<const replay::TaskKind> kinds() const override { return kinds_; }
  /// That of a kind.
  [[nodiscard]] KernelCase case_of(replay::TaskKindId kind) const {
    return cases_[static_cast<std::size_t>(kind.value())].what();
  }
  [[nodiscard]] std::uint64_t tile_bytes(protocol::TileId tile) const override;
  [[nodiscard]] std::uint64_t message_bytes(protocol::TileId tile, Version version) const override;
  [[nodiscard]] std::function<std::vector<protocol::Reader>(protocol::TileId, Version)> readers()
      const override {
    return what_.spec.readers;
  }
  [[nodiscard]] std::int32_t priority_span() const override { return what_.spec.priority_span; }

 private:
  class Walk;

  [[nodiscard]] OperandShape shape(protocol::TileId tile) const;
  [[nodiscard]] std::shared_ptr<const replay::FineKind> fine_kind(const KernelCase& what);
  [[nodiscard]] replay::TaskKindId kind(const Kernel& kernel, const TaskOptions& options,
                                        std::span<const protocol::Access> accesses);

  SimulatedFactorization what_;
  KernelClock& clock_;
  bool lends_;
  std::vector<replay::SimulatedMatrixSpec> specs_;
  std::vector<replay::TaskKind> kinds_;
  std::vector<CaseKey> cases_;
  std::array<std::unordered_map<CaseKey, replay::TaskKindId, CaseKey::Hash>, runner_count> known_;
};

}  // namespace heddle
