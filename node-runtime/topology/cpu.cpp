#include "node-runtime/topology/cpu.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fmt/core.h>
#include <fstream>
#include <hwloc.h>
#include <memory>
#include <pthread.h>
#include <sched.h>
#include <system_error>

#include "base/assert.hpp"
#include "base/error.hpp"
#include "node-runtime/topology/cgroup.hpp"

namespace heddle {
namespace {

struct TopologyDeleter {
  void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<hwloc_topology, TopologyDeleter>;

struct BitmapDeleter {
  void operator()(hwloc_bitmap_s* bitmap) const { hwloc_bitmap_free(bitmap); }
};
using Bitmap = std::unique_ptr<hwloc_bitmap_s, BitmapDeleter>;

/// Mask for sched_getaffinity and similar calls; grows until it is large enough for the kernel.
class CpuSet {
 public:
  explicit CpuSet(std::size_t count)
      : count_(count), set_(CPU_ALLOC(count), &release), bytes_(CPU_ALLOC_SIZE(count)) {
    HEDDLE_CHECK(set_ != nullptr);
    CPU_ZERO_S(bytes_, set_.get());
  }
  void add(std::size_t cpu) { CPU_SET_S(cpu, bytes_, set_.get()); }
  [[nodiscard]] bool has(std::size_t cpu) const { return CPU_ISSET_S(cpu, bytes_, set_.get()); }
  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] cpu_set_t* get() { return set_.get(); }

 private:
  static void release(cpu_set_t* set) { CPU_FREE(set); }

  std::size_t count_;
  std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set_;
  std::size_t bytes_;
};

[[noreturn]] void fail(std::string_view what, int code) {
  throw Error(ErrorCode::internal,
              fmt::format("{} failed: {}", what, std::generic_category().message(code)));
}

Topology load_topology() {
  hwloc_topology* raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) fail("hwloc_topology_init", errno);
  Topology topology(raw);
  if (hwloc_topology_load(raw) != 0) fail("hwloc_topology_load", errno);
  return topology;
}

/// Hardware threads that neither a control group nor the process's binding excludes.
Bitmap usable_threads(hwloc_topology* topology) {
  Bitmap usable(hwloc_bitmap_dup(hwloc_topology_get_allowed_cpuset(topology)));
  const Bitmap bound(hwloc_bitmap_alloc());
  HEDDLE_CHECK(usable && bound);
  if (hwloc_get_cpubind(topology, bound.get(), HWLOC_CPUBIND_PROCESS) == 0 &&
      hwloc_bitmap_intersects(usable.get(), bound.get()) != 0) {
    hwloc_bitmap_and(usable.get(), usable.get(), bound.get());
  }
  return usable;
}

/// Index of the outermost cache above the object among those of its level; its package where the
/// system hides caches.
std::int32_t last_cache_above(hwloc_topology* topology, hwloc_obj* object) {
  for (const hwloc_obj_type_t type : {HWLOC_OBJ_L5CACHE, HWLOC_OBJ_L4CACHE, HWLOC_OBJ_L3CACHE,
                                      HWLOC_OBJ_L2CACHE, HWLOC_OBJ_PACKAGE}) {
    const hwloc_obj* above = hwloc_get_ancestor_obj_by_type(topology, type, object);
    if (above != nullptr) return static_cast<std::int32_t>(above->logical_index);
  }
  return 0;
}

/// Objects of `type` with a usable thread, as cores.
std::vector<CpuCore> find_cores(hwloc_topology* topology, hwloc_obj_type_t type,
                                const hwloc_bitmap_s* usable) {
  std::vector<CpuCore> cores;
  // Logical order walks the tree, so neighbours share the most.
  for (hwloc_obj* object = hwloc_get_next_obj_by_type(topology, type, nullptr); object != nullptr;
       object = hwloc_get_next_obj_by_type(topology, type, object)) {
    CpuCore core;
    for (int thread = hwloc_bitmap_first(object->cpuset); thread != -1;
         thread = hwloc_bitmap_next(object->cpuset, thread)) {
      if (hwloc_bitmap_isset(usable, static_cast<unsigned>(thread)) != 0) {
        core.hardware_threads.push_back(thread);
      }
    }
    if (core.hardware_threads.empty()) continue;
    const hwloc_obj* package = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_PACKAGE, object);
    if (package != nullptr) core.package = static_cast<std::int32_t>(package->logical_index);
    const int numa = hwloc_bitmap_first(object->nodeset);
    core.numa_node = std::max(0, numa);
    core.last_cache = last_cache_above(topology, object);
    cores.push_back(std::move(core));
  }
  return cores;
}

std::vector<CpuCache> find_caches(hwloc_topology* topology, std::span<const CpuCore> cores) {
  std::vector<CpuCache> caches;
  for (const hwloc_obj_type_t type : {HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L3CACHE,
                                      HWLOC_OBJ_L4CACHE, HWLOC_OBJ_L5CACHE}) {
    // Caches above the first usable core.
    const auto first = static_cast<unsigned>(cores.front().hardware_threads.front());
    const hwloc_obj* cache = hwloc_get_ancestor_obj_by_type(
        topology, type, hwloc_get_pu_obj_by_os_index(topology, first));
    if (cache == nullptr) continue;
    const auto shares = [&](const CpuCore& core) {
      return hwloc_bitmap_isset(cache->cpuset,
                                static_cast<unsigned>(core.hardware_threads.front())) != 0;
    };
    caches.push_back(
        {static_cast<std::int32_t>(cache->attr->cache.depth), cache->attr->cache.size,
         static_cast<std::int32_t>(std::count_if(cores.begin(), cores.end(), shares))});
  }
  return caches;
}

