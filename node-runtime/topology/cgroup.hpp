#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace heddle {

/// What the control groups of this process (containers, batch systems, systemd) leave it.
struct CgroupLimits {
  std::optional<double> cpus;                  ///< CPU seconds per second
  std::optional<std::uint64_t> memory_bytes;   ///< of the tightest group
  std::optional<std::uint64_t> memory_unused;  ///< left in the group with the least left
};

/// Reads the limits of the process's group and of all groups above it, version 2 or 1. What cannot
/// be read is no limit. The arguments are the two roots, for tests.
[[nodiscard]] CgroupLimits read_cgroup_limits(
    const std::filesystem::path& process = "/proc/self",
    const std::filesystem::path& cgroups = "/sys/fs/cgroup");

}  // namespace heddle
