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

/// What surrounds a subcommand's work: the process's place among others, its temporary files, its
/// signals, its last words.
class Run {
 public:
  /// Before any thread exists. Initialises MPI when there are several processes.
  explicit Run(const Launcher& launcher);
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;
  ~Run() = default;

  [[nodiscard]] const Launcher& launcher() const { return launcher_; }
  [[nodiscard]] const MpiSession& mpi() const { return mpi_; }
  [[nodiscard]] Janitor& janitor() { return janitor_; }
  [[nodiscard]] Results& results() { return results_; }
  [[nodiscard]] bool interrupted() const { return interrupts_.pending(); }

  /// One line on stderr, after whatever a live line showed: "heddle: node 1: ...".
  void complain(const std::string& message) const;

  /// Ends the process now, without waiting for other nodes or threads: for what a failed node has
  /// left to do. Removes the temporary files. Of an interrupted process the interruption says how
  /// it ended, with its own status.
  [[noreturn]] void leave(int status);

 private:
  Launcher launcher_;
  Janitor janitor_;
  Results results_;
  Interrupts interrupts_;
  MpiSession mpi_;
};

}  // namespace heddle
