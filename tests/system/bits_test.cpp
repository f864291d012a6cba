#include <fmt/core.h>

#include "tests/system/heddle_run.hpp"

/// The same bits whatever runs them (DESIGN D4): files of factor and solution compared byte by
/// byte.
namespace heddle {
namespace {

using testing::HeddleRun;

class Bits : public HeddleRun {
 protected:
  void SetUp() override {
    HeddleRun::SetUp();
    folder_.write("k.npy", testing::npy(testing::spd(200)));
    folder_.write("b.npy", testing::npy(testing::sides(200, 3)));
  }

  void expect_equal_bits(int nodes, const std::string& grid, int workers, int devices) {
    SCOPED_TRACE(
        fmt::format("nodes {} grid {} workers {} devices {}", nodes, grid, workers, devices));
    const std::string backend =
        devices == 0 ? "{backend: none}"
                     : fmt::format("{{backend: emulated, per_node: {}, memory: 64MiB}}", devices);
    const auto ended =
        solve(fmt::format("problem:\n  matrix: {{file: k.npy}}\n  rhs: {{file: b.npy}}\n"
                          "  output: {{solution: x.npy, factor: l.npy}}\n  verify: false\n"
                          "layout: {{tile: 48, strip: 16, small: 8, grid: {}}}\n"
                          "runtime: {{cpu_workers: {}, devices: {}}}\n",
                          grid, workers, backend),
              nodes);
    ASSERT_EQ(ended.status, 0) << ended.error;
    for (const char* name : {"x.npy", "l.npy"}) {
      const std::string bytes = testing::read_file(folder_ / name);
      std::string& first = name[0] == 'x' ? solution_ : factor_;
      if (first.empty()) first = bytes;
      EXPECT_TRUE(bytes == first) << name << " differs";
      std::filesystem::remove(folder_ / name);
    }
  }

 private:
  std::string solution_;
  std::string factor_;
};

struct Shape {
  int nodes;
  const char* grid;
};
constexpr Shape shapes[] = {{1, "[1, 1]"}, {2, "[1, 2]"}, {2, "[2, 1]"}, {3, "[1, 3]"},
                            {3, "[3, 1]"}, {4, "[1, 4]"}, {4, "[2, 2]"}, {4, "[4, 1]"},
                            {6, "[1, 6]"}, {6, "[2, 3]"}, {6, "[3, 2]"}, {6, "[6, 1]"}};

}  // namespace

TEST_F(Bits, of_factor_and_solution_do_not_depend_on_nodes_grid_and_workers) {
  int workers = 0;
  for (const Shape& shape : shapes) {
    expect_equal_bits(shape.nodes, shape.grid, 1 + workers++ % 3, 0);
  }
  for (const int more : {1, 2, 3}) expect_equal_bits(1, "[1, 1]", more, 0);
}

TEST_F(Bits, of_factor_and_solution_do_not_depend_on_nodes_grid_and_devices) {
  int devices = 0;
  for (const Shape& shape : shapes) {
    expect_equal_bits(shape.nodes, shape.grid, 1, 1 + devices++ % 3);
  }
  for (const int more : {1, 2, 3}) expect_equal_bits(1, "[1, 1]", 2, more);
}

}  // namespace heddle
