#include "node-runtime/threads/path_priorities.hpp"

#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "algorithms/cholesky/cholesky.hpp"
#include "algorithms/qr/qr_matrix.hpp"
#include "base/error.hpp"
#include "node-runtime/node_facts.hpp"
#include "node-runtime/threads/program.hpp"
#include "tests/threads/small_matrices.hpp"

namespace heddle {
namespace {

using testing::configuration;
using testing::dense;
using testing::dominant;

constexpr OperandShape tile_shape{8, 8};

/// Every kernel takes a second; a transfer as long as it is told.
std::vector<std::int16_t> ranks(const std::function<Program(TaskStream&)>& program, NodeId node,
                                std::int32_t nodes, double transfer_s = 0) {
  const TaskCosts costs{[](const KernelCase&, bool) { return 1.0; },
                        [=](Location, Location, std::uint64_t bytes) {
                          EXPECT_EQ(bytes, 8 * 8 * sizeof(double));
                          return transfer_s;
                        }};
  return path_priorities(
      program, node, nodes, [](protocol::TileId) { return tile_shape; }, costs, 1024);
}

constexpr Kernel work{.name = "work"};

TileRef tile(std::int32_t index, std::int32_t node) {
  return {{protocol::MatrixId{0}, index}, {NodeId{node}, host_place}};
}

/// Tile 0 is written twice, read once on node 1; tile 1 there has a chain of its own.
Program two_chains(TaskStream& tasks) {
  co_await tasks.insert(
      work, {read_write(tile(0, 0))});  // 4 to the end: the writers of tile 0, then tile 1
  co_await tasks.insert(work, {read_write(tile(2, 0))});                    // 1
  co_await tasks.insert(work, {read_write(tile(0, 0))});                    // 3
  co_await tasks.insert(work, {read_write(tile(1, 1))});                    // 3
  co_await tasks.insert(work, {read_write(tile(1, 1)), read(tile(0, 0))});  // 2
  co_await tasks.insert(work, {read_write(tile(1, 1))});                    // 1
}

}  // namespace

TEST(PathPriorities, rank_tasks_by_the_longest_way_to_the_end_over_all_nodes) {
  // Of node 0: version 2 of tile 0 is what node 1 reads, so that both writers lead to two more
  // tasks.
  EXPECT_EQ(ranks(two_chains, NodeId{0}, 2), (std::vector<std::int16_t>{3, 0, 2}));
  EXPECT_EQ(ranks(two_chains, NodeId{1}, 2), (std::vector<std::int16_t>{2, 1, 0}));
  // A long way from node 0 makes its tasks more urgent than the chain that waits for them.
  EXPECT_EQ(ranks(two_chains, NodeId{0}, 2, 10), (std::vector<std::int16_t>{4, 0, 3}));
  EXPECT_EQ(ranks(two_chains, NodeId{1}, 2, 10), (std::vector<std::int16_t>{2, 1, 0}));
}

TEST(PathPriorities, change_no_bit) {
  const auto factor = [](const std::string& priorities, const std::string& layout) {
    Node node(configuration("cpu_workers: 3, priorities: " + priorities, layout));
    Matrix<double> a = dominant(node, 300);
    EXPECT_EQ(node.submit(cholesky(a)).wait().status, JobResult::Status::done);
    return dense(a);
  };
  EXPECT_EQ(factor("path", "tile: 32"), factor("program", "tile: 32"));
  const std::string divided = "tile: 64, small: 16, hierarchy: on";
  EXPECT_EQ(factor("path", divided), factor("program", divided));
}

TEST(PathPriorities, that_are_for_simulations_are_refused) {
  for (const char* rule : {"fifo", "reverse", "random"}) {
    try {
      const Node node(configuration(std::string("priorities: ") + rule));
      ADD_FAILURE() << rule;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::usage);
      EXPECT_NE(std::string(error.what()).find(std::string("runtime.priorities: ") + rule),
                std::string::npos)
          << error.what();
    }
  }
}

TEST(PathPriorities, are_there_for_qr_and_its_solves_too) {
  Node node(
      configuration("cpu_workers: 2, priorities: path, devices: {backend: emulated, per_node: 1}"));
  const QrMatrix q = qr_matrix(node, 200, 120, {.tile = 24, .inner = 8}, node.facts().distribution);
  Matrix<double>(q.a).fill([](std::int64_t i, std::int64_t j) {
    return static_cast<double>((i * 31 + j * 17) % 101) + (i == j ? 100.0 : 0.0);
  });
  EXPECT_EQ(node.submit(qr(q)).wait().status, JobResult::Status::done);
  const QrOperand x = qr_operand(q, 3);
  EXPECT_EQ(node.submit(apply_q_transposed(q, x)).wait().status, JobResult::Status::done);
}

}  // namespace heddle
