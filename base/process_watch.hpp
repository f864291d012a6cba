#pragma once

#include <sys/types.h>

namespace heddle {

/// Tells whether another process of this host has ended, zombies included. Bound to the process
/// that had the id when the watch was made, since ids are reused. Thread: any.
class ProcessWatch {
 public:
  explicit ProcessWatch(pid_t process);
  ProcessWatch(const ProcessWatch&) = delete;
  ProcessWatch& operator=(const ProcessWatch&) = delete;
  ~ProcessWatch();

  [[nodiscard]] pid_t process() const { return process_; }
  /// Never blocks.
  [[nodiscard]] bool has_ended() const;
  /// No process or only a zombie has that id now: what has_ended() returns where the kernel has no
  /// file descriptors of processes. It cannot notice that an id is reused.
  [[nodiscard]] static bool has_ended(pid_t process);
  /// Stopped by a signal (SIGSTOP, Ctrl-Z, a debugger); false where the system does not say.
  [[nodiscard]] bool is_stopped() const;

 private:
  pid_t process_;
  int file_;        ///< pidfd; -1: none
  bool had_ended_;  ///< there was no such process
};

}  // namespace heddle
