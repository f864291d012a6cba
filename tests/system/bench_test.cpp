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
    EXPECT_NE(in_order.out.find("memory of a group of 2 ranks on rank 0\n  board     "),
              std::string::npos)
        << in_order.out;
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

TEST_F(Bench, collectives_validates_blocks_of_all_datatypes) {
  for (const std::string datatype : {"triangle", "submatrix", "gaps"}) {
    const Ended ended =
        run(on(2, {"bench", "collectives", "--datatype", datatype, "--bytes-max", "200000",
                   "--repeat", "1", "--seconds", "0", "--report", "b.json"}));
    ASSERT_EQ(ended.status, 0) << ended.error;
    EXPECT_NE(ended.out.find("float64 as " + datatype), std::string::npos) << ended.out;
    EXPECT_EQ(ended.out.find("WRONG"), std::string::npos) << ended.out;
    const json report = json::parse(testing::read_file(folder_ / "b.json"), nullptr, false);
    EXPECT_EQ(report.at("datatype"), datatype);
    for (const json& row : report.at("collectives")) {
      EXPECT_TRUE(row.at("valid").get<bool>()) << row;
      EXPECT_TRUE(row.at("mpi_microseconds").is_null()) << row;
    }
  }
  const Ended old = run(on(2, {"bench", "collectives", "--triangles", "--operation", "barrier",
                               "--repeat", "1", "--seconds", "0"}));
  EXPECT_EQ(old.status, 0) << old.error;
  EXPECT_NE(old.error.find("'--triangles' is now '--datatype=triangle'"), std::string::npos)
      << old.error;
  const Ended wrong = run(on(2, {"bench", "collectives", "--datatype", "cube"}));
  EXPECT_EQ(wrong.status, 2);
  EXPECT_NE(wrong.error.find("--datatype: cube not in {contiguous,triangle,submatrix,gaps}"),
            std::string::npos)
      << wrong.error;
}

TEST_F(Bench, collectives_measures_only_rows_that_are_asked_for) {
  const auto only = [&](const std::string& text) {
    return run(on(2, {"bench", "collectives", "--only", text, "--bytes", "8:2000000", "--repeat",
                      "1", "--seconds", "0", "--report", "b.json"}));
  };
  const auto operations = [&] {
    const json report = json::parse(testing::read_file(folder_ / "b.json"));
    std::set<std::string> found;
    for (const json& row : report.at("collectives")) {
      found.insert(row.at("operation").get<std::string>());
    }
    return found;
  };
  ASSERT_EQ(only("all_gather").status, 0);
  EXPECT_EQ(operations(), std::set<std::string>{"all_gather"});
  const Ended ended = only("no such way");
  EXPECT_EQ(ended.status, 2);
  EXPECT_NE(ended.error.find("--only 'no such way': no row's operation and way contain it; there "
                             "are: barrier "),
            std::string::npos)
      << ended.error;
  // By the way: what is chosen for a large all_reduce.
  const std::size_t begin = ended.error.rfind("all_reduce ");
  ASSERT_NE(begin, std::string::npos) << ended.error;
  const std::string name = ended.error.substr(begin, ended.error.find(',', begin) - begin);
  ASSERT_EQ(only(name).status, 0) << name;
  EXPECT_EQ(operations(), std::set<std::string>{"all_reduce"});
}

/// Operations of bytes that every link carries take at least as long as copies of them; where
/// memory is of hosts and of devices there is no such figure.
TEST_F(Bench, collectives_shows_how_long_copies_of_the_same_bytes_take) {
  for (const std::string place : {"host", "device", "mixed"}) {
    const Ended ended = run(on(
        2, {"bench", "collectives", "--place", place, "--set", "runtime.devices.backend=emulated",
            "--bytes", "512KiB", "--repeat", "1", "--seconds", "0", "--report", "b.json"}));
    ASSERT_EQ(ended.status, 0) << ended.error;
    EXPECT_NE(ended.out.find("  limit"), std::string::npos) << ended.out;
    const json report = json::parse(testing::read_file(folder_ / "b.json"));
    for (const json& row : report.at("collectives")) {
      const bool has_limit = place != "mixed" && row.at("operation") != "barrier";
      ASSERT_EQ(row.at("limit_microseconds").is_null(), !has_limit) << place << row;
      // 256 KiB and more at 200 GB/s take a microsecond.
      if (!has_limit) continue;
      EXPECT_GT(row.at("limit_microseconds").get<double>(), 1) << row;
    }
  }
}

TEST_F(Bench, collectives_of_devices_tell_the_ways_that_were_not_taken_and_no_other) {
  const Ended ended =
      run(on(2, {"bench", "collectives", "--set", "runtime.devices.backend=emulated", "--place",
                 "device", "--operation", "all_reduce", "--bytes", "1MiB:1MiB", "--repeat", "1",
                 "--seconds", "0", "--explain"}));
  EXPECT_EQ(ended.status, 0) << ended.error;
  const bool is_direct = ended.out.find("predicted beside the board: direct") != std::string::npos;
  const std::string taken = is_direct ? "direct" : "steps";
  const std::string other = is_direct ? "steps" : "direct";
  EXPECT_EQ(ended.out.find("not on devices " + taken), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find("not on devices " + other), std::string::npos) << ended.out;
}

TEST_F(Bench, collectives_of_devices_are_validated_beside_staging) {
  for (const std::vector<std::string>& how : std::vector<std::vector<std::string>>{
           {"--place", "device", "--stream"},
           {"--place", "mixed", "--blocking", "--skew", "300"},
           {"--place", "mixed", "--stream", "--datatype", "triangle"},
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
      EXPECT_EQ(row.at("mpi_microseconds").is_null(), how.back() == "triangle") << row;
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
  const auto shared = [&](const std::string& place, const std::string& ranks) {
    return run(on(2, {"bench", "collectives", "--place", place, "--ranks-per-device", ranks,
                      "--operation", "barrier", "--repeat", "1", "--seconds", "0", "--set",
                      "runtime.devices.backend=emulated"}));
  };
  EXPECT_EQ(shared("device", "1").status, 0);
  for (const auto& [how, words] : std::map<std::pair<std::string, std::string>, std::string>{
           {{"device", "2"}, "the device of node 0 is that of 1 nodes in all"},
           {{"host", "1"}, "--ranks-per-device is for memory of devices"},
           {{"device", "0"}, "expected at least 1"}}) {
    const Ended refused = shared(how.first, how.second);
    EXPECT_EQ(refused.status, 2) << words;
    EXPECT_NE(refused.error.find(words), std::string::npos) << refused.error;
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
