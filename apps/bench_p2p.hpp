#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/log.hpp"
#include "apps/run.hpp"
#include "node-runtime/transport/p2p/path.hpp"

namespace heddle {

struct BenchP2pOptions {
  std::vector<std::string> overrides;  ///< key.path=value: devices
  std::optional<std::string> report;
  Verbosity verbosity = Verbosity::normal;
  std::string path;  ///< path to prefer; empty: the best one
  bool explains = false;
  bool apart = false;  ///< treat the nodes as on different hosts
  std::string only;    ///< only rows that contain this text
  std::int64_t bytes_max = std::int64_t{256} << 20U;
  std::vector<std::int64_t> orders{256, 1000, 4000};  ///< orders of the matrices
  std::int64_t ring_piece_bytes = p2p::PathSizes{}.ring_piece_bytes;
  std::int32_t ring_slots = p2p::PathSizes{}.ring_slots;
  std::int32_t window = 8;  ///< messages in flight in streaming tests
  std::int32_t repetitions = 9;
  double seconds = 0.02;  ///< minimum duration of a timing
};

/// `heddle bench p2p`: validated messages between the first two nodes, from and to host memory and
/// devices, compared with the hardware. Collective over the run's processes. Returns the exit
/// status: 0, or 1 if data arrived wrong. Throws Error, the same on all processes.
int bench_p2p(const BenchP2pOptions& options, Run& run);

}  // namespace heddle
