#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace heddle {

/// A physical core, or the usable part of it.
struct CpuCore {
  std::vector<std::int32_t> hardware_threads;  ///< operating system's numbers; not empty
  std::int32_t package = 0;                    ///< socket, counted from 0 over the machine
  std::int32_t numa_node = 0;                  ///< operating system's number
  std::int32_t last_cache = 0;  ///< its outermost cache, counted from 0 over the machine
};

/// Cache distances between cores: 0 same core, 1 shared last-level cache, 2 same NUMA node, 3 same
/// package, 4 other package. Element `a * cores.size() + b`. Thread: any.
[[nodiscard]] std::vector<std::uint8_t> cache_distances(std::span<const CpuCore> cores);

/// A cache level; all caches of a level are assumed equal to the first.
struct CpuCache {
  std::int32_t level = 1;   ///< 1 is nearest to the core; data or unified caches
  std::uint64_t bytes = 0;  ///< per cache
  std::int32_t cores = 1;   ///< usable cores per cache
};

/// Processors and memory that this process may use: the machine's, limited by control groups,
/// taskset, the batch system and the MPI launcher's binding.
class CpuTopology {
 public:
  /// Reads the machine and the process's present binding; call it before any thread is pinned.
  /// Throws Error(internal) if the system does not report them.
  [[nodiscard]] static CpuTopology detect();

  [[nodiscard]] const std::string& model() const { return model_; }

  /// Usable cores, ordered so that neighbours share caches, then NUMA nodes, then packages. Not
  /// empty.
  [[nodiscard]] std::span<const CpuCore> cores() const { return cores_; }

  [[nodiscard]] std::int32_t hardware_thread_count() const;

  /// CPU quota of the process's control groups, in CPUs; unset without one.
  [[nodiscard]] std::optional<double> cpu_quota() const { return cpu_quota_; }

  /// Threads that can compute at full speed: max(1, min(cores().size(), floor(quota))).
  [[nodiscard]] std::int32_t compute_thread_count() const;

  /// Data and unified caches by ascending level; empty where the system hides them (some VMs do).
  [[nodiscard]] std::span<const CpuCache> caches() const { return caches_; }

  /// Memory of the machine, or the control group's limit if lower.
  [[nodiscard]] std::uint64_t memory_total_bytes() const { return memory_total_bytes_; }
  /// Memory that was available at detect() without swapping.
  [[nodiscard]] std::uint64_t memory_available_bytes() const { return memory_available_bytes_; }

 private:
  std::string model_;
  std::vector<CpuCore> cores_;
  std::vector<CpuCache> caches_;
  std::optional<double> cpu_quota_;
  std::uint64_t memory_total_bytes_ = 0;
  std::uint64_t memory_available_bytes_ = 0;
};

/// Binds the calling thread, and threads it creates later, to `cores` (at least one). Throws
/// Error(internal) if the system refuses.
void pin_current_thread(std::span<const CpuCore> cores);

/// Hardware threads on which the calling thread may run, in ascending order.
[[nodiscard]] std::vector<std::int32_t> current_thread_binding();

/// Names the calling thread for debuggers and `top -H`; truncated to 15 bytes.
void name_current_thread(const std::string& name);

}  // namespace heddle
