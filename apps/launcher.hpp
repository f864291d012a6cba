#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace heddle {

/// Who started this process: an MPI launcher, as one of several processes, or a person.
struct Launcher {
  std::int32_t rank = 0;
  std::int32_t size = 1;
  bool launched = false;        ///< by a launcher, be it as one process
  std::int32_t local_rank = 0;  ///< among the processes of this host, as far as the launcher tells
  std::int32_t local_size = 1;

  /// Reads the environment that MPICH's launchers (and those compatible with it) leave. Throws
  /// Error(usage) when another launcher has started the process as one of several, or when the
  /// variables of MPICH's launcher have come to a process that it did not start: the nodes would
  /// not find each other.
  [[nodiscard]] static Launcher detect();
};

/// Whether somebody watches this process's stderr: it is a terminal, or a launcher on this host
/// passes it on to its own, which is one.
[[nodiscard]] bool stderr_is_watched(const Launcher& launcher);

/// MPI from here to the end of the scope if a launcher started the process (which then learns how
/// it ends); nothing otherwise.
class MpiSession {
 public:
  /// `give_up` is called on another thread when the other processes do not come up in time; it does
  /// not return. Throws Error(usage) when MPI finds another rank or size than the launcher told.
  MpiSession(const Launcher& launcher, const std::function<void(double seconds)>& give_up);
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;
  ~MpiSession();

  [[nodiscard]] bool active() const { return active_; }

  /// The texts of all processes, by rank, on each of them. Before a Node exists.
  [[nodiscard]] std::vector<std::string> all_texts(const std::string& mine) const;

  /// Throws on all processes when any has an error, the same on all. Before a Node exists.
  void throw_together(const std::optional<Error>& mine) const;

 private:
  bool active_ = false;
};

}  // namespace heddle
