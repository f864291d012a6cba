#include "node-runtime/topology/cgroup.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

namespace heddle {
namespace {

namespace fs = std::filesystem;

/// First number of a file; nullopt for "max", a negative number, or a missing file.
std::optional<std::uint64_t> read_number(const fs::path& path) {
  std::ifstream file(path);
  std::int64_t value = 0;
  if (!(file >> value) || value < 0) return std::nullopt;
  return static_cast<std::uint64_t>(value);
}

/// Clean file cache of a group, which counts as used but can be reclaimed at once.
std::uint64_t reclaimable_bytes(const fs::path& group, const std::string& key) {
  std::ifstream file(group / "memory.stat");
  std::string name;
  std::uint64_t value = 0;
  while (file >> name >> value) {
    if (name == key) return value;
  }
  return 0;
}

template <class T>
void lower(std::optional<T>& limit, T value) {
  limit = limit ? std::min(*limit, value) : value;
}

void apply_memory(CgroupLimits& limits, std::optional<std::uint64_t> maximum,
                  std::optional<std::uint64_t> used, std::uint64_t reclaimable) {
  // Version 1 writes "no limit" as the largest multiple of the page size.
  if (!maximum || *maximum >= std::uint64_t{1} << 62) return;
  lower(limits.memory_bytes, *maximum);
  if (!used) return;
  const std::uint64_t busy = *used - std::min(*used, reclaimable);
  lower(limits.memory_unused, *maximum - std::min(*maximum, busy));
}

void apply_version_2(CgroupLimits& limits, const fs::path& group) {
  std::ifstream cpu(group / "cpu.max");
  double quota_us = 0;
  double period_us = 0;
  if (cpu >> quota_us >> period_us && period_us > 0) lower(limits.cpus, quota_us / period_us);
  apply_memory(limits, read_number(group / "memory.max"), read_number(group / "memory.current"),
               reclaimable_bytes(group, "inactive_file"));
}

void apply_version_1_cpu(CgroupLimits& limits, const fs::path& group) {
  const auto quota_us = read_number(group / "cpu.cfs_quota_us");
  const auto period_us = read_number(group / "cpu.cfs_period_us");
  if (quota_us && period_us && *period_us > 0) {
    lower(limits.cpus, static_cast<double>(*quota_us) / static_cast<double>(*period_us));
  }
}

void apply_version_1_memory(CgroupLimits& limits, const fs::path& group) {
  apply_memory(limits, read_number(group / "memory.limit_in_bytes"),
               read_number(group / "memory.usage_in_bytes"),
               reclaimable_bytes(group, "total_inactive_file"));
}

/// Calls `apply` for the group and all its ancestors, the root included. Inside a container the
/// group's own path may not exist below `root`; the root then replaces it.
template <class Apply>
void for_each_group(const fs::path& root, const std::string& path, const Apply& apply) {
  fs::path relative = fs::path(path).relative_path();
  while (!relative.empty()) {
    apply(root / relative);
    relative = relative.parent_path();
  }
  apply(root);
}

bool lists(const std::string& controllers, const std::string& name) {
  std::istringstream words(controllers);
  for (std::string word; std::getline(words, word, ',');) {
    if (word == name) return true;
  }
  return false;
}

}  // namespace

CgroupLimits read_cgroup_limits(const fs::path& process, const fs::path& cgroups) {
  CgroupLimits limits;
  std::ifstream file(process / "cgroup");
  for (std::string line; std::getline(file, line);) {  // hierarchy:controllers:path
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty()) {
      for_each_group(cgroups, path, [&](const fs::path& g) { apply_version_2(limits, g); });
    }
    if (lists(controllers, "cpu")) {
      for_each_group(cgroups / "cpu", path,
                     [&](const fs::path& g) { apply_version_1_cpu(limits, g); });
    }
    if (lists(controllers, "memory")) {
      for_each_group(cgroups / "memory", path,
                     [&](const fs::path& g) { apply_version_1_memory(limits, g); });
    }
  }
  return limits;
}

}  // namespace heddle
