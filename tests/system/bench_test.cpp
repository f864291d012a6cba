#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/system/heddle_run.hpp"

/// `heddle bench` through the binary, on emulated devices.
namespace heddle {
namespace {

using nlohmann::json;
using testing::Ended;
using testing::HeddleRun;

class Bench : public HeddleRun {};

}  // namespace

TEST_F(Bench, p2p_validates_messages_between_all_kinds_of_memory) {
  const Ended ended =
      run(on(2, {"bench", "p2p", "--set", "runtime.devices.backend=emulated", "-n", "24",
                 "--bytes-max", "5000", "--repeat", "1", "--seconds", "0", "--report", "b.json"}));
  ASSERT_EQ(ended.status, 0) << ended.error;
  EXPECT_EQ(ended.out.find("WRONG"), std::string::npos) << ended.out;
  const json report = json::parse(testing::read_file(folder_ / "b.json"), nullptr, false);
  std::set<std::string> places;
  std::set<std::string> paths;
  for (const json& row : report.at("messages")) {
    EXPECT_TRUE(row.at("valid").get<bool>());
    EXPECT_GT(row.at("microseconds").get<double>(), 0);
    places.insert(row.at("places").get<std::string>());
    paths.insert(row.at("path").get<std::string>());
  }
  EXPECT_EQ(places,
            (std::set<std::string>{"device-device", "host-device", "host-host", "locked-device"}));
  EXPECT_TRUE(paths.contains("eager") && paths.contains("get")) << ended.out;
}

TEST_F(Bench, collectives_validates_all_operations_beside_mpi) {
  for (const int nodes : {2, 3}) {
    const Ended ended =
        run(on(nodes, {"bench", "collectives", "--bytes-max", nodes == 2 ? "200000" : "3000",
                       "--repeat", "1", "--seconds", "0", "--report", "b.json", "--explain"}));
    ASSERT_EQ(ended.status, 0) << ended.error;
    EXPECT_EQ(ended.out.find("WRONG"), std::string::npos) << ended.out;
    EXPECT_NE(ended.out.find("predicted beside the board: "), std::string::npos) << ended.out;
    const json report = json::parse(testing::read_file(folder_ / "b.json"), nullptr, false);
    std::set<std::string> operations;
    for (const json& row : report.at("collectives")) {
      EXPECT_TRUE(row.at("valid").get<bool>());
      EXPECT_GT(row.at("microseconds").get<double>(), 0);
      EXPECT_GT(row.at("mpi_microseconds").get<double>(), 0);
      operations.insert(row.at("operation").get<std::string>());
    }
    EXPECT_EQ(operations.size(), 10U);
  }
  for (const char* const order : {"ranks", "places"}) {
    const Ended in_order =
        run(on(2, {"bench", "collectives", "--operation", "all_reduce", "--order", order,
                   "--explain", "--bytes-max", "200000", "--repeat", "1", "--seconds", "0"}));
    EXPECT_EQ(in_order.status, 0) << in_order.error;
    EXPECT_EQ(in_order.out.find("WRONG"), std::string::npos) << in_order.out;
    EXPECT_NE(in_order.out.find("in the order of ranks "), std::string::npos) << in_order.out;
  }
  const Ended configured =
      run(on(2, {"bench", "collectives", "--operation", "all_reduce", "--bytes-max", "8",
                 "--repeat", "1", "--seconds", "0", "--set", "runtime.collectives.explain=true",
                 "--set", "runtime.collectives.order=places"}));
  EXPECT_EQ(configured.status, 0) << configured.error;
  EXPECT_NE(configured.error.find("heddle: all_reduce of 1 elements of float64 with sum in the "
                                  "order of places: at the board of the host"),
            std::string::npos)
      << configured.error;
  for (const auto& [key, words] :
       std::map<std::string, std::string>{{"order=best", "expected ranks | places"},
                                          {"algorithm=best", "expected auto"},
                                          {"fragment=3", "expected at least 256 B"},
                                          {"explain=maybe", "expected true | false"}}) {
    const Ended wrong = run(on(2, {"bench", "collectives", "--set", "runtime.collectives." + key}));
    EXPECT_EQ(wrong.status, 2) << key;
    EXPECT_NE(wrong.error.find(words), std::string::npos) << key << "\n" << wrong.error;
  }
  const Ended triangles = run(on(2, {"bench", "collectives", "--triangles", "--bytes-max", "200000",
                                     "--repeat", "1", "--seconds", "0"}));
  EXPECT_EQ(triangles.out.find("WRONG"), std::string::npos) << triangles.out;
  EXPECT_EQ(triangles.status, 0) << triangles.error;
  const Ended alone_one = run(alone({"bench", "collectives"}));
  EXPECT_EQ(alone_one.status, 2);
  EXPECT_NE(alone_one.error.find("collectives need two nodes"), std::string::npos);
  const Ended unknown = run(on(2, {"bench", "collectives", "--operation", "all_reduced"}));
  EXPECT_EQ(unknown.status, 2);
  EXPECT_NE(unknown.error.find("--operation all_reduced: expected one of barrier, broadcast"),
            std::string::npos)
      << unknown.error;
  const Ended order = run(on(2, {"bench", "collectives", "--order", "best"}));
  EXPECT_EQ(order.status, 2);
  EXPECT_NE(order.error.find("--order: best not in {ranks,places}"), std::string::npos)
      << order.error;
  const Ended algorithm = run(on(2, {"bench", "collectives", "--algorithm", "best"}));
  EXPECT_EQ(algorithm.status, 2);
  EXPECT_NE(algorithm.error.find("'best' is no algorithm of collectives; there are auto"),
            std::string::npos)
      << algorithm.error;
}

TEST_F(Bench, collectives_of_devices_are_validated_beside_staging) {
  for (const std::vector<std::string>& how :
       std::vector<std::vector<std::string>>{{"--place", "device", "--stream"},
                                             {"--place", "mixed", "--blocking", "--skew", "300"},
                                             {"--place", "mixed", "--stream", "--triangles"},
                                             {"--place", "host", "--stream"}}) {
    std::vector<std::string> words{
        "bench",     "collectives", "--set",    "runtime.devices.backend=emulated",
        "--bytes",   "8:200000",    "--repeat", "1",
        "--seconds", "0",           "--report", "b.json"};
    words.insert(words.end(), how.begin(), how.end());
    const Ended ended = run(on(2, words));
    ASSERT_EQ(ended.status, 0) << ended.error;
    EXPECT_EQ(ended.out.find("WRONG"), std::string::npos) << ended.out;
    const json report = json::parse(testing::read_file(folder_ / "b.json"), nullptr, false);
    EXPECT_EQ(report.at("place"), how[1]);
    EXPECT_EQ(report.at("calls"),
              how.end() == std::ranges::find(how, "--stream") ? "blocking" : "stream");
    std::set<std::string> operations;
    std::set<std::string> in_place;
    for (const json& row : report.at("collectives")) {
      EXPECT_TRUE(row.at("valid").get<bool>()) << row;
      EXPECT_EQ(row.at("mpi_microseconds").is_null(), how.back() == "--triangles") << row;
      operations.insert(row.at("operation").get<std::string>());
      if (!row.at("in_place_microseconds").is_null()) {
        in_place.insert(row.at("operation").get<std::string>());
      }
    }
    EXPECT_EQ(operations.size(), 10U);
    EXPECT_EQ(in_place, (std::set<std::string>{"all_gather", "all_reduce", "scan"}));
  }
}

TEST_F(Bench, collectives_of_devices_say_how_to_get_devices) {
  for (const char* const how : {"--place=device", "--place=mixed", "--stream"}) {
    const Ended ended =
        run(on(2, {"bench", "collectives", how, "--set", "runtime.devices.backend=none"}));
    EXPECT_EQ(ended.status, 2) << ended.error;
    EXPECT_NE(ended.error.find("needs a device on each node, and node "), std::string::npos)
        << ended.error;
    EXPECT_NE(ended.error.find("--set runtime.devices.backend=emulated"), std::string::npos)
        << ended.error;
  }
  const Ended place = run(on(2, {"bench", "collectives", "--place", "gpu"}));
  EXPECT_EQ(place.status, 2);
  EXPECT_NE(place.error.find("--place: gpu not in {host,device,mixed}"), std::string::npos)
      << place.error;
}

TEST_F(Bench, p2p_explains_paths_and_names_what_is_wrong_with_its_options) {
  const Ended explained =
      run(on(2, {"bench", "p2p", "--set", "runtime.devices.backend=none", "-n", "48", "--bytes-max",
                 "20000", "--repetitions", "1", "--seconds", "0", "--path", "message", "--explain",
                 "--only", "triangle"}));
  EXPECT_EQ(explained.status, 0) << explained.error;
  EXPECT_EQ(explained.error,
            "heddle: '--repetitions' is now '--repeat'; the old name goes on working\n");
  EXPECT_NE(explained.out.find("not put      the receiver's memory is not on a device"),
            std::string::npos)
      << explained.out;
  const Ended lonely = run(alone({"bench", "p2p"}));
  EXPECT_EQ(lonely.status, 2);
  EXPECT_NE(lonely.error.find("messages need two nodes"), std::string::npos) << lonely.error;
  const Ended mistyped = run(alone({"bench", "p2p", "--windw", "3"}));
  EXPECT_EQ(mistyped.status, 2);
  EXPECT_NE(mistyped.error.find("heddle bench p2p --help tells more"), std::string::npos)
      << mistyped.error;
  const Ended unknown = run(on(2, {"bench", "p2p", "--path", "teleport"}));
  EXPECT_EQ(unknown.status, 2);
  EXPECT_NE(unknown.error.find("--path teleport: expected one of"), std::string::npos)
      << unknown.error;
}

}  // namespace heddle
