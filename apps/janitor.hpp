#pragma once

#include <mutex>
#include <set>
#include <string>
#include <sys/types.h>

namespace heddle {

/// Removes a run's temporary files even when the process is killed: launchers answer the death of
/// one process with SIGKILL to all others at once, and SIGKILL leaves no time to clean up.
///
/// A small child in a session of its own, forked before any thread exists, knows the names from a
/// pipe and waits for its end. When the pipe closes, because the process ended in whatever way, it
/// removes what is still on the list and exits.
///
/// Of the parent's files it holds the outputs and the connection to the launcher, until the parent
/// is gone: MPICH's hydra takes a process's exit status into account only if it finds the process
/// ended when these close, but a process closes its files a moment before it can be waited for.
/// Where there are other processes it holds them half a second longer, because hydra kills these as
/// soon as it misses one: in that time they see the loss themselves, say so, and end with their own
/// status, and interrupted ones get their signal and end with theirs.
///
/// Thread-safe but for construction and destruction.
class Janitor {
 public:
  /// Forks; to be called while the process has one thread. `has_others` where the launcher started
  /// more than one. Throws Error(internal), or Error(usage) where the system
  /// refuses another process.
  explicit Janitor(bool has_others);
  Janitor(const Janitor&) = delete;
  Janitor& operator=(const Janitor&) = delete;
  /// Removes what is on the list and waits for the child's end.
  ~Janitor();

  /// From now on `path` goes with the process. Relative to the folder of the call. Called before
  /// the file is made; throws Error(interrupted) after finish().
  void add(const std::string& path);
  /// `path` is gone, or has become a result.
  void remove(const std::string& path);

  /// Removes what is on the list, for the last moments of a process that does not end in good
  /// order: nothing can be added any more, and the child goes when the process has. Any thread.
  void finish() noexcept;

 private:
  [[noreturn]] static void serve(int pipe, int parent, bool has_others);
  void tell(char what, const std::string& path);

  std::mutex mutex_;
  std::set<std::string> paths_;
  bool is_finished_ = false;
  int pipe_ = -1;
  pid_t child_ = -1;
};

/// A name on the janitor's list for the life of this object.
class TemporaryName {
 public:
  TemporaryName(Janitor& janitor, std::string path) : janitor_(janitor), path_(std::move(path)) {
    janitor_.add(path_);
  }
  TemporaryName(const TemporaryName&) = delete;
  TemporaryName& operator=(const TemporaryName&) = delete;
  ~TemporaryName() { janitor_.remove(path_); }

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  Janitor& janitor_;
  std::string path_;
};

}  // namespace heddle
