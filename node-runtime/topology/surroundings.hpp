#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace heddle {

/// Namespaces that processes of a host must share to access each other's memory, as the system
/// names them: "pid:[4026531836]". Empty if unknown.
struct Namespaces {
  std::string process;  ///< scope of process ids: /proc/PID, pidfds
  std::string ipc;
  std::string mount;
  std::string user;  ///< scope of rights over other processes
  friend bool operator==(const Namespaces&, const Namespaces&) = default;
};

/// CUDA's Multi-Process Service, as far as it is visible without CUDA.
struct MpsPresence {
  std::string folder;         ///< folder of its pipes: CUDA_MPS_PIPE_DIRECTORY, or the default
  bool has_pipes = false;     ///< the folder holds its control pipe
  bool has_process = false;   ///< a control daemon or server is visible
  bool is_connected = false;  ///< this process has a file of the folder open
};

/// Limits and environment that decide which transfer paths between processes work.
struct Surroundings {
  std::uint32_t user = 0;
  Namespaces namespaces;
  std::optional<std::uint64_t> locked_bytes_max;     ///< ulimit -l; unset: unlimited
  std::optional<std::uint64_t> shared_memory_bytes;  ///< size of /dev/shm; unset: absent
  std::uint64_t shared_memory_free_bytes = 0;
  /// kernel.yama.ptrace_scope: above 0, processes may not read each other's memory directly
  std::optional<std::int32_t> ptrace_scope;
  MpsPresence mps;
};

/// Present state; call it after opening devices, since the first device connects CUDA to MPS.
/// Unreadable values keep their defaults. The arguments, /proc and /dev/shm, are for tests.
[[nodiscard]] Surroundings look_around(const std::filesystem::path& processes = "/proc",
                                       const std::filesystem::path& shared_memory = "/dev/shm");

}  // namespace heddle
