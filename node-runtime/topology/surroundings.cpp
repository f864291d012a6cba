#include "node-runtime/topology/surroundings.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <system_error>
#include <unistd.h>

namespace heddle {
namespace {

namespace fs = std::filesystem;

std::string link_target(const fs::path& path) {
  std::error_code unreadable;
  return fs::read_symlink(path, unreadable).string();
}

/// Calls `visit` for each entry; skips an unreadable folder.
template <class Visit>
void for_each_entry(const fs::path& folder, const Visit& visit) {
  std::error_code failure;
  for (fs::directory_iterator entry(folder, failure), end; !failure && entry != end;
       entry.increment(failure)) {
    visit(entry->path());
  }
}

/// Process names are cut to 15 bytes, so control daemon and server look alike.
bool is_mps(const fs::path& process) {
  const std::string number = process.filename().string();
  if (!std::all_of(number.begin(), number.end(), [](unsigned char c) { return std::isdigit(c); })) {
    return false;
  }
  std::string name;
  std::ifstream(process / "comm") >> name;
  return name == "nvidia-cuda-mps";
}

MpsPresence find_mps(const fs::path& processes) {
  MpsPresence mps;
  const char* named = std::getenv("CUDA_MPS_PIPE_DIRECTORY");
  mps.folder = named != nullptr && *named != '\0' ? named : "/tmp/nvidia-mps";
  std::error_code unreadable;
  mps.has_pipes = fs::exists(fs::path(mps.folder) / "control", unreadable);
  for_each_entry(processes, [&](const fs::path& process) {
    mps.has_process = mps.has_process || is_mps(process);
  });
  if (!mps.has_pipes) return mps;
  for_each_entry(processes / "self" / "fd", [&](const fs::path& file) {
    mps.is_connected = mps.is_connected || link_target(file).starts_with(mps.folder + "/");
  });
  return mps;
}

}  // namespace

Surroundings look_around(const fs::path& processes, const fs::path& shared_memory) {
  Surroundings found;
  found.user = ::geteuid();
  const fs::path spaces = processes / "self" / "ns";
  found.namespaces = {link_target(spaces / "pid"), link_target(spaces / "ipc"),
                      link_target(spaces / "mnt"), link_target(spaces / "user")};
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    found.locked_bytes_max = limit.rlim_cur;
  }
  struct statvfs status {};
  if (::statvfs(shared_memory.c_str(), &status) == 0) {
    found.shared_memory_bytes = std::uint64_t{status.f_blocks} * status.f_frsize;
    found.shared_memory_free_bytes = std::uint64_t{status.f_bavail} * status.f_frsize;
  }
  std::int32_t scope = 0;
  if (std::ifstream(processes / "sys/kernel/yama/ptrace_scope") >> scope) {
    found.ptrace_scope = scope;
  }
  found.mps = find_mps(processes);
  return found;
}

}  // namespace heddle
