#include "node-runtime/threads/host_executor.hpp"

#include <gtest/gtest.h>
#include <stdexcept>
#include <string>
#include <vector>

#include "node-runtime/threads/job_memory.hpp"
#include "tests/threads/engine_parts.hpp"

namespace heddle {
namespace {

std::int64_t add_one(const KernelArguments& arguments) {
  arguments.tiles[0](0, 0) += 1;
  return 0;
}
std::int64_t fail_at_two(const KernelArguments& arguments) {
  arguments.tiles[0](1, 1) = -4;
  return 2;
}
std::int64_t throw_a_word(const KernelArguments& /*arguments*/) {
  throw std::runtime_error("a word");
}
constexpr Kernel increment{.name = "increment", .host = add_one};
constexpr Kernel failing{.name = "failing",
                         .host = fail_at_two,
                         .failing_element = [](const KernelParameters& /*parameters*/,
                                               std::int64_t info) -> TileElement {
                           return {info - 1, info - 1};
                         }};
constexpr Kernel throwing{.name = "throwing", .host = throw_a_word};

class Reports final : public KernelReports {
 public:
  void numerical_failure(JobRecord& /*job*/, std::int64_t info, double pivot) override {
    said.push_back(fmt::format("info {}, pivot {}", info, pivot));
  }
  void kernel_threw(const protocol::Task& task, const Error& error) override {
    said.push_back(fmt::format("{} threw {}", kernel_of(task).name, error.what()));
  }
  std::vector<std::string> said;
};

/// Tiles of 2 x 2 in host memory, and a worker.
class HostExecutorTest : public ::testing::Test {
 protected:
  HostExecutorTest() {
    constexpr auto tiles = static_cast<std::size_t>(testing::LoneProtocol::tiles);
    TileTable table;
    table.shapes.assign(tiles, {2, 2});
    table.home_places.assign(tiles, host_place);
    table.is_local.assign(tiles, true);
    store_.add_matrix(node_.matrix, std::move(table));
    for (std::int32_t tile = 0; tile < testing::LoneProtocol::tiles; ++tile) content(tile) = 0;
  }

  protocol::Task& ready(const Kernel& kernel, std::int32_t tile, std::int64_t info_base = 0) {
    const std::vector accesses{node_.access(tile, protocol::AccessMode::read_write)};
    TaskOptions options;
    options.info_base = info_base;
    node_.protocol.append(*job_->handle, work_of(kernel, options), 0, accesses, node_.actions);
    return *node_.take_ready().front();
  }
  double& content(std::int32_t tile) {
    return *reinterpret_cast<double*>(
        store_.address(node_.protocol.current_block({node_.matrix, tile}, host_place)));
  }
  HostExecutor executor(HostExecutor::WorkerSeconds pretended = {}) {
    return {store_, recorder_, watch_, reports_, std::move(pretended)};
  }

  testing::LoneProtocol node_;
  std::shared_ptr<JobRecord> job_ = node_.begin("job");
  TileStore store_{{}, std::uint64_t{1} << 30};
  trace::Recorder recorder_{{.node = NodeId{0}, .node_count = 1, .enabled = false}};
  trace::ThreadTrace& trace_ = recorder_.thread("worker", 0);
  KernelWatch watch_{1};
  Reports reports_;
};

}  // namespace

TEST_F(HostExecutorTest, runs_the_kernel_on_the_tasks_tile) {
  const std::int64_t before = trace::now_ns();
  const std::int64_t end = executor().execute(ready(increment, 3), 0, trace_);
  EXPECT_GE(end, before);
  EXPECT_EQ(content(3), 1);
  EXPECT_EQ(content(2), 0);
  EXPECT_TRUE(reports_.said.empty());
  EXPECT_EQ(trace_.totals().tasks, 1U);
}

TEST_F(HostExecutorTest, skips_the_kernels_of_a_cancelled_job) {
  protocol::Task& task = ready(increment, 0);
  job_->cancelled = true;
  executor().execute(task, 0, trace_);
  EXPECT_EQ(content(0), 0);
}

TEST_F(HostExecutorTest, reports_the_index_and_the_element_of_a_failure) {
  executor().execute(ready(failing, 1, 40), 0, trace_);
  EXPECT_EQ(reports_.said, std::vector<std::string>{"info 42, pivot -4"});
}

TEST_F(HostExecutorTest, reports_what_a_kernel_throws_and_goes_on) {
  executor().execute(ready(throwing, 1), 0, trace_);
  EXPECT_EQ(reports_.said, std::vector<std::string>{"throwing threw a word"});
  executor().execute(ready(increment, 2), 0, trace_);
  EXPECT_EQ(content(2), 1);
  EXPECT_FALSE(watch_.stuck(1, 0, [] { return 1.0; })) << "nothing runs";
}

TEST_F(HostExecutorTest, sleeps_instead_of_kernels_whose_time_is_pretended) {
  const auto pretended = [](const Kernel& kernel, const KernelArguments&) {
    return &kernel == &failing ? 0.02 : 0.0;
  };
  HostExecutor some(store_, recorder_, watch_, reports_, pretended);
  const std::int64_t begin = trace::now_ns();
  some.execute(ready(failing, 1), 0, trace_);
  EXPECT_GE(trace::now_ns() - begin, 15'000'000);
  EXPECT_TRUE(reports_.said.empty()) << "it computes nothing";
  some.execute(ready(increment, 2), 0, trace_);
  EXPECT_EQ(content(2), 1);
}

TEST_F(HostExecutorTest, finds_the_memory_of_a_job_all_or_none) {
  JobMemory memory({.cpu_workers = 1, .extra_blocks_max = 2, .oversubscribed = false}, store_);
  JobRecord job(nullptr);
  job.spec.matrices = {node_.matrix};
  job.blocks_minimum = {3};
  job.takers = {{node_.matrix}};
  memory.reserve(job, JobMemory::Pages::soon);
  ASSERT_EQ(job.pools.size(), 1U);
  EXPECT_EQ(job.pools[0].minimum, 3);
  EXPECT_EQ(job.pools[0].capacity, 5);
  EXPECT_EQ(memory.capacity(host_place, 3, false, 32), 5);
  memory.give_back(job);
  EXPECT_TRUE(job.pools.empty());
  memory.give_back(job);  // again: nothing is left
  job.blocks_minimum = {1 << 30};
  EXPECT_THROW(memory.reserve(job, JobMemory::Pages::soon), Error);
  EXPECT_TRUE(job.pools.empty());
}

}  // namespace heddle
