#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace heddle {

/// A physical core, or the part of it that this process may use.
struct CpuCore {
  std::vector<std::int32_t> hardware_threads;  ///< the operating system's numbers, never empty
  std::int32_t package = 0;                    ///< socket, counted from 0 over the machine
  std::int32_t numa_node = 0;                  ///< the operating system's number
  std::int32_t last_cache = 0;  ///< the largest cache above it, counted from 0 over the machine
};

/// How far the caches of cores are from each other: 0 the same core, 1 a shared last-level cache, 2
/// the same NUMA node, 3 the same package, 4 another one. Element `a * cores.size() + b`; any
/// thread.
[[nodiscard]] std::vector<std::uint8_t> cache_distances(std::span<const CpuCore> cores);

/// Caches of one level; all of a level are taken to be equal to the first.
struct CpuCache {
  std::int32_t level = 1;   ///< 1 is nearest to the core; data or unified
  std::uint64_t bytes = 0;  ///< of one such cache
  std::int32_t cores = 1;   ///< usable cores that share one
};

/// The processors and memory that this process may use: what the machine has, without what a
/// control group, taskset, a batch system or the MPI launcher's binding takes away.
class CpuTopology {
 public:
  /// Looks at the machine and at the binding of the process as they are now: call it before any
  /// thread of the process is pinned. Throws Error(internal) when the system does not tell.
  [[nodiscard]] static CpuTopology detect();

  [[nodiscard]] const std::string& model() const { return model_; }

  /// Usable cores so that neighbours share caches, then NUMA nodes, then packages. Never empty.
  [[nodiscard]] std::span<const CpuCore> cores() const { return cores_; }

  [[nodiscard]] std::int32_t hardware_thread_count() const;

  /// CPU time quota of the process's control groups in CPUs; unset without one.
  [[nodiscard]] std::optional<double> cpu_quota() const { return cpu_quota_; }

  /// Threads that can compute at full speed at a time: cores().size(), or the quota rounded down
  /// where that is less, but at least 1.
  [[nodiscard]] std::int32_t compute_thread_count() const;

  /// Data and unified caches by rising level; empty where the system hides them (some VMs do).
  [[nodiscard]] std::span<const CpuCache> caches() const { return caches_; }

  /// Of the machine, or the control group's limit where that is less.
  [[nodiscard]] std::uint64_t memory_total_bytes() const { return memory_total_bytes_; }
  /// What the process could take at the time of detect() without pushing others out.
  [[nodiscard]] std::uint64_t memory_available_bytes() const { return memory_available_bytes_; }

 private:
  std::string model_;
  std::vector<CpuCore> cores_;
  std::vector<CpuCache> caches_;
  std::optional<double> cpu_quota_;
  std::uint64_t memory_total_bytes_ = 0;
  std::uint64_t memory_available_bytes_ = 0;
};

/// Binds the calling thread, and the threads that it creates from now on, to `cores` (at least
/// one). Throws Error(internal) when the system refuses.
void pin_current_thread(std::span<const CpuCore> cores);

/// The hardware threads on which the calling thread may run, by rising number.
[[nodiscard]] std::vector<std::int32_t> current_thread_binding();

/// Names the calling thread for debuggers and `top -H`; what is longer than 15 bytes is cut.
void name_current_thread(const std::string& name);

}  // namespace heddle
