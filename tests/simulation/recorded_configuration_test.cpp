#include "apps/simulation/recorded_configuration.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "config/effective.hpp"
#include "config/problem.hpp"

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
  config.runtime.devices.streams = 3;
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
  const Config config = RecordedConfiguration(recorded()).as_it_was();
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
  const auto with = [&](const std::vector<std::string>& changes, bool elsewhere = false) {
    return configuration.with(SplitOverrides(changes), elsewhere);
  };
  const Config wider = with({"layout.tile=100"});
  EXPECT_EQ(wider.layout.tile, 100);
  EXPECT_FALSE(wider.layout.inner);
  EXPECT_FALSE(wider.layout.virtual_tiles);
  EXPECT_EQ(wider.layout.strip, 0) << "it was set";
  EXPECT_EQ(with({"layout.tile=100", "layout.inner=10"}).layout.inner, 10);
  for (const char* change : {"machine.nodes=2", "machine.cpu_workers=1", "runtime.cpu_workers=1",
                             "runtime.devices.per_node=1", "problem.matrix.n=200"}) {
    const Config changed = with({change});
    EXPECT_FALSE(changed.layout.inner) << change;
    EXPECT_EQ(changed.layout.tile, 50) << change;
    EXPECT_EQ(changed.runtime.devices.streams, 3) << change;
  }
  for (const char* change : {"machine.nodes_per_host=2", "runtime.window=9", "logging.level=off"}) {
    EXPECT_EQ(with({change}).layout.inner, 25) << change;
  }
  const Config elsewhere = with({}, true);
  EXPECT_FALSE(elsewhere.layout.inner);
  EXPECT_FALSE(elsewhere.runtime.devices.streams);
  EXPECT_EQ(elsewhere.layout.tile, 50);
  EXPECT_EQ(elsewhere.runtime.cpu_workers, 2) << "it was set";
}

TEST(RecordedConfiguration, of_a_square_matrix_has_one_size) {
  replay::RunTrace run = recorded();
  json about = json::parse(run.about);
  about["m"] = 300;
  run.about = about.dump();
  const Config config =
      RecordedConfiguration(run).with(SplitOverrides({"problem.matrix.n=200"}), false);
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
