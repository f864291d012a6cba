#include <array>
#include <fmt/core.h>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/system/heddle_run.hpp"

/// How tiles go from node to node: by the path that a configuration asks for, told of in the
/// terminal and in the trace, and with the same bits.
namespace heddle {
namespace {

using nlohmann::json;
using testing::Ended;
using testing::HeddleRun;

class Messages : public HeddleRun {
 protected:
  static constexpr const char* one_device = "backend: emulated, per_node: 1, memory: 64MiB";

  [[nodiscard]] Ended solve_by(const std::string& path, const char* devices = one_device) const {
    return solve(fmt::format("problem: {{matrix: {{generate: spd, n: 400}}, rhs: {{generate: "
                             "random, columns: 2}}, output: {{solution: x.npy}}}}\n"
                             "layout: {{tile: 50, strip: 0}}\n"
                             "runtime: {{cpu_workers: 1, devices: {{{}}}, messages: {{path: {}, "
                             "explain: true}}}}\n",
                             devices, path),
                 2, {"--trace", "t.json"});
  }
  /// Messages received, by their paths.
  [[nodiscard]] std::map<std::string, int> paths_in_trace() const {
    std::map<std::string, int> paths;
    const json trace = json::parse(testing::read_file(folder_ / "t.json"));
    for (const json& event : trace.at("traceEvents")) {
      const json args = event.value("args", json::object());
      const bool is_received = event.value("name", "").starts_with("receive");
      if (is_received && args.contains("path")) ++paths[args.at("path")];
    }
    return paths;
  }
};

}  // namespace

TEST_F(Messages, take_the_path_that_is_asked_for_and_say_so) {
  std::string solution;
  for (const std::string path : {"auto", "message", "shared", "ring", "put", "get"}) {
    SCOPED_TRACE(path);
    const Ended ended = solve_by(path);
    ASSERT_EQ(ended.status, 0) << ended.error;
    std::map<std::string, int> paths = paths_in_trace();
    EXPECT_EQ(paths["eager"], 0) << "all tiles live on devices";
    paths.erase("eager");
    ASSERT_FALSE(paths.empty());
    if (path != "auto") {
      // The first messages find nothing mapped.
      int all = 0;
      for (const auto& [name, count] : paths) all += count;
      EXPECT_GE(2 * paths[path], all);
      EXPECT_NE(ended.out.find(fmt::format("to node 0: {}, in ", path)), std::string::npos)
          << ended.out;
    }
    EXPECT_NE(ended.out.find("us on the average; the first:"), std::string::npos) << ended.out;
    EXPECT_NE(ended.out.find("\n  not "), std::string::npos) << "why the others lost";
    const std::string bytes = testing::read_file(folder_ / "x.npy");
    if (solution.empty()) solution = bytes;
    EXPECT_TRUE(bytes == solution) << "other bits";
  }
}

TEST_F(Messages, of_few_bytes_of_host_memory_are_eager) {
  const Ended ended = solve_by("message", "backend: none");
  ASSERT_EQ(ended.status, 0) << ended.error;
  std::map<std::string, int> paths = paths_in_trace();
  EXPECT_GT(paths["eager"], 0) << "blocks of right-hand sides";
  EXPECT_GT(paths["message"], 0) << "tiles of the factor";
}

TEST_F(Messages, refuse_paths_that_there_are_not) {
  const Ended ended = solve_by("teleport");
  EXPECT_EQ(ended.status, 2);
  EXPECT_NE(ended.error.find("runtime.messages.path"), std::string::npos) << ended.error;
  EXPECT_NE(ended.error.find("ring"), std::string::npos) << ended.error;
}

}  // namespace heddle
