#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace heddle {

/// What processes of one host must have in common to reach each other's memory, by what the system
/// calls it: "pid:[4026531836]". Empty where it does not tell.
struct Namespaces {
  std::string process;  ///< numbers of processes mean the same: /proc/PID, pidfds
  std::string ipc;
  std::string mount;
  std::string user;  ///< what rights over other processes mean
  friend bool operator==(const Namespaces&, const Namespaces&) = default;
};

/// CUDA's Multi-Process Service, as far as it can be told without CUDA.
struct MpsPresence {
  std::string folder;         ///< of its pipes: CUDA_MPS_PIPE_DIRECTORY, or the default
  bool has_pipes = false;     ///< the folder holds its control pipe
  bool has_process = false;   ///< a control daemon or server can be seen
  bool is_connected = false;  ///< this process has one of the folder's files open
};

/// Limits and neighbourhood of this process that decide about ways between processes.
struct Surroundings {
  std::uint32_t user = 0;
  Namespaces namespaces;
  std::optional<std::uint64_t> locked_bytes_max;     ///< ulimit -l; unset: unlimited
  std::optional<std::uint64_t> shared_memory_bytes;  ///< size of /dev/shm; unset: there is none
  std::uint64_t shared_memory_free_bytes = 0;
  /// kernel.yama.ptrace_scope: above 0 processes may not read each other's memory directly
  std::optional<std::int32_t> ptrace_scope;
  MpsPresence mps;
};

/// As they are now; call it when devices are open, since CUDA connects to MPS with the first.
/// What cannot be read is left as above. The arguments are for tests: /proc and /dev/shm.
[[nodiscard]] Surroundings look_around(const std::filesystem::path& processes = "/proc",
                                       const std::filesystem::path& shared_memory = "/dev/shm");

}  // namespace heddle
