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
  std::string path;  ///< taken wherever it can be; empty: the best one
  bool explains = false;
  bool apart = false;  ///< as if the nodes were on different hosts
  std::string only;    ///< rows that contain it
  std::int64_t bytes_max = std::int64_t{256} << 20U;
  std::vector<std::int64_t> orders{256, 1000, 4000};  ///< of matrices
  std::int64_t ring_piece_bytes = p2p::PathSizes{}.ring_piece_bytes;
  std::int32_t ring_slots = p2p::PathSizes{}.ring_slots;
  std::int32_t window = 8;  ///< messages under way at a time, where more than one is
  std::int32_t repetitions = 9;
  double seconds = 0.02;  ///< of one timing at least
};

/// `heddle bench p2p`: messages between the first two nodes, from and to host memory and devices,
/// beside what the hardware gives, validated. Collective over the run's processes. The exit status:
/// 0, or 1 when something did not arrive as it should. Throws Error, the same on all processes.
int bench_p2p(const BenchP2pOptions& options, Run& run);

}  // namespace heddle
