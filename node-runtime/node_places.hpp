#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "node-runtime/collectives/schedule/places.hpp"
#include "node-runtime/device/devices.hpp"
#include "node-runtime/topology/cpu.hpp"
#include "node-runtime/transport/communicator.hpp"

namespace heddle {

/// Where a node works on its host: where its first device is, or its first core.
struct NodePlace {
  std::optional<DeviceUuid> gpu;  ///< nothing: it has no device
  std::int32_t socket = 0;
  std::int32_t pci_switch = 0;
  std::int32_t card = 0;  ///< the nearest network interface

  static constexpr std::size_t words = 5;
  [[nodiscard]] std::array<std::uint64_t, words> to_words() const;
  [[nodiscard]] static NodePlace from_words(std::span<const std::uint64_t, words> from);
};

/// `cores`: of the node; not empty.
[[nodiscard]] NodePlace place_of_node(const DeviceSet& devices, std::span<const CpuCore> cores);

/// Numbers hosts by their names; GPUs with one identity are one GPU.
[[nodiscard]] collectives::Places places_of_nodes(std::span<const NodePlace> nodes,
                                                  std::span<const std::string> hosts);

/// The same of all nodes. Collective.
[[nodiscard]] collectives::Places exchange_places(const NodePlace& own,
                                                  const Communicator& communicator);

}  // namespace heddle
