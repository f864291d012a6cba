#include "apps/simulation/recorded_configuration.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace heddle {
namespace {

using nlohmann::json;

constexpr const char* given =
    "problem: {factorization: qr, matrix: {file: a.npy}, rhs: {file: b.npy}}\n"
    "layout: {tile: 50, strip: 0}\nruntime: {window: 4, priorities: path, cpu_workers: 2}\n"
    "machine: there.yaml\n";

/// As `given`, with what a run made of it.
replay::RunTrace recorded() {
  Config config = Config::from_text(given, "p.yaml");
  replay::RunTrace run;
  run.source = "run";
  run.nodes = {NodeId{0}};
  run.configuration = to_json(config).dump();
  config.layout.inner = 25;
  config.layout.virtual_tiles = 3;
  config.runtime.placement = config::Placement::fixed;
  run.about = json{{"m", 600}, {"n", 300}, {"resolved", to_json(config)}}.dump();
  return run;
}

std::string refusal(const replay::RunTrace& run) {
  try {
    const RecordedConfiguration configuration(run);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    return error.what();
  }
  return "not refused";
}

}  // namespace

TEST(RecordedConfiguration, is_the_runs_with_the_size_of_its_matrix) {
  const Config config = RecordedConfiguration(recorded()).with({}, {});
  EXPECT_EQ(config.name, "run");
  const config::Problem& problem = config.require_problem();
  EXPECT_EQ(problem.factorization, config::Factorization::qr);
  EXPECT_FALSE(problem.matrix.file) << "the file need not be here";
  EXPECT_EQ(problem.matrix.n, 300);
  EXPECT_EQ(problem.matrix.rows(), 600);
  EXPECT_EQ(config.layout.inner, 25);
  EXPECT_EQ(config.runtime.window, 4);
  EXPECT_EQ(config.runtime.priorities, config::Priorities::path);
  EXPECT_EQ(config.runtime.cpu_workers, 2);
  EXPECT_FALSE(config.machine) << "it was measured there";
}

TEST(RecordedConfiguration, chooses_again_only_what_was_open) {
  const RecordedConfiguration configuration(recorded());
  EXPECT_TRUE(configuration.was_open("layout.inner"));
  EXPECT_FALSE(configuration.was_open("runtime.cpu_workers"));
  const std::vector<std::string_view> anew{"layout.inner", "layout.strip", "runtime.cpu_workers"};
  const Config config = configuration.with({"layout.tile=100"}, anew);
  EXPECT_EQ(config.layout.tile, 100);
  EXPECT_FALSE(config.layout.inner);
  EXPECT_EQ(config.layout.strip, 0);
  EXPECT_EQ(config.layout.virtual_tiles, 3);
  EXPECT_EQ(config.runtime.cpu_workers, 2);
  EXPECT_EQ(configuration.with({"layout.inner=10"}, anew).layout.inner, 10);
}

TEST(RecordedConfiguration, of_a_square_matrix_has_one_size) {
  replay::RunTrace run = recorded();
  json about = json::parse(run.about);
  about["m"] = 300;
  run.about = about.dump();
  const Config config = RecordedConfiguration(run).with({"problem.matrix.n=200"}, {});
  EXPECT_EQ(config.require_problem().matrix.rows(), 200);
}

TEST(RecordedConfiguration, that_is_not_there_is_missed) {
  replay::RunTrace run = recorded();
  json about = json::parse(run.about);
  about.erase("resolved");
  run.about = about.dump();
  EXPECT_EQ(refusal(run),
            "'run' does not say what was factorized, and how: it was recorded by an older heddle, "
            "whose traces do not keep the whole configuration of a run; record the run once more");
  run.about = "null";
  EXPECT_NE(refusal(run).find("only what heddle solve has recorded can be replayed"),
            std::string::npos);
  run.nodes = {NodeId{1}};
  EXPECT_NE(refusal(run).find("the trace of node 0, which would, is not there"), std::string::npos);
}

}  // namespace heddle
