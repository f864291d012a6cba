#include "apps/interrupts.hpp"

#include <pthread.h>
#include <unistd.h>
#include <utility>

#include "base/error.hpp"
#include "base/process_limits.hpp"

namespace heddle {
namespace {

/// Ends the waiting thread's sigwait.
constexpr int wake_signal = SIGURG;  // ignored by default, so a late one does no harm

/// Without SIGHUP if it is ignored (nohup).
sigset_t ending_signals() {
  sigset_t signals{};
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  struct sigaction hangup {};
  if (::sigaction(SIGHUP, nullptr, &hangup) == 0 && hangup.sa_handler != SIG_IGN) {
    sigaddset(&signals, SIGHUP);
  }
  return signals;
}

const char* signal_name(int signal) {
  if (signal == SIGINT) return "SIGINT";
  return signal == SIGTERM ? "SIGTERM" : "SIGHUP";
}

}  // namespace

Interrupts::Interrupts(std::function<void(const char*)> end) : end_(std::move(end)) {
  sigset_t signals = ending_signals();
  sigaddset(&signals, wake_signal);
  pthread_sigmask(SIG_BLOCK, &signals, &before_);
  try {
    thread_ = start_thread("signals", [this] { run(); });
  } catch (const Error&) {
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    throw;
  }
}

Interrupts::~Interrupts() {
  // Relaxed: the signal orders it; the thread checks after each signal.
  stopping_.store(true, std::memory_order_relaxed);
  pthread_kill(thread_.native_handle(), wake_signal);
  thread_.join();
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void Interrupts::run() {
  sigset_t signals = ending_signals();
  sigaddset(&signals, wake_signal);
  while (!stopping_.load(std::memory_order_relaxed)) {
    int signal = 0;
    if (sigwait(&signals, &signal) != 0 || signal == wake_signal) continue;
    seen_.store(true, std::memory_order_relaxed);
    end_(signal_name(signal));
    ::_exit(exit_status(ErrorCode::interrupted));
  }
}

bool Interrupts::pending() const {
  sigset_t waiting{};
  sigpending(&waiting);
  sigset_t ending = ending_signals();
  sigandset(&ending, &ending, &waiting);
  return seen_.load(std::memory_order_relaxed) || sigisemptyset(&ending) == 0;
}

void Interrupts::await_end() {
  for (;;) ::pause();
}

}  // namespace heddle
