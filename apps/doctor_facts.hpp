#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "node-runtime/device/devices.hpp"
#include "node-runtime/node_places.hpp"
#include "node-runtime/topology/surroundings.hpp"

namespace heddle {

/// What `heddle doctor` reports about a node before its probe.
struct NodeSheet {
  struct Device {
    std::string backend;
    std::string name;
    std::uint64_t memory_bytes = 0;
    std::string uuid;
  };
  struct Mpi {
    std::string library;        ///< "MPICH 4.0.2 (ch4:ucx)"
    std::string thread_level;   ///< "MPI_THREAD_SERIALIZED"
    std::string between_nodes;  ///< transport between nodes of a host
  };

  std::int32_t node = 0;
  std::string host;
  std::int32_t process = 0;
  std::int32_t cores = 0;
  std::optional<Mpi> mpi;  ///< unset: a single process
  std::vector<Device> devices;
  NodePlace place;  ///< for collectives; its GPU is the first device
  std::string device_reason;
  std::string cuda_driver;   ///< newest CUDA version of the driver; empty without one
  std::string cuda_toolkit;  ///< empty: built without CUDA
  std::string cuda_found;    ///< lists the GPUs, or says why there is none
  std::string cuda_missing;  ///< libraries that cannot be loaded; empty: none
  Surroundings surroundings;
};

/// Describes this process. `has_mpi`: MPI is initialised.
[[nodiscard]] NodeSheet describe_node(std::int32_t node, bool has_mpi, const DeviceSet& devices);

[[nodiscard]] nlohmann::json to_json(const NodeSheet& sheet);
[[nodiscard]] NodeSheet sheet_from_json(const nlohmann::json& from);

/// Why two nodes of a host cannot access each other's memory, as far as known; empty if they can.
[[nodiscard]] std::string what_separates(const NodeSheet& first, const NodeSheet& second);

}  // namespace heddle
