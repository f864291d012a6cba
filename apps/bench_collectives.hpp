#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/log.hpp"
#include "apps/run.hpp"

namespace heddle {

/// Nodes that are not there.
struct SimulatedNodes {
  std::optional<std::string> machine;  ///< a file; none: the nodes are there
  std::vector<std::int32_t> nodes;     ///< numbers of them; empty: as many as the machine has
  std::string map = "by-core";         ///< or "by-node", "random"
  std::int32_t maps = 1;               ///< random ones
  std::uint64_t seed = 1;              ///< of the first random map
};

struct BenchCollectivesOptions {
  std::vector<std::string> overrides;  ///< key.path=value: runtime
  std::optional<std::string> report;
  Verbosity verbosity = Verbosity::normal;
  std::vector<std::string> operations;  ///< empty: all
  std::int64_t bytes_min = 8;
  std::int64_t bytes_max = std::int64_t{16} << 20U;
  std::string algorithm;  ///< empty: as configured
  std::string order;      ///< of reductions: ranks, places; empty: as configured
  std::int64_t fragment_bytes = 0;
  std::string place = "host";         ///< of the memory: "device", "mixed" (odd ranks on devices)
  std::int32_t ranks_per_device = 0;  ///< that there have to be; 0: as many as there are
  bool on_stream = false;             ///< operations of a stream of the device, which is waited for
  std::int64_t skew_us = 0;           ///< that the last rank begins behind the first
  std::string datatype = "contiguous";  ///< of a block: one of block_kind_names
  std::string only;                     ///< rows whose operation and way contain it; empty: all
  bool explains = false;
  std::int32_t repetitions = 3;  ///< turns of heddle and MPI
  double seconds = 0.05;         ///< of one operation, size and turn
  SimulatedNodes simulated;
};

/// `heddle bench collectives`: validated collectives of all nodes on memory of hosts and of each
/// node's first device, by turns with MPI's own; for memory of a device those are staged by
/// page-locked memory of the host. Collective over the run's processes. Returns the exit status: 0,
/// or 1 if elements were wrong. Throws Error, the same on all processes.
int bench_collectives(const BenchCollectivesOptions& options, Run& run);

}  // namespace heddle
