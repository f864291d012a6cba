#pragma once

#include <filesystem>
#include <vector>

#include "apps/simulation/machine_description.hpp"
#include "node-runtime/machine/measurements.hpp"

namespace heddle {

/// Rates of one worker while `workers` are busy (0: however many), or of a device, from
/// measured times: of shapes of one width those with the most rows, of these the fastest. Kernels
/// of QR that were not measured run as those do that compute the same: other panels as geqrt, other
/// updates as what was measured of tsmqr and unmqr.
[[nodiscard]] std::vector<KernelRate> rates_of(const KernelTimes& times, std::int32_t workers);

/// The machine that `heddle tune` has measured, as one node without devices: with the rates of its
/// kernels, of its devices, should a simulation give it some, and of its links. Where it was not
/// measured, what `defaults` say. Throws Error(usage) where it has no times of kernels.
[[nodiscard]] MachineDescription tuned_machine(const std::filesystem::path& path,
                                               const MachineDescription& defaults);

/// Sets what messages between nodes take, and what copies of devices take.
void set_messages(const Measurements& measured, replay::SimulatedMachine& to);
void set_copies(const CopyRates& copies, replay::SimulatedMachine& to);

}  // namespace heddle
