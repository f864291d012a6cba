#include "config/describe.hpp"

#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>

#include "config/config.hpp"
#include "config/config_error.hpp"
#include "config/effective.hpp"
#include "config/options.hpp"
#include "tests/config/schema_check.hpp"

namespace heddle::config {
namespace {

using nlohmann::json;
using test::schema_violation;

/// The schema of a dotted path.
const json* schema_at(const json& schema, std::string_view path) {
  const json* current = &schema;
  std::istringstream names{std::string(path)};
  for (std::string name; std::getline(names, name, '.');) {
    if (!current->contains("properties")) return nullptr;
    const json& properties = (*current)["properties"];
    if (!properties.contains(name)) return nullptr;
    current = &properties[name];
  }
  return current;
}

std::string violation(const std::string& document) {
  return schema_violation(json_schema(), json::parse(document), "");
}

TEST(Options, EachHasOneEntryBelowAGroupThatPrecedesIt) {
  std::set<std::string_view> known{""};
  for (const Option& option : options()) {
    EXPECT_TRUE(known.contains(parent_of(option.path))) << option.path;
    EXPECT_TRUE(known.insert(option.path).second) << option.path << " twice";
    EXPECT_FALSE(option.help.empty()) << option.path;
    EXPECT_EQ(option.is_group(), option.get == nullptr) << option.path;
    EXPECT_EQ(option.is_group(), option.create != nullptr) << option.path;
    EXPECT_EQ(option.kind == Kind::choice, !option.choices.empty()) << option.path;
  }
}

TEST(Options, AreExactlyTheDocumentedKeys) {
  std::vector<std::string_view> leaves;
  for (const Option& option : options()) {
    if (!option.is_group()) leaves.push_back(option.path);
  }
  const std::vector<std::string_view> expected{"problem.factorization",
                                               "problem.matrix.file",
                                               "problem.matrix.generate",
                                               "problem.matrix.n",
                                               "problem.matrix.m",
                                               "problem.matrix.condition",
                                               "problem.matrix.seed",
                                               "problem.matrix.range",
                                               "problem.matrix.smoothness",
                                               "problem.matrix.nugget",
                                               "problem.matrix.rank",
                                               "problem.matrix.distance",
                                               "problem.rhs.file",
                                               "problem.rhs.generate",
                                               "problem.rhs.columns",
                                               "problem.rhs.seed",
                                               "problem.output.solution",
                                               "problem.output.factor",
                                               "problem.output.q",
                                               "problem.verify",
                                               "problem.overlap",
                                               "layout.grid",
                                               "layout.tile",
                                               "layout.strip",
                                               "layout.small",
                                               "layout.hierarchy",
                                               "layout.inner",
                                               "layout.virtual",
                                               "layout.tree",
                                               "runtime.cpu_workers",
                                               "runtime.devices.backend",
                                               "runtime.devices.per_node",
                                               "runtime.devices.memory",
                                               "runtime.devices.streams",
                                               "runtime.devices.nodes_per_device",
                                               "runtime.devices.turn_us",
                                               "runtime.devices.links.rate",
                                               "runtime.devices.links.latency_us",
                                               "runtime.devices.links.switch_rate",
                                               "runtime.devices.links.devices_per_switch",
                                               "runtime.devices.links.switches_per_socket",
                                               "runtime.window",
                                               "runtime.placement",
                                               "runtime.priorities",
                                               "runtime.messages.path",
                                               "runtime.messages.explain",
                                               "runtime.messages.readers",
                                               "runtime.messages.device_memory",
                                               "runtime.collectives.order",
                                               "runtime.collectives.algorithm",
                                               "runtime.collectives.copies",
                                               "runtime.collectives.fragment",
                                               "runtime.collectives.explain",
                                               "runtime.watchdog_seconds",
                                               "runtime.silence_seconds",
                                               "runtime.wait",
                                               "machine",
                                               "logging.level",
                                               "logging.file",
                                               "trace.file"};
  EXPECT_EQ(leaves, expected);
}

TEST(Options, ReadBackWhatWasSet) {
  Config config = full_defaults();
  for (const Option& option : options()) {
    if (option.is_group()) {
      EXPECT_TRUE(option.present(config)) << option.path;
      continue;
    }
    const Value before = option.get(config);
    option.set(config, before);
    EXPECT_EQ(option.get(config), before) << option.path;
    for (const std::string_view choice : option.choices) {
      option.set(config, std::string(choice));
      EXPECT_EQ(option.get(config), Value{std::string(choice)}) << option.path;
    }
  }
}

/// `text` with single spaces for line breaks and indentation.
std::string unwrapped(const std::string& text) {
  std::istringstream words(text);
  std::string line;
  for (std::string word; words >> word;) line += word + ' ';
  return line;
}

TEST(Help, ListsEveryKeyWithTypeDefaultAndMeaningWithin80Columns) {
  const std::string help = option_help();
  const std::string line_of_help = unwrapped(help);
  for (const Option& option : options()) {
    EXPECT_NE(line_of_help.find(option.path), std::string::npos) << option.path;
    EXPECT_NE(line_of_help.find(option.help), std::string::npos) << option.path;
    if (!option.is_group()) {
      EXPECT_NE(line_of_help.find(type_text(option)), std::string::npos) << option.path;
    }
  }
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
  EXPECT_NE(help.find("  layout.tile               auto | integer >= 1  [auto]\n"
                      "                            rows and columns of a tile, B\n"),
            std::string::npos);
  EXPECT_NE(
      help.find("  problem.matrix.generate   spd | random | kriging | lehmer | identity |\n"
                "                            conditioned | graded | dependent | polynomial  [-]\n"
                "                            make it instead"),
      std::string::npos);
  EXPECT_NE(help.find("  problem.matrix.rank       integer >= 0  [n - 1]\n"), std::string::npos);
  EXPECT_NE(help.find("relative to the current directory"), std::string::npos);
}

TEST(Schema, CommittedFileIsTheGeneratedOne) {
  std::ifstream file(HEDDLE_CONFIG_FOLDER "/schema.json");
  std::stringstream committed;
  committed << file.rdbuf();
  EXPECT_EQ(committed.str(), json_schema().dump(2) + "\n")
      << "regenerate it: heddle schema > config/schema.json";
}

TEST(Schema, HasEveryOptionAndEveryDefaultIsValid) {
  const json schema = json_schema();
  for (const Option& option : options()) {
    const json* at = schema_at(schema, option.path);
    ASSERT_NE(at, nullptr) << option.path;
    EXPECT_TRUE(at->contains("description")) << option.path;
    if (!at->contains("default")) continue;
    EXPECT_EQ(schema_violation(*at, (*at)["default"], ""), "") << option.path;
  }
}

TEST(Schema, AcceptsEffectiveConfigurations) {
  const json schema = json_schema();
  EXPECT_EQ(schema_violation(schema, to_json(Config{}), ""), "");
  for (const char* text : {"problem: {matrix: {file: k.npy}}",
                           "problem: {matrix: {file: k.mtx}, "
                           "rhs: {file: b.npy}, output: {solution: x.npy}}",
                           "problem: {matrix: {generate: kriging, n: 5}, rhs: {generate: random}}",
                           "problem: {factorization: qr, matrix: {generate: dependent, n: 5}}",
                           "problem: {factorization: qr, matrix: {generate: polynomial, n: 5}}",
                           "{layout: {grid: [2, 2]}, runtime: {devices: {memory: 1GiB}}}"}) {
    EXPECT_EQ(schema_violation(schema, to_json(Config::from_text(text, "t")), ""), "") << text;
  }
}

TEST(Schema, RefusesWhatTheLoaderRefuses) {
  for (const char* text : {
           R"({"tile": 1})",
           R"({"layout": {"tile": 0}})",
           R"({"layout": {"tile": "big"}})",
           R"({"layout": {"grid": [1]}})",
           R"({"layout": {"grid": [1, 0]}})",
           R"({"problem": {}})",
           R"({"problem": {"matrix": {}}})",
           R"({"problem": {"matrix": {"generate": "spd"}}})",
           R"({"problem": {"matrix": {"generate": "spd", "n": 4, "file": "k.npy"}}})",
           R"({"problem": {"matrix": {"file": "k.csv"}}})",
           R"({"problem": {"matrix": {"generate": "kriging", "n": 4, "range": 0}}})",
           R"({"problem": {"matrix": {"generate": "dependent", "n": 4, "rank": -1}}})",
           R"({"problem": {"matrix": {"generate": "dependent", "n": 4, "rank": "auto"}}})",
           R"({"problem": {"matrix": {"generate": "dependent", "n": 4, "distance": -1}}})",
           R"({"problem": {"matrix": {"file": "k.npy"}, "rhs": {}}})",
           R"({"problem": {"matrix": {"file": "k.npy"}, "output": {"factor": "l.mtx"}}})",
           R"({"runtime": {"wait": "nap"}})",
           R"({"runtime": {"watchdog_seconds": 0}})",
           R"({"runtime": {"devices": {"memory": "lots"}}})",
           R"({"trace": {"file": true}})",
       }) {
    EXPECT_NE(violation(text), "") << text;
    EXPECT_THROW(static_cast<void>(Config::from_text(text, "t")), ConfigError) << text;
  }
}

}  // namespace
}  // namespace heddle::config
