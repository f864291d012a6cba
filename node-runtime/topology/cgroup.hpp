#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace heddle {

/// Limits that control groups (containers, batch systems, systemd) set for this process.
struct CgroupLimits {
  std::optional<double> cpus;                  ///< CPU seconds per second
  std::optional<std::uint64_t> memory_bytes;   ///< of the tightest group
  std::optional<std::uint64_t> memory_unused;  ///< minimum over the groups
};

/// Minimum of the limits of the process's group and its ancestors, version 2 or 1. An unreadable
/// limit counts as none. The arguments are the two roots, for tests.
[[nodiscard]] CgroupLimits read_cgroup_limits(
    const std::filesystem::path& process = "/proc/self",
    const std::filesystem::path& cgroups = "/sys/fs/cgroup");

}  // namespace heddle