std::string find_model(hwloc_topology* topology) {
  hwloc_obj* package = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PACKAGE, nullptr);
  const char* model =
      package == nullptr ? nullptr : hwloc_obj_get_info_by_name(package, "CPUModel");
  return model == nullptr ? "unknown processor" : model;
}

/// A row of /proc/meminfo in bytes; 0 if absent.
std::uint64_t memory_row(const std::string& key) {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(key + ":")) return std::stoull(line.substr(key.size() + 1)) * 1024;
  }
  return 0;
}

}  // namespace

CpuTopology CpuTopology::detect() {
  const Topology topology = load_topology();
  const Bitmap usable = usable_threads(topology.get());
  CpuTopology found;
  found.model_ = find_model(topology.get());
  found.cores_ = find_cores(topology.get(), HWLOC_OBJ_CORE, usable.get());
  if (found.cores_.empty()) {  // the machine does not report cores
    found.cores_ = find_cores(topology.get(), HWLOC_OBJ_PU, usable.get());
  }
  if (found.cores_.empty()) {
    throw Error(ErrorCode::internal,
                "hwloc finds no processor that this process may use; check the binding with "
                "`taskset -p` and hwloc's environment variables");
  }
  found.caches_ = find_caches(topology.get(), found.cores_);

  const CgroupLimits limits = read_cgroup_limits();
  found.cpu_quota_ = limits.cpus;
  found.memory_total_bytes_ = memory_row("MemTotal");
  found.memory_available_bytes_ = memory_row("MemAvailable");
  if (limits.memory_bytes) {
    found.memory_total_bytes_ = std::min(found.memory_total_bytes_, *limits.memory_bytes);
  }
  if (limits.memory_unused) {
    found.memory_available_bytes_ = std::min(found.memory_available_bytes_, *limits.memory_unused);
  }
  return found;
}

std::int32_t CpuTopology::hardware_thread_count() const {
  std::size_t count = 0;
  for (const CpuCore& core : cores_) count += core.hardware_threads.size();
  return static_cast<std::int32_t>(count);
}

std::int32_t CpuTopology::compute_thread_count() const {
  const auto cores = static_cast<double>(cores_.size());
  const double threads = std::min(cores, std::floor(cpu_quota_.value_or(cores)));
  return std::max(1, static_cast<std::int32_t>(threads));
}

std::vector<std::uint8_t> cache_distances(std::span<const CpuCore> cores) {
  std::vector<std::uint8_t> distances;
  distances.reserve(cores.size() * cores.size());
  for (std::size_t a = 0; a < cores.size(); ++a) {
    for (std::size_t b = 0; b < cores.size(); ++b) {
      const bool same_package = cores[a].package == cores[b].package;
      const bool same_memory = same_package && cores[a].numa_node == cores[b].numa_node;
      distances.push_back(a == b                                                      ? 0
                          : same_memory && cores[a].last_cache == cores[b].last_cache ? 1
                          : same_memory                                               ? 2
                          : same_package                                              ? 3
                                                                                      : 4);
    }
  }
  return distances;
}

void pin_current_thread(std::span<const CpuCore> cores) {
  HEDDLE_CHECK(!cores.empty());
  std::int32_t last = 0;
  for (const CpuCore& core : cores) {
    for (const std::int32_t thread : core.hardware_threads) last = std::max(last, thread);
  }
  CpuSet set(static_cast<std::size_t>(last) + 1);
  for (const CpuCore& core : cores) {
    for (const std::int32_t thread : core.hardware_threads)
      set.add(static_cast<std::size_t>(thread));
  }
  const int code = ::pthread_setaffinity_np(::pthread_self(), set.bytes(), set.get());
  if (code != 0) fail(fmt::format("binding a thread to {} cores", cores.size()), code);
}

std::vector<std::int32_t> current_thread_binding() {
  for (std::size_t count = 1024; count <= std::size_t{1} << 20; count *= 4) {
    CpuSet set(count);
    const int code = ::pthread_getaffinity_np(::pthread_self(), set.bytes(), set.get());
    if (code == EINVAL) continue;  // the kernel has more processors than the mask
    if (code != 0) fail("asking for a thread's binding", code);
    std::vector<std::int32_t> threads;
    for (std::size_t cpu = 0; cpu < set.count(); ++cpu) {
      if (set.has(cpu)) threads.push_back(static_cast<std::int32_t>(cpu));
    }
    return threads;
  }
  fail("asking for a thread's binding", EINVAL);
}

void name_current_thread(const std::string& name) {
  // The only possible error is a name that is too long.
  ::pthread_setname_np(::pthread_self(), name.substr(0, 15).c_str());
}

}  // namespace heddle
