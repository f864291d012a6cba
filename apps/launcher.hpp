#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace heddle {

/// How this process was started: by an MPI launcher as one of several processes, or by a user.
struct Launcher {
  std::int32_t rank = 0;
  std::int32_t size = 1;
  bool launched = false;        ///< by a launcher, even as a single process
  std::int32_t local_rank = 0;  ///< among the processes of this host, if the launcher says so
  std::int32_t local_size = 1;

  /// Reads the environment of MPICH-compatible launchers. Throws Error(usage) if another launcher
  /// has started several processes, or if the variables belong to a process that MPICH's launcher
  /// did not start: the nodes would not connect.
  [[nodiscard]] static Launcher detect();
};

/// Whether stderr is a terminal, directly or through a launcher on this host.
[[nodiscard]] bool stderr_is_watched(const Launcher& launcher);

/// RAII for MPI if a launcher started the process, which then learns how it ends; else does
/// nothing.
class MpiSession {
 public:
  /// Calls `give_up`, which does not return, on another thread if other processes do not start in
  /// time. Throws Error(usage) if MPI has another rank or size than the launcher.
  MpiSession(const Launcher& launcher, const std::function<void(double seconds)>& give_up);
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;
  ~MpiSession();

  [[nodiscard]] bool active() const { return active_; }

  /// Gathers the texts of all processes, by rank, on each. Before a Node exists.
  [[nodiscard]] std::vector<std::string> all_texts(const std::string& mine) const;

  /// Throws the same error on all processes if any has one. Before a Node exists.
  void throw_together(const std::optional<Error>& mine) const;

 private:
  bool active_ = false;
};

}  // namespace heddle
