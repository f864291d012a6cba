#include <filesystem>
#include <fmt/format.h>
#include <string>

#include "tests/system/heddle_run.hpp"

/// What a run cannot have is refused before it begins, on all nodes alike, with the numbers: memory
/// of devices and hosts, and numbers of configurations and command lines at the ends of their
/// ranges and beyond.
namespace heddle {
namespace {

using testing::Ended;
using testing::HeddleRun;

std::string generated(const std::string& problem, std::int64_t tile, int devices,
                      const std::string& memory) {
  return fmt::format(
      "problem: {{{}, rhs: {{generate: random}}, output: {{solution: x.npy}}}}\n"
      "layout: {{tile: {}}}\nruntime: {{cpu_workers: 1, devices: {{backend: emulated, per_node: "
      "{}, memory: {}, streams: 1}}, watchdog_seconds: 20}}\n",
      problem, tile, devices, memory);
}

const std::string small_spd = "matrix: {generate: spd, n: 64}";
const std::string large_spd = "matrix: {generate: spd, n: 1000}";
const std::string small_qr = "factorization: qr, matrix: {generate: random, n: 50, m: 90}";
const std::string large_qr = "factorization: qr, matrix: {generate: random, n: 1000, m: 1000}";

class Limits : public HeddleRun {};

}  // namespace

TEST_F(Limits, matrices_that_devices_have_no_room_for_are_refused_by_the_plan_of_all_nodes) {
  for (const int nodes : {0, 2, 4}) {
    SCOPED_TRACE(fmt::format("{} nodes", nodes));
    for (const std::string& yaml :
         {generated(small_spd, 128, 2, "256KiB"), generated(large_spd, 1024, 2, "48MiB"),
          generated(large_qr, 1024, 2, "64MiB")}) {
      const Ended ended = solve(yaml, nodes, {"--set", "problem.verify=full"});
      expect_refused(ended, {"not enough memory on device", "to work out of core"});
      EXPECT_EQ(ended.out.find("solution residual"), std::string::npos);
      // Nothing but the plan is needed to find that out.
      EXPECT_EQ(solve(yaml, nodes, {"--set", "problem.verify=full", "--dry-run"}).error,
                ended.error);
    }
  }
}

TEST_F(Limits, whatever_memory_devices_have_the_plan_tells_how_the_run_ends) {
  int solved = 0;
  int refused = 0;
  for (const std::string& problem : {small_spd, small_qr}) {
    for (const int nodes : {0, 2}) {
      for (const int kib : {40, 200, 320, 400, 1000}) {
        SCOPED_TRACE(fmt::format("{} on {} nodes, {} KiB", problem, nodes, kib));
        const std::string yaml = generated(problem, 128, 2, fmt::format("{}KiB", kib));
        const int planned = solve(yaml, nodes, {"--dry-run"}).status;
        const Ended ended = solve(yaml, nodes);
        EXPECT_TRUE(ended.status == 0 || ended.status == 2) << ended.error;
        EXPECT_EQ(ended.status, planned) << ended.error;
        (ended.status == 0 ? solved : refused) += 1;
      }
    }
  }
  EXPECT_GT(solved, 4);
  EXPECT_GT(refused, 4);
}

TEST_F(Limits, a_node_has_as_many_devices_as_the_guide_says) {
  EXPECT_LT(solved(generated(small_spd, 16, 64, "1MiB"))["residual"].get<double>(), 10);
  std::filesystem::remove(folder_ / "x.npy");
  for (const int nodes : {0, 2}) {
    expect_refused(solve(generated(small_spd, 16, 65, "1MiB"), nodes),
                   {"runtime.devices.per_node", "at most 64; found 65"});
    expect_refused(solve(generated(small_spd, 16, 2, "64TiB"), nodes),
                   {"2 emulated devices of 64.00 TiB", "runtime.devices.memory"});
  }
}

TEST_F(Limits, keys_that_nothing_else_bounds_may_have_their_largest_values) {
  for (const char* layout :
       {"tile: 1000000000", "tile: 1000000000, inner: 1000000000", "virtual: 1000000000, tile: 16",
        "tile: 1000000000, strip: 1000000000, small: 1000000000"}) {
    for (const std::string& problem : {small_spd, small_qr}) {
      for (const int nodes : {0, 2}) {
        SCOPED_TRACE(fmt::format("{}, {}, {} nodes", problem, layout, nodes));
        static_cast<void>(
            solved(fmt::format("problem: {{{}, rhs: {{generate: random, seed: "
                               "9223372036854775807}}}}\nlayout: {{{}}}\n"
                               "runtime: {{cpu_workers: 1, window: 1000000000, watchdog_seconds: "
                               "1e6}}\n",
                               problem, layout),
                   nodes));
      }
    }
  }
}

TEST_F(Limits, products_of_numbers_do_not_wrap_around) {
  const std::string yaml = "problem: {matrix: {generate: spd, n: 64}, output: {factor: l.npy}}\n";
  for (const int nodes : {0, 2}) {
    expect_refused(solve(yaml, nodes, {"--set", "layout.grid=[1000000, 1000000]"}),
                   {"layout.grid", "at most 1000000 nodes", "1000000000000"});
    expect_refused(solve(yaml, nodes, {"--set", "layout.grid=[65536, 15]"}),
                   {"layout.grid [65536, 15] is for 983040 nodes"});
    expect_refused(solve(yaml, nodes, {"--set", "problem.matrix.n=1000000000"}),
                   {"not enough memory"});
    // Tiles of one element: whatever they hold, each has a pair of cache lines.
    expect_refused(solve(yaml, nodes,
                         {"--set", "problem.matrix.n=46000", "--set", "layout.tile=1", "--set",
                          "problem.verify=full"}),
                   {"not enough memory"});
    expect_refused(solve(yaml, nodes, {"--set", "problem.matrix.condition=1e400"}),
                   {"condition", "1e400", "too large for a double"});
    expect_refused(solve(yaml, nodes, {"--set", "runtime.devices.memory=99999TiB"}),
                   {"runtime.devices.memory", "at most 64.00 TiB", "99999TiB"});
  }
}

TEST_F(Limits, generate_checks_what_it_is_asked_for_before_it_works) {
  const auto generate = [this](const char* kind, const char* n, const char* file = "l.npy") {
    return run(alone({"generate", "--kind", kind, "-n", n, "--output", file}));
  };
  for (const char* kind : {"spd", "kriging", "conditioned", "lehmer", "random"}) {
    SCOPED_TRACE(kind);
    expect_refused(generate(kind, "300000000"),
                   {"cannot write 'l.npy'", "are needed and", "are available in '.'"});
    expect_refused(generate(kind, "1000000000"), {"cannot write 'l.npy'", "TiB are needed"});
    expect_refused(generate(kind, "99999999999"),
                   {"-n: expected at most 1000000000; found '99999999999'"});
    expect_refused(generate(kind, "99999999999999999999"), {"-n: expected at most 1000000000"});
    expect_refused(generate(kind, "-3"), {"-n: expected at least 0; found '-3'"});
    expect_refused(generate(kind, "1e4"),
                   {"-n: expected a whole number, from 0 to 1000000000; found '1e4'"});
    expect_refused(generate(kind, "3", "nowhere/g.npy"), {"there is no folder 'nowhere'"});
  }
  expect_refused(
      run(alone(
          {"generate", "--kind", "spd", "-n", "3", "--condition", "1e400", "--output", "l.npy"})),
      {"--condition: expected a number; found '1e400', which is too large for a double"});
}

TEST_F(Limits, files_are_named_on_command_lines_as_in_configurations) {
  const auto generate = [this](std::vector<std::string> files) {
    std::vector<std::string> words{"generate", "--kind", "spd", "-n", "30"};
    words.insert(words.end(), files.begin(), files.end());
    return run(alone(words));
  };
  expect_refused(generate({"--output", "g.mtx"}),
                 {"--output: expected a path ending in .npy; found 'g.mtx'"});
  expect_refused(generate({"--output", "l.npy", "--rhs-columns", "1", "--rhs-output", "b.mtx"}),
                 {"--rhs-output: expected a path ending in .npy; found 'b.mtx'"});
  expect_refused(run(alone({"tune", "--output", "A.npy"})),
                 {"--output: expected a path that does not end as those of matrices do"});
  folder_.write("p.yaml", "problem: {matrix: {generate: spd, n: 8}}\n");
  for (const char* option : {"--report", "--trace"}) {
    expect_refused(run(alone({"solve", "p.yaml", option, "x.npy"})), {option, "'x.npy'"});
    expect_refused(run(on(2, {"solve", "p.yaml", option, ""})), {option, "found nothing"});
    expect_refused(run(alone({"simulate", "p.yaml", option, "x.mtx"})), {option, "'x.mtx'"});
  }
  expect_refused(run(alone({"solve", "p.yaml", "--set", "trace.file=x.npy"})),
                 {"trace.file", "does not end as those of matrices do; found 'x.npy'"});
  for (const std::string& name : folder_.names()) {
    EXPECT_TRUE(name == "p.yaml") << name;
  }
}

TEST_F(Limits, options_out_of_their_ranges_are_told_in_plain_words) {
  folder_.write("p.yaml", "problem: {matrix: {generate: spd, n: 8}}\n");
  const auto refused = [this](const std::vector<std::string>& words, const std::string& part) {
    const Ended ended = run(alone(words));
    expect_refused(ended, {part});
    EXPECT_EQ(ended.error.find("not in range"), std::string::npos) << ended.error;
    EXPECT_LT(ended.error.size(), 200U) << ended.error;
  };
  refused({"tune", "--seconds", "0"}, "--seconds: expected a number from 1 to 120; found '0'");
  refused({"simulate", "p.yaml", "--repeat", "0"}, "--repeat: expected at least 1; found '0'");
  refused({"simulate", "p.yaml", "--repeat", "1001"}, "expected at most 1000; found '1001'");
  refused({"simulate", "p.yaml", "--seed", "-1"}, "--seed: expected at least 0; found '-1'");
  refused({"bench", "p2p", "--ring-slots", "65"}, "--ring-slots: expected at most 64; found '65'");
  refused({"bench", "p2p", "--bytes-max", "99999999999999999999"}, "--bytes-max: expected at most");
  refused({"bench", "p2p", "--seconds", "soon"}, "--seconds: expected a number; found 'soon'");
}

}  // namespace heddle
