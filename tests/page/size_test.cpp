#include <gtest/gtest.h>
#include <iostream>
#include <nlohmann/json.hpp>

#include "apps/page/page.hpp"
#include "replay/analysis.hpp"
#include "tests/page/cholesky_run.hpp"
#include "tests/trace/trace_fixture.hpp"

namespace heddle::page {
namespace {

class PageSize : public trace::test::TraceTest {};

}  // namespace

TEST_F(PageSize, holds_a_million_tasks_with_all_that_they_read_in_20_MiB) {
  const auto run = replay::make_run("a run", test::CholeskyRun(182, 4, 16).nodes());
  ASSERT_GT(run.tasks.size(), 1'000'000U);
  Page page(file("page.html").string());
  page.add(run, replay::analyze(run, 0), {});
  const PageSummary summary = page.write();
  std::cout << run.tasks.size() << " tasks: " << summary.bytes << " bytes\n";
  EXPECT_LT(summary.bytes, std::uint64_t{20} << 20U);
  EXPECT_TRUE(summary.left_out.empty()) << summary.left_out[0];
}

}  // namespace heddle::page
