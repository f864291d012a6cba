#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "apps/interrupts.hpp"
#include "apps/janitor.hpp"
#include "apps/launcher.hpp"

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
  [[nodiscard]] bool interrupted() const { return interrupts_.pending(); }

  /// One line on stderr, after whatever a live line showed: "heddle: node 1: ...".
  void complain(const std::string& message) const;

  /// Ends the process now, without waiting for other nodes or threads: for what a failed node has
  /// left to do. Removes the temporary files.
  [[noreturn]] void leave(int status);

 private:
  Launcher launcher_;
  Janitor janitor_;
  Interrupts interrupts_;
  MpiSession mpi_;
};

/// Prints an error as all of heddle's are printed. Keeps quiet about what went wrong in writing it.
void print_error(const std::string& message);

}  // namespace heddle
