#pragma once

#include "layout/layout.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include "node-runtime/machine/machine_file.hpp"

namespace heddle {

/// What the node decided from the configuration and the machine; for the plan and the report.
struct NodeFacts {
  std::int32_t rank = 0;
  std::int32_t nodes = 1;
  std::int32_t nodes_on_host = 1;
  std::int32_t cpu_workers = 1;
  std::int32_t cpu_workers_of_all = 1;  ///< nodes together; the same number on all of them
  std::int32_t devices = 0;             ///< of each node
  bool are_devices_wanted = false;      ///< the configuration gives their number: all are used
  std::string device_backend;           ///< none, emulated, cuda
  std::string device_reason;
  std::string device_name;  ///< what kind they are: the GPU's name; "emulated"
  std::int32_t device_streams = 2;
  std::uint64_t device_memory_bytes = 0;
  bool moves_tasks = false;  ///< CPU workers may run devices' tasks: runtime.placement is dynamic
  /// They do, as they are worth it: all of devices' tiles have host memory behind them.
  bool lends_tasks = false;
  /// Columns of an inverse block in Cholesky (kernels/kernels.hpp); 0: devices do without.
  std::int64_t inverse_block = 0;
  /// Work of several nodes on one device runs in turns, on some host.
  bool takes_turns = false;
  Distribution distribution;
  std::int32_t window = 0;
  std::string blas;          ///< one line: which kernels and why
  std::string blas_kernels;  ///< OpenBLAS kernel set and tile kernels in use
  std::string machine_file;
  /// From node 0's machine file, of devices only this kind's: what sizes follow from.
  Tuning tuning;
  std::vector<std::string> warnings;
  std::string cpu_model;
  std::uint64_t memory_available_bytes = 0;
  bool oversubscribed = false;
  /// Hardware threads of the host for the threads of all nodes on it.
  std::int32_t host_cores = 0;

  [[nodiscard]] bool has_gpus() const { return device_backend == "cuda"; }
};

}  // namespace heddle
