#include <atomic>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "algorithms/cholesky/cholesky.hpp"
#include "kernels/kernel_case.hpp"
#include "node-runtime/node.hpp"
#include "node-runtime/node_facts.hpp"
#include "node-runtime/threads/program.hpp"
#include "tests/threads/small_matrices.hpp"

/// What a program that links heddle can get wrong, each answered by an exception; and what its own
/// functions throw, which ends their job and not the node.
namespace heddle {
namespace {

using testing::configuration;
using testing::dense;
using testing::dominant;

std::int64_t add_one(const KernelArguments& arguments) {
  arguments.tiles[0](0, 0) += 1;
  return 0;
}
std::int64_t throw_over_two(const KernelArguments& arguments) {
  if (arguments.tiles[0](0, 0) > 2) throw std::runtime_error("three is too many");
  return add_one(arguments);
}
constexpr Kernel increment{.name = "increment", .host = add_one, .emulated = add_one};
constexpr Kernel throwing{.name = "throwing", .host = throw_over_two, .emulated = throw_over_two};
constexpr Kernel throwing_on_hosts{.name = "throwing on hosts", .host = throw_over_two};

constexpr std::int64_t tile_size = 4;

/// A column of tiles of zeros.
Matrix<double> column(Node& node, std::int64_t tiles) {
  MatrixSpec spec(tiles * tile_size, tile_size);
  spec.layout.tile = tile_size;
  spec.distribution = node.facts().distribution;
  Matrix<double> m = node.matrix<double>(spec);
  m.fill([](std::int64_t, std::int64_t) { return 0.0; });
  return m;
}
TileRef cell(const Matrix<double>& m, int i) {
  return m(TileRow{i}, TileColumn{0});
}

/// The text of the usage error that `call` throws.
template <class Call>
std::string usage_error(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}
#define EXPECT_USAGE_ERROR(call, part)                                               \
  do {                                                                               \
    const std::string text = usage_error([&] { static_cast<void>(call); });          \
    EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' in " << text; \
  } while (false)

/// A job of one task.
JobSpec job_of(const Matrix<double>& m, std::function<Program(TaskStream&)> program) {
  JobSpec spec;
  spec.name = "own";
  spec.matrices = {m.id()};
  spec.keep_alive = {m.state()};
  spec.program = std::move(program);
  return spec;
}
Program insert_all(TaskStream& tasks, Kernel const* kernel,
                   std::vector<protocol::Access> accesses) {
  co_await tasks.insert(*kernel, {accesses});
}
Program increment_all(TaskStream& tasks, Matrix<double> m) {
  for (TileRow i{0}; i.value() < m.layout().tile_rows(); ++i) {
    co_await tasks.insert(increment, {read_write(m(i, TileColumn{0}))});
  }
}

void expect_usable(Node& node) {
  Matrix<double> a = dominant(node, 60);
  EXPECT_EQ(node.submit(cholesky(a)).wait().status, JobResult::Status::done);
}

std::string devices(int count) {
  if (count == 0) return "cpu_workers: 2";
  return "cpu_workers: 2, devices: {backend: emulated, per_node: " + std::to_string(count) + "}";
}

}  // namespace

TEST(WrongTasks, are_refused_by_programs_when_they_are_planned_and_by_streams_when_inserted) {
  Node node(configuration("cpu_workers: 1"));
  const Matrix<double> m = column(node, 12);
  const Matrix<double> other = column(node, 1);
  std::vector<protocol::Access> nine;
  for (int i = 0; i < 9; ++i) nine.push_back(read_write(cell(m, i)));
  const struct {
    std::vector<protocol::Access> accesses;
    const char* told;
  } wrong[] = {
      {{}, "with 0 accesses"},
      {nine, "with 9 accesses; a task has 1 to 8"},
      {{read(cell(m, 0)), write(cell(m, 1))}, "must be the task's main output"},
      {{read_write(cell(m, 3)), read(cell(m, 3))}, "twice"},
      {{read_write(cell(m, 0)), read(cell(other, 0))}, "not among the matrices of the job"},
  };
  for (const auto& [accesses, told] : wrong) {
    SCOPED_TRACE(told);
    EXPECT_USAGE_ERROR(node.submit(job_of(m,
                                          [accesses = accesses](TaskStream& tasks) {
                                            return insert_all(tasks, &increment, accesses);
                                          })),
                       told);
    UserStream stream = node.stream("stream", {m});
    EXPECT_USAGE_ERROR(stream.insert(increment, {accesses}), told);
    stream.insert(increment, {read_write(cell(m, 0))});
    EXPECT_EQ(stream.end().wait().status, JobResult::Status::done);
    EXPECT_USAGE_ERROR(stream.insert(increment, {read_write(cell(m, 0))}), "has ended");
    EXPECT_USAGE_ERROR(stream.end(), "has ended");
  }
  EXPECT_EQ(dense(m).front(), 5);
  EXPECT_USAGE_ERROR(node.submit({}), "has no program");
}

TEST(WrongJobs, throw_and_leave_the_node_as_it_was) {
  Node node(configuration("cpu_workers: 1"));
  const Matrix<double> m = column(node, 3);
  const auto spec = [&] {
    return job_of(m, [m](TaskStream& tasks) { return increment_all(tasks, m); });
  };
  Job job = node.prepare(spec());
  EXPECT_USAGE_ERROR(job.wait(), "was never started");
  job.reserve();
  EXPECT_USAGE_ERROR(job.reserve(), "has its memory");
  EXPECT_USAGE_ERROR(job.wait(), "was never started");
  job.start();
  EXPECT_USAGE_ERROR(job.start(), "was started before");
  EXPECT_USAGE_ERROR(job.reserve(), "has its memory");
  EXPECT_EQ(job.wait().status, JobResult::Status::done);
  EXPECT_USAGE_ERROR(job.wait(), "was waited for before");
  job.cancel();  // too late, and no harm
  const Job moved = std::move(job);
  EXPECT_TRUE(moved.done());
  EXPECT_USAGE_ERROR(job.done(), "moved from");  // NOLINT(bugprone-use-after-move): that is asked
  EXPECT_EQ(dense(m).front(), 1);
  Node second(configuration("cpu_workers: 1"));
  EXPECT_USAGE_ERROR(second.stream("stream", {m}), "of another node");
  {
    const UserStream open = node.stream("open", {m});
    EXPECT_USAGE_ERROR(node.stop(), "the task stream 'open' has not ended");
  }
  EXPECT_EQ(node.submit(spec()).wait().status, JobResult::Status::done);
  node.stop();
  EXPECT_USAGE_ERROR(node.submit(spec()), "after its node was stopped");
}

TEST(WrongTiles, are_refused_where_they_are_named) {
  Node node(configuration("cpu_workers: 1"));
  const Matrix<double> m = column(node, 3);
  EXPECT_USAGE_ERROR(m(TileRow{3}, TileColumn{0}), "no tile (3, 0): it has 3 x 1 tiles");
  EXPECT_USAGE_ERROR(m(TileRow{-1}, TileColumn{0}), "no tile (-1, 0)");
  EXPECT_USAGE_ERROR(m(TileRow{0}, TileColumn{1}), "no tile (0, 1)");
  const Matrix<double> lower = dominant(node, 96);
  EXPECT_USAGE_ERROR(lower(TileRow{0}, TileColumn{2}), "keeps the lower triangle");
}

TEST(WrongMatrices, are_refused) {
  Node node(configuration("cpu_workers: 1"));
  MatrixSpec spec(8, 8);
  spec.layout.tile = 4;
  spec.layout.strip = 5;
  EXPECT_USAGE_ERROR(node.matrix<double>(spec), "cannot be cut into tiles of 4 with strips of 5");
  spec.layout.strip = 0;
  spec.distribution.grid_rows = 2;
  const Matrix<double> elsewhere = node.matrix<double>(spec);
  UserStream stream = node.stream("elsewhere", {elsewhere});
  EXPECT_USAGE_ERROR(stream.insert(increment, {read_write(elsewhere(TileRow{1}, TileColumn{0}))}),
                     "on a tile of node 1; there are 1 nodes");
  EXPECT_USAGE_ERROR(node.wrap(nullptr, 8, {8, 8}), "no memory");
}

TEST(Handles, that_outlive_their_node_are_safe_and_say_so_when_used) {
  for (const int device_count : {0, 1}) {
    std::optional<Matrix<double>> m;
    std::optional<Job> done;
    std::optional<Job> prepared;
    std::optional<Job> reserved;
    std::optional<UserStream> stream;
    {
      Node node(configuration(devices(device_count)));
      m = column(node, 3);
      const auto spec = job_of(*m, [m = *m](TaskStream& tasks) { return increment_all(tasks, m); });
      done = node.submit(spec);
      EXPECT_EQ(done->wait().status, JobResult::Status::done);
      prepared = node.prepare(spec);
      reserved = node.prepare(spec);
      reserved->reserve();
      stream.emplace(node.stream("stream", {*m}));
    }
    EXPECT_USAGE_ERROR(m->node(), "was used after its node had ended");
    EXPECT_USAGE_ERROR(m->for_each_tile([](TileRow, TileColumn, TileView) {}), "had ended");
    EXPECT_TRUE(done->done());
    EXPECT_USAGE_ERROR(prepared->start(), "job 'own' was used after its node had ended");
    EXPECT_USAGE_ERROR(reserved->start(), "had ended");
    EXPECT_USAGE_ERROR(stream->insert(increment, {read_write(cell(*m, 0))}), "had ended");
    EXPECT_USAGE_ERROR(stream->end(), "had ended");
  }
}

TEST(Handles, of_a_job_that_another_thread_waits_for_throw_when_the_node_is_destroyed) {
  auto node = std::make_unique<Node>(configuration("cpu_workers: 1"));
  const Matrix<double> m = column(*node, 1);
  UserStream stream = node->stream("never ended", {m});
  JobSpec behind = job_of(m, [m](TaskStream& tasks) { return increment_all(tasks, m); });
  Job job = node->submit(std::move(behind));  // waits for the stream's end
  std::string told;
  std::thread waiting([&] {
    try {
      static_cast<void>(job.wait());
    } catch (const Error& error) {
      told = error.what();
    }
  });
  node.reset();
  waiting.join();
  EXPECT_FALSE(told.empty());
}

TEST(Exceptions, of_kernels_fail_their_job_with_their_text_and_the_node_goes_on) {
  for (const int device_count : {0, 1, 2}) {
    for (const Kernel* kernel : {&throwing, &throwing_on_hosts}) {
      SCOPED_TRACE(std::string(kernel->name) + ", devices: " + std::to_string(device_count));
      Node node(configuration(devices(device_count)));
      const Matrix<double> m = column(node, 5);
      for (int run = 0; run < 3; ++run) {
        UserStream stream = node.stream("counting", {m});
        for (int i = 0; i < 40; ++i) stream.insert(*kernel, {read_write(cell(m, i % 5))});
        const JobResult result = stream.end().wait();
        EXPECT_EQ(result.status, JobResult::Status::failed);
        EXPECT_EQ(result.code, ErrorCode::internal);
        EXPECT_NE(result.error.find(std::string(kernel->name) + " on tile "), std::string::npos)
            << result.error;
        EXPECT_NE(result.error.find("three is too many"), std::string::npos) << result.error;
      }
      expect_usable(node);
    }
  }
}

TEST(Kernels, that_do_not_end_end_the_node_where_they_count_their_operations) {
  static std::atomic<bool> goes_on;  // a kernel keeps nothing
  goes_on = false;
  constexpr Kernel endless{.name = "endless",
                           .host =
                               [](const KernelArguments&) {
                                 while (!goes_on) std::this_thread::yield();
                                 return std::int64_t{0};
                               },
                           .flops = [](const KernelCase&) { return 1e3; }};
  Node node(configuration("cpu_workers: 2, watchdog_seconds: 0.2"));
  const Matrix<double> m = column(node, 1);
  UserStream stream = node.stream("endless", {m});
  stream.insert(endless, {read_write(cell(m, 0))});
  Job job = stream.end();
  try {
    static_cast<void>(job.wait());
    ADD_FAILURE() << "it ended";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::internal);
    EXPECT_NE(std::string(error.what()).find("has run endless on a tile of 4 x 4 for 0."),
              std::string::npos)
        << error.what();
  }
  goes_on = true;
}

TEST(Exceptions, of_visits_come_to_the_caller_as_they_are) {
  Node node(configuration("cpu_workers: 2"));
  Matrix<double> m = column(node, 20);
  EXPECT_THROW(m.for_each_tile([](TileRow i, TileColumn, TileView) {
    if (i.value() == 7) throw std::out_of_range("seven");
  }),
               std::out_of_range);
  expect_usable(node);
}

TEST(Exceptions, of_programs_come_out_of_submit_or_fail_the_job) {
  Node node(configuration("cpu_workers: 2, window: 8"));
  const Matrix<double> m = column(node, 3);
  for (const int throws_in_walk : {1, 2}) {
    const auto walk = std::make_shared<int>(0);
    const auto program = [m, walk, throws_in_walk](TaskStream& tasks) -> Program {
      // A coroutine's captures end with the lambda's frame: what it uses is its own.
      return [](TaskStream& to, Matrix<double> cells, std::shared_ptr<int> count,
                int which) -> Program {
        ++*count;
        for (int i = 0; i < 100; ++i) {
          if (i == 50 && *count == which) throw std::runtime_error("at fifty");
          co_await to.insert(increment, read_write(cell(cells, i % 3)));
        }
      }(tasks, m, walk, throws_in_walk);
    };
    if (throws_in_walk == 1) {
      EXPECT_THROW(node.submit(job_of(m, program)), std::runtime_error);
    } else {
      const JobResult result = node.submit(job_of(m, program)).wait();
      EXPECT_EQ(result.status, JobResult::Status::failed);
      EXPECT_NE(result.error.find("at fifty"), std::string::npos) << result.error;
    }
    expect_usable(node);
  }
}

}  // namespace heddle
