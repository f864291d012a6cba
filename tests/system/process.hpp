#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <sys/types.h>
#include <vector>

namespace heddle::testing {

/// How a process ended and what it said.
struct Ended {
  int status = -1;  ///< exit status; 128 + number of the signal that killed it
  bool timed_out = false;
  std::string out;
  std::string error;
};

/// A process of its own session, started by the constructor. What still runs of it is killed in the
/// destructor, and after the time limit.
class Process {
 public:
  Process(const std::vector<std::string>& words, const std::string& folder,
          std::chrono::seconds time_max = std::chrono::seconds(60));
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process();

  [[nodiscard]] pid_t id() const { return id_; }

  /// Reads until the output contains `text` (of stdout and stderr); false if it ends before that.
  [[nodiscard]] bool wait_for_output(const std::string& text);
  void signal(int number) const;
  [[nodiscard]] Ended wait();

 private:
  /// Reads what is there, at most until `deadline_`; false at the end of both outputs.
  bool read_more();
  void reap();

  pid_t id_ = -1;
  int out_ = -1;
  int error_ = -1;
  std::chrono::steady_clock::time_point deadline_;
  bool reaped_ = false;
  Ended ended_;
};

/// Processes of this test that are there now, by name of the program, children of children too:
/// this process adopts orphans (call adopt_orphans() first).
[[nodiscard]] std::vector<pid_t> processes_named(const std::string& name);
void adopt_orphans();

/// Polls `condition` until it holds or the time is over.
template <class Condition>
bool eventually(const Condition& condition, std::chrono::milliseconds time_max);

void pause_briefly();

template <class Condition>
bool eventually(const Condition& condition, std::chrono::milliseconds time_max) {
  const auto end = std::chrono::steady_clock::now() + time_max;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    pause_briefly();
  }
  return true;
}

}  // namespace heddle::testing
