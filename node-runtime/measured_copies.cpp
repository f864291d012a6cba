#include "node-runtime/measured_copies.hpp"

#include <array>

#include "node-runtime/path_rates.hpp"

namespace heddle {
namespace {

using collectives::CollectiveKind;
using collectives::CopyTable;

/// Mapped: a copy within a device. Staged: out of a device, a message of the host, into a device.
std::array<CopyTable::Rate, 2> rates_of(const p2p::PathRates& paths) {
  constexpr double micro = 1e-6;
  constexpr double giga = 1e9;
  const double staged = 1 / (1 / paths.to_host + 1 / paths.host + 1 / paths.to_device);
  return {CopyTable::Rate{paths.device_us * micro, paths.local * giga},
          CopyTable::Rate{(2 * paths.device_us + paths.note_us) * micro, staged * giga}};
}

}  // namespace

std::shared_ptr<const CopyTable> measured_copies(const Measurements& measured) {
  auto table = std::make_shared<CopyTable>();
  if (measured.devices.empty()) return table;
  const DeviceMeasurement& device = measured.devices.front();
  for (const StagedCopies& row : device.group_copies) {
    for (const CollectiveKind kind :
         {CollectiveKind::broadcast, CollectiveKind::reduce, CollectiveKind::all_reduce}) {
      if (name_of(kind) != row.operation) continue;
      table->rows.push_back({kind, row.ranks, row.bytes, row.staged});
    }
  }
  if (device.copies.within && device.copies.short_us) table->rates = rates_of(path_rates(measured));
  return table;
}

}  // namespace heddle
