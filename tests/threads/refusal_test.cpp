#include <gtest/gtest.h>

#include "tests/threads/mpi_run.hpp"

namespace heddle {

TEST(Refusal, of_a_job_on_one_node_ends_the_others_that_have_begun_it) {
  for (const char* kind : {"job", "stream"}) {
    SCOPED_TRACE(kind);
    const testing::MpiRun run = testing::run_nodes(2, HEDDLE_REFUSAL_PROGRAM, kind);
    const auto has = [&](const char* part) {
      EXPECT_NE(run.output.find(part), std::string::npos) << part << " in:\n" << run.output;
    };
    has("node 1: status 2: copies of tiles take");
    has("node 0: status 4: node 1 failed: copies of tiles take");
    EXPECT_EQ(run.output.find("nothing has advanced"), std::string::npos) << run.output;
  }
}

}  // namespace heddle
