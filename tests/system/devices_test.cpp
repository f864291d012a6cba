#include <cmath>
#include <fmt/core.h>
#include <string>

#include "node-runtime/device/cuda/cuda.hpp"
#include "tests/system/heddle_run.hpp"

/// Which devices a run gets, what it does when their memory does not hold the problem, and what it
/// refuses.
namespace heddle {
namespace {

using testing::Dense;
using testing::Ended;
using testing::HeddleRun;

constexpr const char* generated =
    "problem: {matrix: {generate: spd, n: 400}, rhs: {generate: random, columns: 2}, "
    "output: {factor: l.npy}}\nlayout: {tile: 16, strip: 0}\n";

std::string with_devices(const std::string& devices) {
  return std::string(generated) + "runtime: {cpu_workers: 1, devices: {" + devices + "}}\n";
}

class Devices : public HeddleRun {
 protected:
  /// What the plan says is available on the host, in bytes.
  [[nodiscard]] double host_bytes_available() const {
    const Ended ended = solve(generated, 0, {"--dry-run"});
    const auto row = ended.error.find("host memory") == std::string::npos
                         ? ended.out.substr(ended.out.find("host memory"))
                         : ended.error.substr(ended.error.find("host memory"));
    const std::string text = row.substr(row.find(" of ") + 4);
    const double number = std::stod(text);
    for (const auto& [unit, bytes] : {std::pair{"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}}) {
      const auto at = text.find(unit);
      if (at != std::string::npos && at < text.find("available")) return number * bytes;
    }
    ADD_FAILURE() << row;
    return 0;
  }
};

}  // namespace

TEST_F(Devices, whose_memory_does_not_hold_the_problem_work_out_of_core_and_say_so) {
  const Dense a = testing::spd(300);
  const Dense b = testing::sides(300, 3);
  folder_.write("k.npy", testing::npy(a));
  folder_.write("b.npy", testing::npy(b));
  std::string solution;
  for (const int nodes : {0, 2}) {
    for (const char* memory : {"64MiB", "64KiB"}) {
      SCOPED_TRACE(fmt::format("{} nodes, {}", nodes, memory));
      const bool in_core = std::string(memory) == "64MiB";
      const std::string yaml = fmt::format(
          "problem:\n  matrix: {{file: k.npy}}\n  rhs: {{file: b.npy}}\n"
          "  output: {{solution: x.npy}}\nlayout: {{tile: 16, strip: 0}}\nruntime: {{cpu_workers: "
          "1, devices: {{backend: emulated, per_node: 2, memory: {}}}}}\n",
          memory);
      const Ended ended = solve(yaml, nodes, {"--dry-run"});
      EXPECT_EQ(ended.status, 0) << ended.error;
      EXPECT_EQ((ended.out + ended.error).find("out of core") == std::string::npos, in_core)
          << ended.out << ended.error;
      const auto report = solved(yaml, nodes);
      EXPECT_EQ(report["evictions"].get<std::int64_t>() == 0, in_core) << report["evictions"];
      EXPECT_LT(report["residual"].get<double>(), 1);
      if (!in_core) {
        EXPECT_LE(report["peak_bytes"]["device"].get<std::int64_t>(), 2 * (64 << 10));
      }
      const std::string bytes = testing::read_file(folder_ / "x.npy");
      if (solution.empty()) solution = bytes;
      EXPECT_TRUE(bytes == solution) << "other bits";
    }
  }
}

TEST_F(Devices, solve_least_squares_out_of_core) {
  const Dense a = testing::tall(260, 121);
  const Dense b = testing::sides(260, 2);
  folder_.write("a.npy", testing::npy(a));
  folder_.write("b.npy", testing::npy(b));
  for (const char* tree : {"flat", "binomial"}) {
    const auto report = solved(fmt::format(
        "problem:\n  factorization: qr\n  matrix: {{file: a.npy}}\n  rhs: {{file: b.npy}}\n"
        "  output: {{solution: x.npy}}\nlayout: {{tile: 16, strip: 0, virtual: 1, tree: {}}}\n"
        "runtime: {{devices: {{backend: emulated, per_node: 1, memory: 48KiB}}}}\n",
        tree));
    EXPECT_GT(report["evictions"].get<std::int64_t>(), 0);
    const Dense expected = testing::least_squares(a, b).solution;
    const Dense actual = testing::read_npy(folder_ / "x.npy");
    ASSERT_EQ(actual.elements.size(), expected.elements.size());
    for (std::size_t i = 0; i < expected.elements.size(); ++i) {
      ASSERT_NEAR(actual.elements[i], expected.elements[i], 1e-12);
    }
  }
}

TEST_F(Devices, are_refused_when_not_even_the_tiles_of_a_task_are_sure_to_fit) {
  for (const int nodes : {0, 2}) {
    expect_refused(solve(with_devices("backend: emulated, per_node: 1, memory: 20KiB"), nodes),
                   {"device 0", nodes == 0 ? "20.00 KiB are available" : "18.25 KiB are available",
                    "to work out of core", "layout.tile", "runtime.devices.memory"});
  }
}

TEST_F(Devices, are_refused_when_the_host_has_no_memory_for_what_they_have_no_room_for) {
  const double available = host_bytes_available();
  ASSERT_GT(available, 0);
  // The lower triangle is larger than the host's memory, and smaller than the two memories
  // together.
  const auto n = static_cast<std::int64_t>(std::sqrt(1.2 * available * 2 / sizeof(double)));
  const auto memory = static_cast<std::int64_t>(0.5 * available);
  expect_refused(
      solve(fmt::format("problem: {{matrix: {{generate: spd, n: {}}}, output: {{factor: l.npy}}, "
                        "verify: false}}\nlayout: {{tile: {}, strip: 0}}\nruntime: {{devices: "
                        "{{backend: emulated, per_node: 1, memory: {}}}}}\n",
                        n, n / 50, memory)),
      {"memory on the host", "tiles of devices that have no room for them", "are available"});
}

TEST_F(Devices, are_none_where_there_is_no_gpu_and_the_plan_says_why) {
  const CudaProbe probe = probe_cuda();
  if (!probe.gpus.empty()) GTEST_SKIP() << "there are GPUs: " << probe.why;
  for (const int nodes : {0, 2}) {
    const Ended ended = solve(with_devices("backend: auto"), nodes, {"--report", "report.json"});
    EXPECT_EQ(ended.status, 0) << ended.error;
    EXPECT_NE((ended.out + ended.error).find("no devices: " + probe.why), std::string::npos)
        << ended.out << ended.error;
    const auto report = nlohmann::json::parse(testing::read_file(folder_ / "report.json"));
    EXPECT_EQ(report["device_backend"], "none");
    EXPECT_EQ(report["devices"], 0);
    EXPECT_LT(report["residual"].get<double>(), 1);
    std::filesystem::remove(folder_ / "l.npy");
  }
}

TEST_F(Devices, that_are_not_there_are_refused_with_the_reason) {
  const CudaProbe probe = probe_cuda();
  for (const int nodes : {0, 2}) {
    if (probe.gpus.empty()) {
      expect_refused(solve(with_devices("backend: cuda"), nodes),
                     {"the cuda backend was asked for", probe.why, "emulated"});
      expect_refused(solve(with_devices("backend: auto, per_node: 3"), nodes),
                     {"3 devices per node asked for", probe.why});
    } else {
      expect_refused(solve(with_devices("backend: cuda, per_node: 64"), nodes),
                     {"64 GPUs per node asked for", std::to_string(probe.gpus.size()), probe.why});
    }
  }
  expect_refused(solve(with_devices("backend: none, per_node: 2")),
                 {"runtime.devices.per_node", "backend: none", "found 2"});
}

}  // namespace heddle
