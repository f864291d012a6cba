#pragma once

#include <mutex>
#include <set>
#include <string>
#include <sys/types.h>

namespace heddle {

/// Removes a run's temporary files even if the process is killed: launchers answer the death of one
/// process with SIGKILL to all others, which leaves no time to clean up.
///
/// A small child in its own session, forked before any thread exists, receives the names through a
/// pipe. When the pipe closes, however the process ended, it removes the listed files and exits.
///
/// The child keeps the parent's outputs and connection to the launcher open until the parent has
/// ended: MPICH's hydra uses a process's exit status only if the process has ended when these
/// close, but a process closes its files shortly before it can be waited for. With several
/// processes it keeps them for half a second longer, since hydra kills the others as soon as it
/// misses one: so they detect the loss themselves, report it, and end with their own status.
///
/// Thread-safe except for construction and destruction.
class Janitor {
 public:
  /// Forks; call it while the process has one thread. `has_others`: the launcher started several
  /// processes. Throws Error(internal), or Error(usage) if the system refuses a process.
  explicit Janitor(bool has_others);
  Janitor(const Janitor&) = delete;
  Janitor& operator=(const Janitor&) = delete;
  /// Removes listed files and waits for the child.
  ~Janitor();

  /// Lists `path`, relative to the present folder, for removal. Call it before creating the file;
  /// throws Error(interrupted) after finish().
  void add(const std::string& path);
  /// Takes `path` off the list: removed, or now a result.
  void remove(const std::string& path);

  /// Removes listed files when the process is about to exit early. Nothing can be added afterwards;
  /// the child ends with the process. Thread: any.
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

/// RAII entry of the janitor's list.
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
