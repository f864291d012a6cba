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
  /// Before any thread exists. Initialises MPI when there are several processes. Where this
  /// process cannot join the others, it ends here and has the launcher end them.
  explicit Run(const Launcher& launcher);
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;
  ~Run() = default;

  [[nodiscard]] const Launcher& launcher() const { return launcher_; }
  /// What already went wrong here, for all to be told: nothing else may be asked of this object
  /// then but mpi() and complain().
  [[nodiscard]] const std::optional<Error>& trouble() const { return trouble_; }
  [[nodiscard]] const MpiSession& mpi() const { return *mpi_; }
  [[nodiscard]] Janitor& janitor() { return *janitor_; }
  [[nodiscard]] Results& results() { return *results_; }
  [[nodiscard]] bool interrupted() const { return interrupts_ && interrupts_->pending(); }

  /// One line on stderr, after whatever a live line showed: "heddle: node 1: ...".
  void complain(const std::string& message) const;

  /// Ends the process now, without waiting for other nodes or threads: for what a failed node has
  /// left to do. Removes the temporary files. Of an interrupted process the interruption says how
  /// it ended, with its own status.
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
