#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/simulation/kernel_clock.hpp"
#include "replay/simulation/simulated_machine.hpp"

namespace heddle {

/// At what rate a kernel runs on square tiles.
struct KernelRate {
  std::string kernel;
  double size = 0;    ///< columns
  double gflops = 0;  ///< 10^9 operations per second (flops_of)
};

/// What a file says of a machine to simulate.
struct MachineDescription {
  replay::SimulatedMachine machine;
  std::int64_t inverse_block = 0;  ///< columns of inverse blocks in Cholesky on devices; 0: none
  /// Of one worker while the others work too; empty: this machine's, measured.
  std::vector<KernelRate> host;
  std::vector<KernelRate> device;
};

/// Reads a machine file (config/machines): all keys but `heddle_simulated_machine` may be left out,
/// and stand for what `defaults` say. `overrides` are "key.path=value". Without a name the defaults
/// are changed by these alone. Throws Error(usage) that names the place, what was expected and what
/// is wrong.
[[nodiscard]] MachineDescription read_machine_description(const std::optional<std::string>& path,
                                                          const std::vector<std::string>& overrides,
                                                          const MachineDescription& defaults);

/// Times from rates: those of a kernel by size, in between interpolated by powers, beyond the ends
/// the end's. The size of a case is the least of its dimensions. A kernel without operations takes
/// as long as a product of 1/16 of its elements.
class RatesClock final : public KernelClock {
 public:
  explicit RatesClock(const MachineDescription& machine) : machine_(machine) {}
  [[nodiscard]] KernelSeconds seconds(const KernelCase& what) override;

 private:
  const MachineDescription& machine_;
};

/// Rate of `kernel` at a size; nothing for a kernel that is not listed.
[[nodiscard]] std::optional<double> rate_at(const std::vector<KernelRate>& rates,
                                            const std::string& kernel, double size);

}  // namespace heddle
