#pragma once

#include <chrono>
#include <functional>

namespace heddle::collectives {

/// How the threads of a group wait for each other. Without functions they sleep until another
/// thread wakes them, and the steady clock tells how long nothing has happened.
struct Waiting {
  using Time = std::chrono::steady_clock::time_point;

  /// What a thread does that waits where no progress thread moves messages: called again and again,
  /// with no lock held but that of who is at the board. Null: the thread sleeps.
  std::function<void()> drive{};
  /// Another clock than the steady one; null: that one.
  std::function<Time()> clock{};

  [[nodiscard]] Time now() const { return clock ? clock() : std::chrono::steady_clock::now(); }
};

}  // namespace heddle::collectives
