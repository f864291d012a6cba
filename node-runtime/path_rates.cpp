#include "node-runtime/path_rates.hpp"

namespace heddle {

p2p::PathRates path_rates(const Measurements& measured) {
  p2p::PathRates rates;
  if (measured.messages) {
    rates.message_us = measured.messages->latency_us;
    rates.message = measured.messages->rate;
    if (const auto& host = measured.messages->host) {
      rates.note_us = host->note_us;
      rates.host = host->packing;
    }
    if (const auto& reading = measured.messages->reading) {
      rates.read_us = reading->short_us;
      rates.read = reading->rate;
    }
  }
  if (!measured.devices.empty()) {
    const CopyRates& copies = measured.devices.front().copies;
    if (copies.to_device > 0) rates.to_device = copies.to_device;
    if (copies.to_host > 0) rates.to_host = copies.to_host;
    rates.peer = copies.to_peer.value_or(rates.peer);
    rates.local = copies.within.value_or(rates.local);
    rates.pack = copies.packing.value_or(rates.pack);
    rates.device_us = copies.short_us.value_or(rates.device_us);
  }
  return rates;
}

}  // namespace heddle
