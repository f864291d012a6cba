#include "algorithms/walk/tile_walk.hpp"

#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/walk/job.hpp"
#include "base/error.hpp"
#include "node-runtime/matrix_state.hpp"
#include "node-runtime/node.hpp"
#include "node-runtime/threads/program.hpp"

namespace heddle {
namespace {

std::int64_t nothing(const KernelArguments& /*arguments*/) {
  return 0;
}
constexpr Kernel any_kernel{.name = "any", .host = nothing};

/// What a program does on one node.
class Listener final : public ProgramListener {
 public:
  void insert(const Kernel& /*kernel*/, const TaskOptions& /*options*/,
              std::span<const protocol::Access> accesses) override {
    std::string text = "task";
    for (const protocol::Access& a : accesses) text += ' ' + name_of(a);
    calls.push_back(std::move(text));
  }
  void announce(const protocol::Access& access, NodeId reader, std::int32_t /*priority*/) override {
    calls.push_back("send " + name_of(access) + " to " + std::to_string(reader.value()));
  }
  void release(const protocol::Access& access) override {
    calls.push_back("release " + name_of(access));
  }

  std::vector<std::string> calls;

 private:
  [[nodiscard]] static std::string name_of(const protocol::Access& a) {
    std::string text = std::to_string(a.tile.index);
    if (a.version != protocol::count_here) text += 'v' + std::to_string(a.version.value());
    return text;
  }
};

class TileWalks : public testing::Test {
 protected:
  /// A matrix without memory in 3 x 3 tiles of one element on a grid of nodes.
  [[nodiscard]] static Matrix<double> matrix(const Distribution& grid, Storage storage) {
    auto state = std::make_shared<MatrixState>();
    state->spec = MatrixSpec({.rows = 3, .columns = 3}, grid, storage);
    return Matrix<double>(std::move(state));
  }
  template <class Make>
  static std::vector<std::string> calls_on(std::int32_t node, const Make& make) {
    Listener listener;
    TaskStream stream(listener, NodeId{node});
    Program program = make(stream);
    while (program.resume()) {
    }
    return listener.calls;
  }
};

/// Column 0 reads tile (0, 0), then column 1 reads column 0 by rows.
Program small_program(TaskStream& tasks, Matrix<double> a) {
  TileWalk walk(tasks, a);
  const TileColumn first{0};
  const TileRange panel = walk.column(first, TileRow{1});
  const TileRange next = walk.column(TileColumn{1}, TileRow{1});
  for (const auto task : walk.over(walk.tile(TileRow{0}, first))) {
    co_await task.insert(any_kernel, {read_write(a(task.row, task.column))});
  }
  walk.broadcast(a(TileRow{0}, first), {panel});
  for (const auto task : walk.over(panel)) {
    co_await task.insert(any_kernel,
                         {read_write(a(task.row, task.column)), read(a(TileRow{0}, first))});
  }
  for (TileRow i{1}; i.value() < 3; ++i) {
    walk.broadcast(a(i, first), {walk.row_of(next, i)});
  }
  for (const auto task : walk.over(next)) {
    co_await task.insert(any_kernel,
                         {read_write(a(task.row, task.column)), read(a(task.row, first))});
  }
}

Program reads_without_broadcast(TaskStream& tasks, Matrix<double> a) {
  TileWalk walk(tasks, a);
  for (const auto task : walk.over(walk.column(TileColumn{0}, TileRow{1}))) {
    co_await task.insert(
        any_kernel, {read_write(a(task.row, task.column)), read(a(TileRow{0}, TileColumn{0}))});
  }
}

Program writes_another_tile(TaskStream& tasks, Matrix<double> a) {
  TileWalk walk(tasks, a);
  for (const auto task : walk.over(walk.column(TileColumn{0}, TileRow{1}))) {
    co_await task.insert(any_kernel, {read_write(a(TileRow{0}, task.column))});
  }
}

Program inserts_nothing(TaskStream& tasks, Matrix<double> a) {
  TileWalk walk(tasks, a);
  for (const auto task : walk.over(walk.column(TileColumn{0}, TileRow{1}))) {
    static_cast<void>(task);
    co_await tasks.room();
  }
}

void expect_usage_error(const auto& call, const std::string& text) {
  try {
    call();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  }
}

}  // namespace

TEST_F(TileWalks, visit_all_tasks_on_one_node_and_give_copies_up_after_the_last_reader) {
  const Matrix<double> a = matrix({1, 1, 0}, Storage::lower);
  EXPECT_EQ(calls_on(0, [&](TaskStream& tasks) { return small_program(tasks, a); }),
            (std::vector<std::string>{"task 0", "task 1 0", "task 2 0", "release 0", "task 4 1",
                                      "task 5 2", "release 1", "release 2"}));
}

TEST_F(TileWalks, send_a_tile_to_each_node_that_reads_it_as_soon_as_it_is_broadcast) {
  const Matrix<double> a = matrix({1, 2, 0}, Storage::lower);  // columns 0 and 2 are node 0's
  EXPECT_EQ(
      calls_on(0, [&](TaskStream& tasks) { return small_program(tasks, a); }),
      (std::vector<std::string>{"task 0", "task 1 0", "task 2 0", "release 0v1", "send 1v1 to 1",
                                "send 2v1 to 1", "release 1v1", "release 2v1"}));
  EXPECT_EQ(calls_on(1, [&](TaskStream& tasks) { return small_program(tasks, a); }),
            (std::vector<std::string>{"task 4 1v1", "task 5 2v1", "release 1v1", "release 2v1"}));
}

TEST_F(TileWalks, send_a_tile_to_rows_of_the_grid_likewise) {
  const Matrix<double> a = matrix({2, 1, 0}, Storage::lower);  // row 1 is node 1's
  EXPECT_EQ(calls_on(0, [&](TaskStream& tasks) { return small_program(tasks, a); }),
            (std::vector<std::string>{"task 0", "send 0v1 to 1", "task 2 0", "release 0v1",
                                      "task 5 2", "release 2v1"}));
  EXPECT_EQ(calls_on(1, [&](TaskStream& tasks) { return small_program(tasks, a); }),
            (std::vector<std::string>{"task 1 0v1", "release 0v1", "task 4 1", "release 1v1"}));
}

TEST_F(TileWalks, refuse_a_task_that_reads_a_tile_elsewhere_which_was_not_broadcast) {
  const Matrix<double> a = matrix({2, 1, 0}, Storage::full);
  expect_usage_error(
      [&] { calls_on(1, [&](TaskStream& t) { return reads_without_broadcast(t, a); }); },
      "task 'any' of tile (1, 0) reads tile 0 of matrix 0 on node 0, which was not broadcast");
}

TEST_F(TileWalks, refuse_a_task_that_writes_another_tile) {
  const Matrix<double> a = matrix({1, 1, 0}, Storage::full);
  expect_usage_error([&] { calls_on(0, [&](TaskStream& t) { return writes_another_tile(t, a); }); },
                     "tile (1, 0) takes one task, whose first access writes it; 'any' is not that");
}

TEST_F(TileWalks, refuse_a_loop_that_leaves_a_task_out) {
  const Matrix<double> a = matrix({1, 1, 0}, Storage::full);
  expect_usage_error([&] { calls_on(0, [&](TaskStream& t) { return inserts_nothing(t, a); }); },
                     "no task was inserted for tile (1, 0)");
}

TEST_F(TileWalks, refuse_matrices_whose_tiles_they_cannot_walk) {
  Listener listener;
  TaskStream stream(listener, NodeId{0});
  expect_usage_error(
      [&] {
        TileWalk(stream, matrix({1, 1, 0}, Storage::upper));
      },
      "it must be stored full or lower");
}

}  // namespace heddle
