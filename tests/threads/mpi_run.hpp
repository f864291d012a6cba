#pragma once

#include <array>
#include <chrono>
#include <cstdio>
#include <gtest/gtest.h>
#include <string>

namespace heddle::testing {

/// What a program printed, and pclose's status.
struct MpiRun {
  std::string output;
  int status = -1;
};

/// Seconds that a program of run_nodes() may take: less than the tests' own limits, so that a
/// program that hangs is named, with what it had printed.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr int mpi_seconds_max = 240;
#else
inline constexpr int mpi_seconds_max = 90;
#endif

/// Runs `program arguments` on `nodes` nodes to its end. After `seconds_max` it is ended, which
/// fails the test.
inline MpiRun run_nodes(int nodes, const std::string& program, const std::string& arguments,
                        int seconds_max = mpi_seconds_max) {
  using Clock = std::chrono::steady_clock;
  // SIGTERM lets the launcher end its processes.
  std::string command =
      "timeout --kill-after=10 " + std::to_string(seconds_max) + " " HEDDLE_MPIEXEC " -n ";
  for (const std::string& word : {std::to_string(nodes), program, arguments}) {
    command.append(word).append(" ");
  }
  command.append("2>&1");
  MpiRun run;
  const Clock::time_point begin = Clock::now();
  FILE* pipe = ::popen(command.c_str(), "r");
  std::array<char, 256> line{};
  while (std::fgets(line.data(), line.size(), pipe) != nullptr) run.output += line.data();
  run.status = ::pclose(pipe);
  if (Clock::now() - begin >= std::chrono::seconds(seconds_max)) {
    ADD_FAILURE() << "ran into its limit of " << seconds_max << " s: " << command
                  << "\nIt had printed:\n"
                  << run.output;
  }
  return run;
}

}  // namespace heddle::testing
