#pragma once

#include <cstdint>
#include <optional>

#include "node-runtime/threads/engine.hpp"

namespace heddle {

/// Walks the programs of the jobs in turn. A program runs without the engine's lock: no other
/// thread uses it, and its job cannot end before hand_over() reports the program's end.
///
/// Thread: one.
class Generation {
 public:
  Generation(Engine& engine, trace::ThreadTrace& trace) : engine_(engine), trace_(trace) {}

  enum class Walked : std::uint8_t {
    some,
    enough,  ///< some, and there are tasks for all workers for a while
    no_program,
    window_full,
  };
  /// Walks a program for a while, if there is one that may go on, and records how far it is then.
  Walked walk();

 private:
  static bool resume(JobRecord& job, std::optional<Error>& error);
  [[nodiscard]] std::optional<trace::NameId> counter_of(JobRecord& job);

  Engine& engine_;
  trace::ThreadTrace& trace_;
  JobTable::Turn turn_;  ///< the next one, if it is known
};

}  // namespace heddle
