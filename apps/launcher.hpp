#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace heddle {

/// Who started this process: an MPI launcher, as one of several processes, or a person.
struct Launcher {
  std::int32_t rank = 0;
  std::int32_t size = 1;
  bool launched = false;  ///< by a launcher, be it as one process

  /// Reads the environment that MPICH's launchers (and those compatible with it) leave. Throws
  /// Error(usage) when another MPI's launcher has started the process: the nodes would not find
  /// each other.
  [[nodiscard]] static Launcher detect();
};

/// Whether somebody watches this process's stderr: it is a terminal, or a launcher on this host
/// passes it on to its own, which is one.
[[nodiscard]] bool stderr_is_watched(const Launcher& launcher);

/// MPI from here to the end of the scope if a launcher started the process (which then learns how
/// it ends); nothing otherwise.
class MpiSession {
 public:
  explicit MpiSession(const Launcher& launcher);
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
