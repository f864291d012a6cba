#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/simulation/kernel_clock.hpp"
#include "node-runtime/machine/measurements.hpp"
#include "replay/simulation/simulated_machine.hpp"

namespace heddle {

/// At what rate a kernel runs on square tiles.
struct KernelRate {
  const Kernel* kernel = nullptr;
  double size = 0;           ///< columns
  double gflops = 0;         ///< 10^9 operations per second (flops_of)
  std::int32_t workers = 0;  ///< of the host at work, that runs it one of them; 0: however many
};

/// How tasks of one kernel and shape differ in time.
struct KernelNoise {
  double variation = 0;   ///< standard deviation over mean, log-normal; 0: all take the same
  bool recorded = false;  ///< as they differed in the run that is replayed
  [[nodiscard]] bool is_none() const { return variation == 0 && !recorded; }
};

/// What a file says of a machine to simulate.
struct MachineDescription {
  replay::SimulatedMachine machine;
  std::int64_t inverse_block = 0;  ///< columns of inverse blocks in Cholesky on devices; 0: none
  /// Rates of one worker while all workers of its host are busy; empty: this machine's, measured.
  std::vector<KernelRate> host;
  std::vector<KernelRate> device;
  std::string device_source = "the machine file's";  ///< whose rates these are
  std::string device_backend = "cuda";
  std::string note;  ///< what the machine is simulated without; empty: nothing
  KernelNoise noise;
};

/// Reads a machine file, such as those in config/machines, or what heddle tune has written
/// (tuned_machine()). In the former all keys but `heddle_simulated_machine` may be left out,
/// and stand for what `defaults` say. `overrides` are "key.path=value". Without a name the defaults
/// are changed by these alone. Throws Error(usage) that names the place, what was expected and what
/// is wrong.
[[nodiscard]] MachineDescription read_machine_description(const std::optional<std::string>& path,
                                                          const std::vector<std::string>& overrides,
                                                          const MachineDescription& defaults);

/// Times from rates: those of a kernel by size, and by how many workers of a host there are, in
/// between interpolated by powers, beyond the ends the end's. The size of a case is the least of
/// its dimensions. A kernel without operations takes as long as a product of 1/16 of its elements.
/// Where the description has no rates of the host, these are another clock's times.
class MachineClock final : public KernelClock {
 public:
  /// `host`: needed where the machine has no rates of its own, or null.
  MachineClock(MachineDescription machine, std::shared_ptr<KernelClock> host)
      : machine_(std::move(machine)), host_(std::move(host)) {}
  [[nodiscard]] double seconds(const KernelCase& what, Runner runner) override;
  [[nodiscard]] std::string source() const override;

 private:
  MachineDescription machine_;
  std::shared_ptr<KernelClock> host_;
};

/// What sizes of tiles are chosen by on such a machine (node-runtime/tuning.hpp): its times of
/// Cholesky's kernels at the sizes that its products have a rate for, and its links. Without rates
/// of all four of them nothing of the host, or of devices.
[[nodiscard]] Measurements measurements_of(const MachineDescription& description);

/// Rate of `kernel` at a size while `workers` workers of the host are busy (1 at least); nothing
/// for a kernel that is not listed.
[[nodiscard]] std::optional<double> rate_at(const std::vector<KernelRate>& rates,
                                            const Kernel& kernel, double size,
                                            std::int32_t workers);

}  // namespace heddle
