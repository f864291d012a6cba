#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "apps/simulation/kernel_clock.hpp"
#include "apps/simulation/machine_description.hpp"
#include "config/config.hpp"
#include "node-runtime/machine/prepare.hpp"
#include "node-runtime/topology/cpu.hpp"

namespace heddle {

/// This machine: its cores and devices, and what `heddle tune` has measured of devices and links.
/// Measures OpenBLAS's kernel sets where nobody has so far.
class ThisMachine {
 public:
  explicit ThisMachine(const Config& config);

  /// Without devices.
  [[nodiscard]] MachineDescription description() const;
  /// The devices that a run would take, where their kernels were measured; a note where they were
  /// not.
  void add_devices(const config::Devices& wanted, MachineDescription& to) const;
  /// Of devices that kind alone which the description has.
  [[nodiscard]] Tuning tuning(const MachineDescription& described) const;
  [[nodiscard]] const std::string& cpu_model() const { return topology_.model(); }
  /// On how many workers at a time kernels are timed here, for so many of a host.
  [[nodiscard]] std::int32_t timed_workers(std::int32_t workers) const {
    return std::min(workers, topology_.compute_thread_count());
  }
  /// What a worker that sleeps takes to begin a task here, seconds; measured once.
  [[nodiscard]] double wake_seconds();
  /// Times kernels here as they are asked for, each case once, on so many workers at the same time
  /// (or as many as there are here), which have `matrix_bytes` together. The first call loads
  /// OpenBLAS.
  [[nodiscard]] std::shared_ptr<KernelClock> clock(std::int32_t workers, double matrix_bytes);
  /// A machine's own rates, and that clock where it has none of the host. `matrix_bytes`: of all
  /// nodes.
  [[nodiscard]] std::shared_ptr<KernelClock> clock_of(const MachineDescription& machine,
                                                      double matrix_bytes);

 private:
  MachineProfile profile_;
  CpuTopology topology_ = CpuTopology::detect();
  std::optional<double> wake_s_;
  /// By workers, and bytes of each.
  std::map<std::pair<std::int32_t, std::int64_t>, std::shared_ptr<KernelClock>> clocks_;
};

}  // namespace heddle
