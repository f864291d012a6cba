#include "node-runtime/device_rates.hpp"

#include <algorithm>

namespace heddle {
namespace {

constexpr double seconds_per_us = 1e-6;
constexpr double bytes_per_gb = 1e9;

/// Threads that wake each other and copy by cores, on the two cores of an EPYC: 20 to 60 us and 5
/// to 10 GB/s (bench/results/2026-11-29-collectives-emulated.md).
void set_emulated(collectives::DeviceRates& rates) {
  rates.work_s = 40 * seconds_per_us;
  rates.launch_s = 10 * seconds_per_us;
  rates.within_bytes_per_s = rates.peer_bytes_per_s = 6 * bytes_per_gb;
  rates.to_host_bytes_per_s = rates.to_device_bytes_per_s = 6 * bytes_per_gb;
}

/// Links that are slower than what the cores do.
void set_links(const config::Devices& devices, collectives::DeviceRates& rates) {
  rates.peer_s = devices.link_latency_us * seconds_per_us;
  rates.switch_bytes_per_s = devices.switch_rate * bytes_per_gb;
  if (devices.link_rate <= 0) return;
  for (double* rate :
       {&rates.peer_bytes_per_s, &rates.to_host_bytes_per_s, &rates.to_device_bytes_per_s}) {
    *rate = std::min(*rate, devices.link_rate * bytes_per_gb);
  }
}

}  // namespace

collectives::DeviceRates device_rates(const NodeFacts& facts, const config::Devices& devices,
                                      const p2p::PathRates& paths) {
  collectives::DeviceRates rates;
  rates.note_s = paths.note_us * seconds_per_us;
  rates.work_s = paths.device_us * seconds_per_us;
  rates.peer_bytes_per_s = paths.peer * bytes_per_gb;
  rates.within_bytes_per_s = paths.local * bytes_per_gb;
  rates.to_host_bytes_per_s = paths.to_host * bytes_per_gb;
  rates.to_device_bytes_per_s = paths.to_device * bytes_per_gb;
  rates.host_bytes_per_s = paths.host * bytes_per_gb;
  if (facts.takes_turns) rates.turn_s = paths.turn_us * seconds_per_us;
  if (facts.device_backend != "emulated") return rates;
  if (facts.tuning.measured.devices.empty()) set_emulated(rates);
  if (facts.takes_turns) rates.turn_s = devices.turn_us * seconds_per_us;
  set_links(devices, rates);
  return rates;
}

}  // namespace heddle
