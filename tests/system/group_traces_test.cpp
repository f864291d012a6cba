#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "tests/page/page_reader.hpp"
#include "tests/system/heddle_run.hpp"

/// What `heddle analyze` and `heddle export` tell of groups' operations.
namespace heddle {
namespace {

using nlohmann::json;
using testing::Ended;
using testing::HeddleRun;

class GroupTraces : public HeddleRun {
 protected:
  void record(const std::string& what = "groups") {
    const Ended ended = run({HEDDLE_MPIEXEC, "-n", "2", HEDDLE_TRACED_PROGRAM, "run", what});
    ASSERT_EQ(ended.status, 0) << ended.out << ended.error;
  }
};

}  // namespace

TEST_F(GroupTraces, have_a_line_for_each_operation_and_algorithm) {
  record();
  const Ended ended = run(alone({"analyze", "run", "--report", "a.json"}));
  ASSERT_EQ(ended.status, 0) << ended.error;
  EXPECT_NE(ended.out.find("no task ran on 2 nodes"), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find("groups' operations"), std::string::npos) << ended.out;
  const json one = json::parse(testing::read_file(folder_ / "a.json")).at("runs").at(0);
  std::map<std::string, json> found;
  for (const json& row : one.at("collectives")) {
    const auto operation = row.at("operation").get<std::string>();
    EXPECT_TRUE(found.emplace(operation, row).second || operation == "all_gather") << row;
    EXPECT_NE(ended.out.find("  " + operation), std::string::npos) << ended.out;
    EXPECT_GT(row.at("median_us").get<double>(), 0) << row;
    EXPECT_GE(row.at("most_us").get<double>(), row.at("median_us").get<double>()) << row;
    EXPECT_GE(row.at("seconds").get<double>(), 1e-6 * row.at("most_us").get<double>() * 0.999)
        << row;
  }
  const std::map<std::string, std::pair<int, double>> expected{{"all_reduce", {5, 5 * 2 * 64}},
                                                               {"broadcast", {3, 3 * 2 * 800000}},
                                                               {"scan", {2, 2 * 2 * 64}},
                                                               {"exchange", {4, 4 * 2 * 8000}},
                                                               {"gather", {1, 8}}};
  for (const auto& [operation, figures] : expected) {
    ASSERT_TRUE(found.contains(operation)) << operation << "\n" << ended.out;
    EXPECT_EQ(found.at(operation).at("count"), figures.first) << operation;
    EXPECT_EQ(found.at(operation).at("bytes"), figures.second) << operation;
  }
  EXPECT_EQ(found.at("all_reduce").at("algorithm"), "host board");
  EXPECT_EQ(found.at("exchange").at("algorithm"), "neighbours");
  EXPECT_NE(found.at("broadcast").at("algorithm").get<std::string>().find("chain"),
            std::string::npos)
      << found.at("broadcast");
  EXPECT_FALSE(found.contains("barrier")) << "the trace had ended";
}

TEST_F(GroupTraces, are_exported_for_viewers) {
  record();
  for (const char* const format : {"chrome", "perfetto", "paje", "csv"}) {
    const Ended ended = run(alone({"export", "run", "--to", format, "--output", "out.json"}));
    ASSERT_EQ(ended.status, 0) << format << ended.error;
    const std::string text = testing::read_file(folder_ / "out.json");
    EXPECT_NE(text.find("collectives"), std::string::npos) << format;
    EXPECT_NE(text.find("broadcast"), std::string::npos) << format;
    std::filesystem::remove(folder_ / "out.json");
  }
}

TEST_F(GroupTraces, are_not_replayed_and_it_says_what_simulates_them) {
  record("tasks");
  const Ended ended = run(alone({"replay", "run"}));
  EXPECT_EQ(ended.status, 2);
  EXPECT_NE(ended.error.find("operations of groups are simulated by 'heddle bench collectives "
                             "--machine'"),
            std::string::npos)
      << ended.error;
}

TEST_F(GroupTraces, with_tasks_are_in_the_page) {
  record("tasks");
  const Ended ended = run(alone({"analyze", "run", "--html", "page.html", "--report", "a.json"}));
  ASSERT_EQ(ended.status, 0) << ended.error;
  const std::string page = testing::read_file(folder_ / "page.html");
  const auto facts = page::test::part_of(page, 0, "facts");
  ASSERT_TRUE(facts.has_value());
  const json shown = json::parse(*facts).at("figures").at("collectives");
  const json known = json::parse(testing::read_file(folder_ / "a.json")).at("runs").at(0);
  EXPECT_EQ(shown, known.at("collectives"));
  EXPECT_GE(shown.size(), 5U) << shown;
  EXPECT_NE(page.find("card('Operations of groups'"), std::string::npos) << "the page's program";
}

TEST_F(GroupTraces, without_tasks_have_no_page) {
  record();
  const Ended ended = run(alone({"analyze", "run", "--html", "page.html"}));
  EXPECT_EQ(ended.status, 2);
  EXPECT_NE(ended.error.find("no task ran in 'run'"), std::string::npos) << ended.error;
}

}  // namespace heddle
