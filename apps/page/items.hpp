#pragma once

#include <cstdint>
#include <vector>

#include "replay/run.hpp"

namespace heddle::page {

/// What the page draws as one: a task, or several of a thread that began close to each other.
struct Item {
  replay::ThreadId thread;
  replay::Interval time;  ///< from the first one's begin to the last one's end
  trace::NameId kernel;   ///< of the longest of them
  std::int64_t count = 1;
  std::int64_t busy_ns = 0;  ///< in which at least one of them ran
  replay::TaskId task;       ///< the first of them
  std::uint8_t stream = 0;   ///< of the device that ran them, from 1; 0: of none, or not recorded
};

/// The tasks thread by thread, in the order in which they began. Those of a thread, or of a
/// device's stream, that began in the same `quantum_ns` are one; 0: each is one.
[[nodiscard]] std::vector<Item> items_of(const replay::RunTrace& run, std::int64_t quantum_ns);

}  // namespace heddle::page
