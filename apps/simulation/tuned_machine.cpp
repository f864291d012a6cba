#include "apps/simulation/tuned_machine.hpp"

#include <algorithm>
#include <cstdint>
#include <fmt/core.h>
#include <iterator>
#include <map>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "kernels/kernel_case.hpp"
#include "kernels/kernels.hpp"
#include "node-runtime/machine/machine_file.hpp"

namespace heddle {
namespace {

/// The kernels whose rates count for `kernel`, should it not be measured: the first one that is.
std::vector<const Kernel*> likes_of(const Kernel& kernel) {
  if (&kernel == &kernel::tsqrt || &kernel == &kernel::ttqrt) return {&kernel::geqrt};
  if (&kernel == &kernel::unmqr || &kernel == &kernel::tsmqr || &kernel == &kernel::ttmqr) {
    return {&kernel::tsmqr, &kernel::unmqr};
  }
  return {};
}

/// By width: the times of `kernel` that count.
std::map<std::int64_t, const KernelTime*> measured_by_width(const KernelTimes& times,
                                                            const Kernel& kernel) {
  std::map<std::int64_t, const KernelTime*> chosen;
  for (const KernelTime& time : times) {
    if (time.kernel != &kernel || time.microseconds <= 0) continue;
    const KernelTime*& best = chosen[time.columns];
    const bool is_better = best == nullptr || time.rows > best->rows ||
                           (time.rows == best->rows && time.microseconds < best->microseconds);
    if (is_better) best = &time;
  }
  return chosen;
}

}  // namespace

std::vector<KernelRate> rates_of(const KernelTimes& times, std::int32_t workers) {
  std::vector<KernelRate> rates;
  for (const Kernel* kernel : factorization_kernels) {
    auto by_width = measured_by_width(times, *kernel);
    for (const Kernel* like : likes_of(*kernel)) {
      if (!by_width.empty()) break;
      by_width = measured_by_width(times, *like);
    }
    for (const auto& [width, time] : by_width) {
      const double flops = flops_of(*time->kernel, time->rows, width);
      rates.push_back(
          {kernel, static_cast<double>(width), flops / time->microseconds * 1e-3, workers});
    }
  }
  return rates;
}

void set_messages(const Measurements& measured, replay::SimulatedMachine& to) {
  if (!measured.messages) return;
  to.network = {measured.messages->latency_us * 1e-6, measured.messages->rate * 1e9};
  const auto& reading = measured.messages->reading;
  if (reading) to.memory = {reading->short_us * 1e-6, reading->rate * 1e9};
}

void set_copies(const CopyRates& copies, replay::SimulatedMachine& to) {
  const double latency_s = copies.short_us.value_or(10) * 1e-6;
  to.to_device = {latency_s, copies.to_device * 1e9};
  to.to_host = {latency_s, copies.to_host * 1e9};
  // By way of the host where devices do not reach each other.
  const double relayed = std::min(copies.to_device, copies.to_host) / 2;
  to.to_peer = {latency_s, copies.to_peer.value_or(relayed) * 1e9};
}

MachineDescription tuned_machine(const std::filesystem::path& path,
                                 const MachineDescription& defaults) {
  const MachineFile file = read_machine_file(path);
  const Measurements& measured = file.measured;
  if (!measured.cpu) {
    throw Error(ErrorCode::usage,
                fmt::format("machine file {}: it has no times of kernels on the CPU; heddle tune "
                            "measures them",
                            path.string()));
  }
  MachineDescription result = defaults;
  result.machine.name = file.host;
  result.machine.cores = file.cores;
  result.machine.cpu_workers = measured.cpu->workers;
  result.host = rates_of(measured.cpu->all_workers, measured.cpu->workers);
  if (measured.cpu->workers > 1) {
    std::ranges::move(rates_of(measured.cpu->one_worker, 1), std::back_inserter(result.host));
  }
  set_messages(measured, result.machine);
  if (measured.devices.empty()) return result;
  const auto wanted =
      std::ranges::find(measured.devices, defaults.device_backend, &DeviceMeasurement::backend);
  const DeviceMeasurement& device =
      wanted == measured.devices.end() ? measured.devices.front() : *wanted;
  result.device = rates_of(device.kernels, 0);
  result.device_source = "heddle tune's";
  result.device_backend = device.backend;
  result.machine.device_streams = device.streams;
  set_copies(device.copies, result.machine);
  return result;
}

}  // namespace heddle
