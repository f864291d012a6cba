#pragma once

#include <atomic>
#include <csignal>
#include <functional>
#include <thread>

namespace heddle {

/// Ends the process cleanly on SIGINT, SIGTERM and SIGHUP: a thread waits for them, calls `end`
/// with the signal's name, and exits with status 130. All other threads block these signals, so no
/// system call is interrupted and no code runs in a signal handler.
///
/// Create it before any other thread. The destructor restores the default actions.
class Interrupts {
 public:
  explicit Interrupts(std::function<void(const char* name)> end);
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;
  ~Interrupts();

  /// A signal has arrived, perhaps not yet handled by the thread.
  [[nodiscard]] bool pending() const;

  /// Blocks until the thread ends the process; for a thread that sees pending().
  [[noreturn]] static void await_end();

 private:
  void run();

  std::function<void(const char*)> end_;
  sigset_t before_{};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> seen_{false};
  std::thread thread_;
};

}  // namespace heddle
