#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "apps/interrupts.hpp"
#include "apps/janitor.hpp"
#include "apps/launcher.hpp"
#include "apps/results.hpp"
#include "apps/terminal.hpp"

namespace heddle {

/// Environment of a subcommand: the process's rank, temporary files, signals, and final messages.
class Run {
 public:
  /// Construct before any thread exists. Initialises MPI if there are several processes. If this
  /// process cannot join the others, it exits and has the launcher end them.
  explicit Run(const Launcher& launcher);
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;
  ~Run() = default;

  [[nodiscard]] const Launcher& launcher() const { return launcher_; }
  /// An error during construction, to be reported to all; then only mpi() and complain() may be
  /// called.
  [[nodiscard]] const std::optional<Error>& trouble() const { return trouble_; }
  [[nodiscard]] const MpiSession& mpi() const { return *mpi_; }
  [[nodiscard]] Janitor& janitor() { return *janitor_; }
  [[nodiscard]] Results& results() { return *results_; }
  [[nodiscard]] bool interrupted() const { return interrupts_ && interrupts_->pending(); }

  /// Prints a line on stderr, after clearing a live line: "heddle: node 1: ...".
  void complain(const std::string& message) const;

  /// Exits now, without waiting for other nodes or threads, after a failure. Removes temporary
  /// files. If the process was interrupted, the interruption prints the message and determines the
  /// status.
  [[noreturn]] void leave(int status);

 private:
  [[noreturn]] void give_up(const Error& error, bool mpi_has_begun);

  Launcher launcher_;
  std::optional<Error> trouble_;
  std::optional<Janitor> janitor_;
  std::optional<Results> results_;
  std::optional<Interrupts> interrupts_;
  std::optional<MpiSession> mpi_;
};

}  // namespace heddle
