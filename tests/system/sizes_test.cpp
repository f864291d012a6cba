#include <fmt/core.h>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/system/heddle_run.hpp"

/// What `auto` makes of tiles, beside all that could be chosen instead: on simulated machines, so
/// that they have the cores that this one lacks.
namespace heddle {
namespace {

using nlohmann::json;
using testing::Ended;
using testing::HeddleRun;

/// 10^9 operations per second of a core with AVX-512, by kernel and size of tiles.
using Rates = std::vector<std::pair<std::string, std::map<int, int>>>;
const Rates rates{
    {"gsmm", {{64, 40}, {96, 55}, {128, 64}, {192, 76}, {256, 82}, {384, 88}, {960, 92}}},
    {"syrk", {{64, 30}, {96, 42}, {128, 52}, {192, 65}, {384, 82}, {960, 90}}},
    {"trsm", {{64, 22}, {96, 32}, {128, 42}, {192, 55}, {384, 75}, {960, 88}}},
    {"potrf", {{64, 6}, {96, 9}, {128, 12}, {192, 18}, {384, 32}, {960, 50}}}};

class Sizes : public HeddleRun {
 protected:
  void SetUp() override {
    HeddleRun::SetUp();
    folder_.write("p.yaml",
                  "problem: {matrix: {generate: spd, n: 4000}}\nlayout: {strip: 0, small: 96}\n");
    write_machine("m.yaml", rates);
  }
  void write_machine(const std::string& name, const Rates& of_kernels) {
    std::string machine = "heddle_simulated_machine: 1\nname: cores\nkernels:\n  host:\n";
    for (const auto& [kernel, by_size] : of_kernels) {
      for (const auto& [size, rate] : by_size) {
        machine += fmt::format("    - {{kernel: {}, size: {}, gflops: {}}}\n", kernel, size, rate);
      }
    }
    folder_.write(name, machine);
  }
};

}  // namespace

TEST_F(Sizes, auto_is_within_three_percent_of_the_best_that_can_be_fixed) {
  for (const char* workers : {"8", "16", "64"}) {
    for (const char* n : {"2000", "4000", "8000"}) {
      const Ended ended = run(on(1, {"simulate", "p.yaml", "--machine", "m.yaml", "--set",
                                     std::string("machine.cpu_workers=") + workers, "--set",
                                     std::string("problem.matrix.n=") + n, "--sweep",
                                     "layout.tile=auto,64,96,128,160,192,224,256,320,384,480,960",
                                     "--sweep", "layout.hierarchy=auto,on", "--report", "r.json"}));
      ASSERT_EQ(ended.status, 0) << ended.error;
      const json r = json::parse(testing::read_file(folder_ / "r.json"));
      const json& cases = r.at("cases");
      ASSERT_EQ(cases.size(), 24U);
      const json& chosen = cases.at(0);
      const json& best = cases.at(r.at("best").get<std::size_t>());
      EXPECT_GE(chosen.at("gflops").get<double>(), 0.97 * best.at("gflops").get<double>())
          << workers << " workers, n = " << n << ": " << chosen.at("tile") << " and not "
          << best.at("tile");
    }
  }
}

/// Kernels that take as long for each row of a tall tile, however high it is. Those of real cores
/// take longer for low ones, and for what they are then not worth the chosen ones are higher: that
/// is lost here, and no more.
TEST_F(Sizes, virtual_tiles_are_as_low_as_the_workers_of_all_nodes_need_them) {
  folder_.write("q.yaml",
                "problem: {factorization: qr, matrix: {generate: random, n: 4000}}\n"
                "layout: {strip: 0}\n");
  write_machine("qr.yaml", {{"gsmm", {{144, 40}}},
                            {"geqrt", {{144, 18}}},
                            {"tsqrt", {{144, 20}}},
                            {"unmqr", {{144, 36}}},
                            {"tsmqr", {{144, 38}}}});
  for (const auto& [nodes, workers] : {std::pair{"1", "2"}, {"1", "16"}, {"4", "6"}, {"2", "16"}}) {
    for (const char* n : {"2000", "4000", "8000"}) {
      const Ended ended = run(on(
          1, {"simulate", "q.yaml", "--machine", "qr.yaml", "--set",
              std::string("machine.cpu_workers=") + workers, "--set",
              std::string("machine.nodes=") + nodes, "--set", std::string("problem.matrix.n=") + n,
              "--sweep", "layout.virtual=auto,2,3,4,6,8,12,16", "--report", "r.json"}));
      ASSERT_EQ(ended.status, 0) << ended.error;
      const json r = json::parse(testing::read_file(folder_ / "r.json"));
      const json& chosen = r.at("cases").at(0);
      const json& best = r.at("cases").at(r.at("best").get<std::size_t>());
      EXPECT_GE(chosen.at("gflops").get<double>(), 0.8 * best.at("gflops").get<double>())
          << nodes << " nodes of " << workers << " workers, n = " << n << ": "
          << chosen.at("virtual") << " and not " << best.at("virtual");
    }
  }
}

TEST_F(Sizes, follow_the_rates_of_the_machine_that_is_named) {
  const auto tile = [&](const char* workers) {
    const Ended ended =
        run(on(1, {"simulate", "p.yaml", "--machine", "m.yaml", "--set",
                   std::string("machine.cpu_workers=") + workers, "--report", "r.json"}));
    EXPECT_EQ(ended.status, 0) << ended.error;
    return json::parse(testing::read_file(folder_ / "r.json")).at("tile").get<int>();
  };
  EXPECT_GT(tile("2"), tile("64"));
}

}  // namespace heddle
