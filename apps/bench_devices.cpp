#include "apps/bench_devices.hpp"

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <functional>
#include <string>
#include <vector>

#include "apps/command.hpp"
#include "base/error.hpp"

namespace heddle {
namespace {

/// Throws Error(usage) on all nodes where another number of them than is asked for has the memory
/// of one device. `own`: this node's device; null: none. Collective.
void check_ranks_per_device(const BenchCollectivesOptions& options, const Device* own,
                            const Communicator& communicator) {
  const std::uint64_t name =
      own == nullptr ? 0 : std::hash<std::string>{}(to_string(own->info().uuid));
  const std::vector<std::uint64_t> names = communicator.all_gather(name);
  for (std::size_t node = 0; node < names.size(); ++node) {
    const auto sharers = std::ranges::count(names, names[node]);
    if (sharers == options.ranks_per_device) continue;
    throw Error(ErrorCode::usage,
                fmt::format("--ranks-per-device {}: the device of node {} is that of {} nodes in "
                            "all; start as many nodes as devices times {}",
                            options.ranks_per_device, node, sharers, options.ranks_per_device));
  }
}

}  // namespace

bool needs_devices(const BenchCollectivesOptions& options) {
  return options.place != "host" || options.on_stream;
}

void check_devices(const BenchCollectivesOptions& options, const Config& config,
                   const GpuNeighbours& neighbours, const Communicator& communicator) {
  if (!needs_devices(options)) return;
  DeviceSet devices;
  communicator.throw_together(trouble_of([&] {
    DeviceOptions wanted = wanted_devices(config.runtime.devices);
    wanted.cuda.nodes = neighbours.nodes;
    wanted.cuda.node = neighbours.node;
    wanted.cuda.memory_bytes = std::uint64_t{64} << 20U;
    devices = make_devices(wanted);
    if (!devices.devices.empty()) return;
    const std::string what =
        options.place != "host" ? fmt::format("--place {}", options.place) : "--stream";
    throw Error(ErrorCode::usage,
                fmt::format("{} needs a device on each node, and node {} has none ({}): --set "
                            "runtime.devices.backend=emulated gives emulated ones",
                            what, communicator.rank(), devices.why));
  }));
  if (options.ranks_per_device > 0) {
    check_ranks_per_device(options, devices.devices.front().get(), communicator);
  }
}

}  // namespace heddle
