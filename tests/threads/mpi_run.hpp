#pragma once

#include <array>
#include <cstdio>
#include <string>

namespace heddle::testing {

/// What a program printed, and pclose's status.
struct MpiRun {
  std::string output;
  int status = -1;
};

/// Runs `program arguments` on `nodes` nodes to its end.
inline MpiRun run_nodes(int nodes, const std::string& program, const std::string& arguments) {
  std::string command = HEDDLE_MPIEXEC " -n ";
  for (const std::string& word : {std::to_string(nodes), program, arguments}) {
    command.append(word).append(" ");
  }
  command.append("2>&1");
  MpiRun run;
  FILE* pipe = ::popen(command.c_str(), "r");
  std::array<char, 256> line{};
  while (std::fgets(line.data(), line.size(), pipe) != nullptr) run.output += line.data();
  run.status = ::pclose(pipe);
  return run;
}

}  // namespace heddle::testing
