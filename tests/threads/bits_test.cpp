#include <array>
#include <cstdio>
#include <cstdlib>
#include <gtest/gtest.h>
#include <memory>
#include <set>
#include <string>

namespace heddle {
namespace {

/// Output of the program on `nodes` nodes; its status in `status`.
std::string run(int nodes, const std::string& arguments, int& status) {
  const std::string command = std::string(HEDDLE_MPIEXEC) + " -n " + std::to_string(nodes) + " " +
                              HEDDLE_BITS_PROGRAM + " " + arguments + " 2>&1";
  std::string output;
  FILE* pipe = ::popen(command.c_str(), "r");
  std::array<char, 256> line{};
  while (std::fgets(line.data(), line.size(), pipe) != nullptr) output += line.data();
  status = ::pclose(pipe);
  return output;
}

/// The first word of each output, which is the hash, over all numbers of nodes.
std::set<std::string> hashes(const std::string& arguments) {
  std::set<std::string> all;
  for (const int nodes : {1, 2, 3, 4, 6}) {
    int status = 0;
    const std::string output = run(nodes, arguments, status);
    EXPECT_EQ(status, 0) << nodes << " nodes: " << output;
    all.insert(output.substr(0, output.find(' ')));
  }
  return all;
}

const std::string repeats = std::getenv("HEDDLE_REPEATS") ? std::getenv("HEDDLE_REPEATS") : "20";

}  // namespace

TEST(Bits, of_factor_and_solution_are_the_same_on_any_nodes_grid_workers_and_schedule) {
  EXPECT_EQ(hashes("cpus " + repeats).size(), 1U);
}

TEST(Bits, are_the_same_with_any_number_of_devices) {
  EXPECT_EQ(hashes("devices " + repeats).size(), 1U);
}

}  // namespace heddle
