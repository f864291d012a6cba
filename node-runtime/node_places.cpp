#include "node-runtime/node_places.hpp"

#include <bit>
#include <map>
#include <utility>
#include <vector>

#include "node-runtime/topology/bus.hpp"

namespace heddle {

using collectives::Places;
using collectives::Rank;
using collectives::RankPlace;

std::array<std::uint64_t, NodePlace::words> NodePlace::to_words() const {
  const auto id = std::bit_cast<std::array<std::uint64_t, 2>>(gpu.value_or(DeviceUuid{}));
  const std::uint64_t at =
      (static_cast<std::uint64_t>(socket) << 32U) | static_cast<std::uint32_t>(pci_switch);
  return {gpu.has_value() ? std::uint64_t{1} : 0, id[0], id[1], at,
          static_cast<std::uint64_t>(card)};
}

NodePlace NodePlace::from_words(std::span<const std::uint64_t, words> from) {
  NodePlace place;
  const std::array<std::uint64_t, 2> id{from[1], from[2]};
  if (from[0] != 0) place.gpu = std::bit_cast<DeviceUuid>(id);
  place.socket = static_cast<std::int32_t>(from[3] >> 32U);
  place.pci_switch = static_cast<std::int32_t>(static_cast<std::uint32_t>(from[3]));
  place.card = static_cast<std::int32_t>(from[4]);
  return place;
}

NodePlace place_of_node(const DeviceSet& devices, std::span<const CpuCore> cores) {
  NodePlace place;
  place.socket = cores.front().package;
  if (devices.devices.empty()) {
    place.card = card_of_socket(place.socket);
    return place;
  }
  const DeviceInfo& device = devices.devices.front()->info();
  place.gpu = device.uuid;
  if (device.declared) {
    place.socket = device.declared->socket;
    place.pci_switch = device.declared->pci_switch;
  } else if (!device.pci_address.empty()) {
    const BusPlace bus = place_on_bus(device.pci_address);
    place.socket = bus.socket;
    place.pci_switch = bus.pci_switch;
    place.card = bus.card;
  }
  return place;
}

Places places_of_nodes(std::span<const NodePlace> nodes, std::span<const std::string> hosts) {
  const auto count = static_cast<std::int32_t>(nodes.size());
  const Places by_host = collectives::places_on_hosts(hosts, count);
  std::map<std::pair<std::int32_t, std::array<std::uint8_t, 16>>, std::int64_t> gpus;
  std::vector<RankPlace> places;
  for (std::int32_t r = 0; r < count; ++r) {
    const NodePlace& node = nodes[static_cast<std::size_t>(r)];
    RankPlace& place = places.emplace_back(by_host[Rank{r}]);
    place.socket = node.socket;
    place.pci_switch = node.pci_switch;
    place.card = node.card;
    if (!node.gpu) continue;
    const auto number = static_cast<std::int64_t>(gpus.size());
    place.gpu = gpus.try_emplace({place.host, node.gpu->bytes}, number).first->second;
  }
  return Places(std::move(places));
}

Places exchange_places(const NodePlace& own, const Communicator& communicator) {
  const std::vector<std::uint64_t> all = communicator.all_gather(own.to_words());
  std::vector<NodePlace> nodes;
  for (auto rest = std::span(all); !rest.empty(); rest = rest.subspan(NodePlace::words)) {
    nodes.push_back(NodePlace::from_words(rest.first<NodePlace::words>()));
  }
  return places_of_nodes(nodes, communicator.hosts());
}

}  // namespace heddle
