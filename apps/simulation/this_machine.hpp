#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/simulation/kernel_clock.hpp"
#include "apps/simulation/machine_description.hpp"
#include "apps/simulation/rehearsal.hpp"
#include "apps/simulation/remembered_ratios.hpp"
#include "apps/simulation/simulated_program.hpp"
#include "apps/tuning/cpu.hpp"
#include "apps/tuning/wake.hpp"
#include "config/config.hpp"
#include "kernels/case_key.hpp"
#include "node-runtime/machine/prepare.hpp"
#include "node-runtime/topology/cpu.hpp"

namespace heddle {

class MeasuredClock;

/// This machine: its cores and devices, and what `heddle tune` has measured of devices and links.
/// Measures OpenBLAS's kernel sets where nobody has so far.
class ThisMachine {
 public:
  explicit ThisMachine(const Config& config);
  /// Throws Error(usage) for a configuration that names another machine file: a sweep, say.
  void check_file(const Config& config) const;

  /// Without devices.
  [[nodiscard]] MachineDescription description() const;
  /// The devices that a run would take, where their kernels were measured. Where they were not: a
  /// note, or Error(usage) where the configuration names them.
  void add_devices(const config::Devices& wanted, MachineDescription& to) const;
  /// What copies of devices of that kind take here, where `heddle tune` has measured them.
  void add_copies(std::string_view backend, replay::SimulatedMachine& to) const;
  /// This machine's tuning, with devices only of the kind that the description has.
  [[nodiscard]] Tuning tuning(const MachineDescription& described) const;
  [[nodiscard]] const std::string& cpu_model() const { return topology_.model(); }
  /// Whether kernels are timed here with as many workers at a time, in as many processes, for both.
  [[nodiscard]] bool times_alike(const MachineDescription& one,
                                 const MachineDescription& other) const {
    return crowd_of(one, 0) == crowd_of(other, 0);
  }
  /// What waking a worker takes here; measured once.
  [[nodiscard]] const tuning::Waking& waking();
  /// A machine like this one: `start` with `changes` (machine_description.hpp). Where its nodes
  /// have neighbours, and cores for their progress threads, these take what they take here to read
  /// each other's tiles while all workers compute (tuning::reading_beside_work), and to wake who
  /// waits for them; measured once for as many workers in as many processes.
  [[nodiscard]] MachineDescription with_reading(const std::vector<std::string>& changes,
                                                MachineDescription start);
  /// A machine's own rates. Where it has none of the host, kernels are timed here as they are asked
  /// for, each case once, on as many workers at the same time as a host there has (or as there are
  /// here), in as many processes as it has nodes; the first call loads OpenBLAS. `matrix_bytes`: of
  /// all nodes.
  [[nodiscard]] std::shared_ptr<KernelClock> clock_of(const MachineDescription& machine,
                                                      double matrix_bytes);
  /// What one kernel takes on a machine over what another one takes on another machine, both with
  /// a matrix of that size: timed here by turns, where they have no rates of their own, once for
  /// operands of the same widths and about the same heights (a power of two and the next), of which
  /// taller ones take longer by their operations. 0: nobody knows.
  [[nodiscard]] double ratio(const KernelCase& what, const MachineDescription& machine,
                             const KernelCase& other, const MachineDescription& of_other,
                             double matrix_bytes, Runner runner);
  /// A factorization on a machine, and by node in which order its tasks began there; of fewer
  /// nodes, or none: as they walk.
  struct Played {
    const SimulatedFactorization& what;
    const MachineDescription& machine;
    const std::vector<BeginOrder>& orders;
  };
  /// What tasks take in one factorization over what they take in another one, rehearsed here, each
  /// with as many workers in as many processes as its machine has on a host (or as there are here).
  /// No machine has rates of its own.
  [[nodiscard]] std::unique_ptr<RehearsedRatios> rehearse(const Played& now, const Played& then);
  /// What tasks take in a factorization, likewise.
  [[nodiscard]] RehearsedTimes rehearse(const Played& what);

 private:
  /// Who works at a time.
  struct Crowd {
    std::int32_t workers = 1;
    std::int32_t processes = 1;      ///< that these are in
    std::int64_t operand_bytes = 0;  ///< of each worker
    friend auto operator<=>(const Crowd&, const Crowd&) = default;
  };
  struct TimedHere {
    MeasuredClock* timing = nullptr;
    std::shared_ptr<KernelClock> clock;  ///< that remembers what that one has timed
  };
  [[nodiscard]] Crowd crowd_of(const MachineDescription& machine, double matrix_bytes) const;
  [[nodiscard]] TimedHere& timed_here(const Crowd& crowd);
  /// The crowd's workers, on cores of their own if there are as many for each process.
  [[nodiscard]] std::vector<tuning::Workers> processes_of(const Crowd& crowd) const;
  /// One more core for each process.
  [[nodiscard]] bool has_spare_cores(const Crowd& crowd) const {
    return crowd.workers + crowd.processes <= topology_.compute_thread_count();
  }
  [[nodiscard]] RehearsalCast cast_of(const Played& played) const;

  std::optional<std::string> file_;  ///< as the configuration has it
  MachineProfile profile_;
  CpuTopology topology_ = CpuTopology::detect();
  std::optional<tuning::Waking> waking_;
  std::map<Crowd, TimedHere> clocks_;
  std::map<Crowd, std::optional<MessageMeasurement::Reading>> readings_;
  RememberedRatios<Crowd> ratios_;
};

}  // namespace heddle
