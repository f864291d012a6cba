#include <gtest/gtest.h>

#include "tests/threads/mpi_run.hpp"

namespace heddle {
namespace {

void check(int nodes, const char* arguments) {
  const testing::MpiRun run = testing::run_nodes(nodes, HEDDLE_PARTS_PROGRAM, arguments);
  EXPECT_EQ(run.status, 0) << nodes << " nodes, " << arguments << ":\n" << run.output;
  // MPICH says so when datatypes are left at its end.
  EXPECT_EQ(run.output.find("leaked"), std::string::npos) << run.output;
}

}  // namespace

TEST(Parts, of_tiles_travel_and_nothing_else_does) {
  for (const int nodes : {2, 4}) check(nodes, "cpus");
}

TEST(Parts, of_tiles_travel_from_and_to_devices) {
  check(3, "devices");
}

}  // namespace heddle
