#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "apps/tuning/effort.hpp"
#include "apps/tuning/operands.hpp"
#include "node-runtime/machine/measurements.hpp"
#include "node-runtime/topology/cpu.hpp"

namespace heddle::tuning {

/// The workers that kernels are timed on.
struct Workers {
  std::int32_t count = 1;
  std::vector<CpuCore> cores{};   ///< one of each worker; empty: wherever the system puts them
  std::vector<CpuCore> beside{};  ///< of other threads beside them; empty: likewise
  /// This thread is that worker.
  void pin(std::int32_t worker) const {
    if (cores.empty()) return;
    pin_current_thread(std::span(cores).subspan(static_cast<std::size_t>(worker), 1));
  }
};

/// While it lives, the thread that made it is one beside the workers.
class BesideWorkers {
 public:
  explicit BesideWorkers(const Workers& workers) {
    if (workers.beside.empty()) return;
    before_.push_back(CpuCore{current_thread_binding()});
    pin_current_thread(workers.beside);
  }
  BesideWorkers(const BesideWorkers&) = delete;
  BesideWorkers& operator=(const BesideWorkers&) = delete;
  ~BesideWorkers() {
    if (!before_.empty()) pin_current_thread(before_);
  }

 private:
  std::vector<CpuCore> before_;
};

/// Times the host's kernels of Cholesky on square tiles on one worker and on all, and those of QR
/// on tall tiles on all; potrf and geqrt on one of these, while the others update. Operands come
/// from memory in turns, as in a factorization. OpenBLAS has been loaded.
[[nodiscard]] CpuMeasurement measure_cpu(const Workers& workers, const NormalValues& normal,
                                         Effort& effort);

}  // namespace heddle::tuning
