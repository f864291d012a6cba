#include "node-runtime/topology/bus.hpp"

#include <hwloc.h>
#include <memory>
#include <optional>
#include <vector>

namespace heddle {
namespace {

struct BusTopologyDeleter {
  void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
};
using BusTopology = std::unique_ptr<hwloc_topology, BusTopologyDeleter>;

/// With devices and bridges, which a plain topology leaves out; null: hwloc does not know them.
BusTopology load_buses(const std::string& xml) {
  hwloc_topology* raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return nullptr;
  BusTopology topology(raw);
  // They would open the GPUs, to name them; the buses are enough.
  for (const char* component : {"cuda", "nvml", "opencl", "gl", "rsmi", "levelzero"}) {
    static_cast<void>(
        hwloc_topology_set_components(raw, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, component));
  }
  if (!xml.empty() && hwloc_topology_set_xml(raw, xml.c_str()) != 0) return nullptr;
  if (hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_ALL) != 0) return nullptr;
  if (hwloc_topology_load(raw) != 0) return nullptr;
  return topology;
}

/// The socket that an object is near to; of what is near to several, the first one.
std::int32_t socket_of(hwloc_topology* topology, hwloc_obj* object) {
  const hwloc_obj* near = hwloc_get_non_io_ancestor_obj(topology, object);
  for (hwloc_obj* package = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PACKAGE, nullptr);
       near != nullptr && package != nullptr;
       package = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PACKAGE, package)) {
    if (hwloc_bitmap_intersects(near->cpuset, package->cpuset) != 0) {
      return static_cast<std::int32_t>(package->logical_index);
    }
  }
  return 0;
}

/// A number for the bridge that is next below the host's: a switch, or the port of a slot.
std::int32_t switch_of(const hwloc_obj* device) {
  std::int32_t found = 0;
  for (const hwloc_obj* above = device->parent; above != nullptr && above->type == HWLOC_OBJ_BRIDGE;
       above = above->parent) {
    if (above->attr->bridge.upstream_type != HWLOC_OBJ_BRIDGE_PCI) break;
    const auto& pci = above->attr->bridge.upstream.pci;
    found = static_cast<std::int32_t>((pci.domain << 16U) | (unsigned{pci.bus} << 8U) |
                                      (unsigned{pci.dev} << 3U) | pci.func);
  }
  return found;
}

/// Network interfaces that a message between hosts may take: those of fast networks, if any.
std::vector<hwloc_obj*> cards_of(hwloc_topology* topology) {
  std::vector<hwloc_obj*> found;
  for (const hwloc_obj_osdev_type_t kind : {HWLOC_OBJ_OSDEV_OPENFABRICS, HWLOC_OBJ_OSDEV_NETWORK}) {
    for (hwloc_obj* one = hwloc_get_next_osdev(topology, nullptr); one != nullptr;
         one = hwloc_get_next_osdev(topology, one)) {
      const bool is_on_bus = one->parent != nullptr && one->parent->type == HWLOC_OBJ_PCI_DEVICE;
      if (one->attr->osdev.type == kind && is_on_bus) found.push_back(one);
    }
    if (!found.empty()) return found;
  }
  return found;
}

/// The first of those on the switch, else on the socket, else of all.
std::int32_t nearest_card(hwloc_topology* topology, std::int32_t socket,
                          std::optional<std::int32_t> pci_switch) {
  const std::vector<hwloc_obj*> cards = cards_of(topology);
  std::optional<std::int32_t> on_socket;
  for (std::size_t i = 0; i < cards.size(); ++i) {
    const auto number = static_cast<std::int32_t>(i);
    if (pci_switch && *pci_switch != 0 && switch_of(cards[i]->parent) == *pci_switch) return number;
    if (!on_socket && socket_of(topology, cards[i]) == socket) on_socket = number;
  }
  return on_socket.value_or(0);
}

}  // namespace

BusPlace place_on_bus(std::string_view pci_address, const std::string& xml) {
  const BusTopology topology = load_buses(xml);
  if (topology == nullptr) return {};
  hwloc_obj* const device =
      hwloc_get_pcidev_by_busidstring(topology.get(), std::string(pci_address).c_str());
  if (device == nullptr) return {};
  BusPlace place{socket_of(topology.get(), device), switch_of(device), 0};
  place.card = nearest_card(topology.get(), place.socket, place.pci_switch);
  return place;
}

std::int32_t card_of_socket(std::int32_t socket, const std::string& xml) {
  const BusTopology topology = load_buses(xml);
  return topology == nullptr ? 0 : nearest_card(topology.get(), socket, std::nullopt);
}

}  // namespace heddle
