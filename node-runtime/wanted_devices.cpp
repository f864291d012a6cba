#include "node-runtime/wanted_devices.hpp"

#include <exception>
#include <fmt/core.h>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/process_limits.hpp"

namespace heddle {

namespace {

void check_emulated_keys(const config::Devices& devices) {
  if (devices.backend == config::DeviceBackend::emulated) return;
  const auto refuse = [](bool is_set, std::string_view key) {
    if (!is_set) return;
    throw Error(ErrorCode::usage,
                fmt::format("runtime.devices.{} is for emulated devices only; set "
                            "runtime.devices.backend to emulated, or leave it out",
                            key));
  };
  refuse(devices.nodes_per_device > 1, "nodes_per_device");
  refuse(devices.link_rate > 0, "links.rate");
  refuse(devices.link_latency_us > 0, "links.latency_us");
  refuse(devices.switch_rate > 0, "links.switch_rate");
  refuse(devices.devices_per_switch.has_value(), "links.devices_per_switch");
  refuse(devices.switches_per_socket.has_value(), "links.switches_per_socket");
}

}  // namespace

DeviceOptions wanted_devices(const config::Devices& devices) {
  check_emulated_keys(devices);
  DeviceOptions options;
  if (devices.backend.has_value()) {
    switch (*devices.backend) {
      case config::DeviceBackend::none:
        options.backend = DeviceBackend::none;
        break;
      case config::DeviceBackend::cuda:
        options.backend = DeviceBackend::cuda;
        break;
      case config::DeviceBackend::emulated:
        options.backend = DeviceBackend::emulated;
        break;
    }
  }
  if (devices.per_node.has_value()) options.count = static_cast<std::int32_t>(*devices.per_node);
  if (devices.memory.has_value()) {
    options.emulated.memory_bytes = *devices.memory;
    options.cuda.memory_bytes = *devices.memory;
  }
  constexpr double giga = 1e9;
  EmulatedOptions& emulated = options.emulated;
  emulated.peer_rate = devices.link_rate * giga;
  emulated.peer_latency_us = devices.link_latency_us;
  emulated.switch_rate = devices.switch_rate * giga;
  emulated.places.devices_per_switch =
      static_cast<std::int32_t>(devices.devices_per_switch.value_or(0));
  emulated.places.switches_per_socket =
      static_cast<std::int32_t>(devices.switches_per_socket.value_or(0));
  emulated.turn_us = devices.turn_us;
  return options;
}

void share_emulated_devices(DeviceSet& devices, const config::Devices& wanted,
                            const Communicator& communicator) {
  if (wanted.backend != config::DeviceBackend::emulated || communicator.size() == 1) return;
  const auto sharers = static_cast<std::int32_t>(wanted.nodes_per_device);
  const auto count = static_cast<std::int32_t>(devices.devices.size());
  const std::int32_t first = communicator.local_rank() / sharers * count;
  const std::vector<std::uint64_t> words =
      communicator.all_gather(words_of_emulated(devices, first));
  std::vector<std::uint64_t> of_host;
  const std::size_t each = words.size() / static_cast<std::size_t>(communicator.size());
  for (std::size_t r = 0; r * each < words.size(); ++r) {
    if (communicator.local_processes()[r] == 0) continue;
    const auto begin = words.begin() + static_cast<std::ptrdiff_t>(r * each);
    of_host.insert(of_host.end(), begin, begin + static_cast<std::ptrdiff_t>(each));
  }
  std::optional<Error> trouble;
  try {
    join_emulated(devices, of_host, first, communicator.local_rank() % sharers);
  } catch (const std::exception& error) {
    trouble = as_error(error);
  }
  // Until all have mapped what is the others'.
  communicator.throw_together(trouble);
}

GpuNeighbours find_gpu_neighbours(const config::Devices& devices,
                                  const Communicator& communicator) {
  if (communicator.size() == 1) return {};
  const bool wants_gpus =
      !devices.backend.has_value() || *devices.backend == config::DeviceBackend::cuda;
  const std::uint64_t mine = wants_gpus ? std::hash<std::string>{}(visible_gpus()) : 0;
  const std::vector<std::uint64_t> all = communicator.all_gather(mine);
  GpuNeighbours found{0, 0};
  for (int r = 0; r < communicator.size(); ++r) {
    const auto index = static_cast<std::size_t>(r);
    if (communicator.local_processes()[index] == 0 || all[index] != mine) continue;
    if (r == communicator.rank()) found.node = found.nodes;
    ++found.nodes;
  }
  return found;
}

}  // namespace heddle
