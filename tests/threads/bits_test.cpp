#include <algorithm>
#include <cstdlib>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <initializer_list>
#include <set>
#include <string>

#include "tests/threads/mpi_run.hpp"

namespace heddle {
namespace {

/// The first word of each output, which is the hash, over all numbers of nodes.
std::set<std::string> hashes(const std::string& arguments,
                             std::initializer_list<int> numbers_of_nodes = {1, 2, 3, 4, 6}) {
  std::set<std::string> all;
  for (const int nodes : numbers_of_nodes) {
    const testing::MpiRun run = testing::run_nodes(nodes, HEDDLE_BITS_PROGRAM, arguments);
    EXPECT_EQ(run.status, 0) << nodes << " nodes: " << run.output;
    all.insert(run.output.substr(0, run.output.find(' ')));
  }
  return all;
}

/// Enough for all paths of messages and all orders (bits_program.cpp).
const std::string repeats = std::getenv("HEDDLE_REPEATS") ? std::getenv("HEDDLE_REPEATS") : "6";

}  // namespace

TEST(Bits, of_factor_and_solution_are_the_same_on_any_nodes_grid_workers_and_schedule) {
  std::set<std::string> all = hashes("cpus " + repeats);
  all.merge(hashes("cpus 2", {9, 16}));  // trees of many readers
  EXPECT_EQ(all.size(), 1U);
}

TEST(Bits, are_the_same_with_any_number_of_devices) {
  EXPECT_EQ(hashes("devices " + repeats).size(), 1U);
}

TEST(Bits, are_the_same_wherever_whole_tasks_run) {
  const int fewer = std::min(5, std::stoi(repeats));
  EXPECT_EQ(hashes(fmt::format("lent {}", fewer), {1, 2, 3}).size(), 1U);
}

TEST(Bits, are_the_same_whoever_runs_the_fine_tasks_of_divided_ones) {
  const int fewer = std::min(4, std::stoi(repeats));
  EXPECT_EQ(hashes(fmt::format("divided {}", fewer), {1, 2, 4, 6}).size(), 1U);
  EXPECT_EQ(hashes(fmt::format("divided-strips {}", fewer), {1, 2, 4}).size(), 1U);
}

TEST(Bits, are_the_same_in_core_and_out_of_core) {
  // They take longer; of two runs the first one is in core.
  const int fewer = std::clamp(std::stoi(repeats), 2, 5);
  EXPECT_EQ(hashes(fmt::format("out-of-core {}", fewer), {1, 2, 3}).size(), 1U);
}

}  // namespace heddle
