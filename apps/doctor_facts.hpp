#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "node-runtime/device/devices.hpp"
#include "node-runtime/topology/surroundings.hpp"

namespace heddle {

/// What `heddle doctor` tells of one node before anything is tried.
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
    std::string between_nodes;  ///< how nodes of one host reach each other
  };

  std::int32_t node = 0;
  std::string host;
  std::int32_t process = 0;
  std::int32_t cores = 0;
  std::optional<Mpi> mpi;  ///< unset: the process runs alone
  std::vector<Device> devices;
  std::string device_reason;
  std::string cuda_driver;   ///< newest CUDA that the driver knows; empty without one
  std::string cuda_toolkit;  ///< empty: built without CUDA
  std::string cuda_found;    ///< which GPUs CUDA sees, or why none
  std::string cuda_missing;  ///< what keeps its libraries from being loaded; empty: nothing
  Surroundings surroundings;
};

/// Of this process. `has_mpi`: MPI is initialised.
[[nodiscard]] NodeSheet describe_node(std::int32_t node, bool has_mpi, const DeviceSet& devices);

[[nodiscard]] nlohmann::json to_json(const NodeSheet& sheet);
[[nodiscard]] NodeSheet sheet_from_json(const nlohmann::json& from);

/// What keeps two nodes of one host from each other's memory, as far as their sheets tell; empty if
/// nothing does.
[[nodiscard]] std::string what_separates(const NodeSheet& first, const NodeSheet& second);

}  // namespace heddle
