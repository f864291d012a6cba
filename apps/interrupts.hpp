#pragma once

#include <atomic>
#include <csignal>
#include <functional>
#include <thread>

namespace heddle {

/// Ends the process in good order on SIGINT, SIGTERM and SIGHUP: a thread of its own waits for
/// them, calls `end` with the signal's name, and leaves with status 130. All other threads are deaf
/// to the signals, so no system call is cut short and no code runs in a signal handler.
///
/// Made before any other thread. The destructor gives the signals back their usual effect.
class Interrupts {
 public:
  explicit Interrupts(std::function<void(const char* name)> end);
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;
  ~Interrupts();

  /// A signal has come, perhaps not yet seen by the thread.
  [[nodiscard]] bool pending() const;

  /// For a thread that sees pending(): the other thread ends the process.
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
