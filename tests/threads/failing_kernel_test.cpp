#include <gtest/gtest.h>

#include "kernels/fine/fine_tasks.hpp"
#include "kernels/kernel.hpp"
#include "node-runtime/node.hpp"
#include "node-runtime/node_facts.hpp"
#include "tests/support/files.hpp"
#include "tests/threads/small_matrices.hpp"

/// What a job reports when a user's kernel returns info > 0. The kernels' first parameter is a
/// rate, a double: taken for a number of a row, it would lie far outside of any tile.
namespace heddle {
namespace {

constexpr double rate = 0.25;
constexpr std::int64_t tile_size = 32;
constexpr std::int64_t bad_column = 3;
constexpr double bad_element = -7.5;

/// Fails at a rate that it was given, with bad_element in its third column.
std::int64_t fail_at_rate(const KernelArguments& arguments) {
  if (arguments.parameters.as<double>() != rate) return 0;
  arguments.tiles[0](1, bad_column - 1) = bad_element;
  return bad_column;
}

/// Two fine tasks, on the tile's left and right half. The right one fails, at bad_column of its
/// half.
void divide(const KernelCase& what, std::int64_t small, FineTasks& tasks);

TileElement second_row(const KernelParameters& /*parameters*/, std::int64_t info) {
  return {1, info - 1};
}
TileElement below_the_tile(const KernelParameters& /*parameters*/, std::int64_t info) {
  return {tile_size, info - 1};
}

constexpr Kernel on_host{.name = "on_host", .host = fail_at_rate};
constexpr Kernel anywhere{.name = "anywhere", .host = fail_at_rate, .emulated = fail_at_rate};
constexpr Kernel divided{.name = "divided", .host = fail_at_rate, .fine = divide};
constexpr Kernel with_pivot{.name = "with_pivot",
                            .host = fail_at_rate,
                            .emulated = fail_at_rate,
                            .failing_element = second_row};
constexpr Kernel staged_with_pivot{
    .name = "staged_with_pivot", .host = fail_at_rate, .failing_element = second_row};
constexpr Kernel divided_with_pivot{.name = "divided_with_pivot",
                                    .host = fail_at_rate,
                                    .fine = divide,
                                    .failing_element = second_row};
constexpr Kernel outside{.name = "outside",
                         .host = fail_at_rate,
                         .emulated = fail_at_rate,
                         .failing_element = below_the_tile};

void divide(const KernelCase& what, std::int64_t small, FineTasks& tasks) {
  const OperandShape& tile = what.operands[0];
  tasks.add(on_host, KernelParameters(0.0), {writes({0, 0, 0, tile.rows, small})});
  tasks.add(on_host, what.parameters, {writes({0, 0, small, tile.rows, tile.columns - small})},
            small);
}

Config on_the_host() {
  return testing::configuration("cpu_workers: 2", "tile: 32, small: 16");
}
Config on_a_device() {
  return testing::configuration("cpu_workers: 1, devices: {backend: emulated, per_node: 1}",
                                "tile: 32, strip: 0");
}

/// One task of `kernel` on one tile, which lives on the device where the node has one.
JobResult run(const Config& config, const Kernel& kernel) {
  Node node(config);
  MatrixSpec spec(tile_size, tile_size);
  spec.layout.tile = tile_size;
  spec.layout.fine = kernel.fine != nullptr ? tile_size / 2 : 0;
  spec.distribution.devices = node.facts().devices;
  Matrix<double> m = node.matrix<double>(spec);
  m.fill([](std::int64_t, std::int64_t) { return 1.0; });
  UserStream stream = node.stream("failing", {m});
  TaskOptions options;
  options.parameters = KernelParameters(rate);
  options.info_base = 100;
  stream.insert(kernel, {read_write(m(TileRow{0}, TileColumn{0}))}, options);
  return stream.end().wait();
}

void expect_failure(const JobResult& result, std::int64_t info, double pivot) {
  EXPECT_EQ(result.status, JobResult::Status::numerical_failure) << result.error;
  EXPECT_EQ(result.info, info);
  EXPECT_EQ(result.pivot, pivot);
}

}  // namespace

TEST(FailingKernels, give_their_info_and_no_pivot) {
  expect_failure(run(on_the_host(), on_host), 100 + bad_column, 0);
}

TEST(FailingKernels, give_their_info_and_no_pivot_on_an_emulated_device) {
  expect_failure(run(on_a_device(), anywhere), 100 + bad_column, 0);
}

TEST(FailingKernels, give_their_info_and_no_pivot_when_staged_through_the_host) {
  expect_failure(run(on_a_device(), on_host), 100 + bad_column, 0);
}

TEST(FailingKernels, give_their_info_and_no_pivot_when_divided) {
  expect_failure(run(on_the_host(), divided), 100 + 16 + bad_column, 0);
}

TEST(FailingKernels, give_the_element_that_they_name) {
  expect_failure(run(on_the_host(), with_pivot), 100 + bad_column, bad_element);
  expect_failure(run(on_a_device(), with_pivot), 100 + bad_column, bad_element);
  expect_failure(run(on_a_device(), staged_with_pivot), 100 + bad_column, bad_element);
  expect_failure(run(on_the_host(), divided_with_pivot), 100 + 16 + bad_column, bad_element);
}

TEST(FailingKernels, may_not_name_an_element_outside_of_their_tile) {
  for (const Config& config : {on_the_host(), on_a_device()}) {
    testing::expect_error(ErrorCode::usage,
                          {"kernel 'outside' failed with info 3 at element (32, 2), outside of its "
                           "main output of 32 x 32"},
                          [&] { run(config, outside); });
  }
}

}  // namespace heddle
