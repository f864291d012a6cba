#include <csignal>
#include <cstdlib>

#include "tests/system/heddle_run.hpp"

/// `heddle tune` through the binary. What it measures in a second is no good; what it does with it
/// is the same.
namespace heddle {
namespace {

using testing::Ended;
using testing::HeddleRun;
using testing::Process;

class Tune : public HeddleRun {
 protected:
  void SetUp() override {
    HeddleRun::SetUp();
    // It would decide about kernels, and is refused by tune.
    ::unsetenv("OPENBLAS_CORETYPE");
  }

  static bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }
  [[nodiscard]] Ended plan_with(const std::string& file, int nodes) const {
    return solve(
        "problem: {matrix: {generate: spd, n: 700}}\n"
        "runtime: {devices: {backend: emulated, memory: 64MiB}}\nmachine: " +
            file + "\n",
        nodes, {"--dry-run"});
  }
};

}  // namespace

TEST_F(Tune, writes_a_file_that_a_run_takes_its_sizes_from) {
  const Ended tuned =
      run(alone({"tune", "--seconds", "1", "--set", "runtime.devices.backend=emulated", "--set",
                 "runtime.devices.memory=256MiB", "--output", "f.yaml"}));
  ASSERT_EQ(tuned.status, 0) << tuned.error;
  EXPECT_TRUE(contains(tuned.out, "gsmm")) << tuned.out;
  EXPECT_TRUE(contains(tuned.out, "chosen for n =")) << tuned.out;
  EXPECT_TRUE(contains(tuned.out, "f.yaml")) << tuned.out;
  EXPECT_TRUE(contains(testing::read_file(folder_ / "f.yaml"), "measured:"));
  EXPECT_EQ(folder_.names().size(), 1U) << "more than the file is there";

  for (const int nodes : {0, 2}) {
    const Ended planned = plan_with("f.yaml", nodes);
    EXPECT_EQ(planned.status, 0) << planned.error;
    EXPECT_TRUE(contains(planned.out, "machine file      f.yaml")) << planned.out;
    EXPECT_TRUE(contains(planned.out, "by the machine file's measurements of emulated devices"))
        << planned.out;
  }
}

TEST_F(Tune, measures_messages_between_two_nodes_and_keeps_what_it_did_not_measure) {
  const std::vector<std::string> words{"tune",     "-q",    "--seconds",
                                       "1",        "--set", "runtime.devices.backend=none",
                                       "--output", "f.yaml"};
  const Ended two = run(on(2, words));
  ASSERT_EQ(two.status, 0) << two.error;
  EXPECT_EQ(two.out, "");
  for (const char* key : {"latency_us", "note_us", "packing"}) {
    EXPECT_TRUE(contains(testing::read_file(folder_ / "f.yaml"), key)) << key;
  }
  const Ended one = run(alone(words));
  ASSERT_EQ(one.status, 0) << one.error;
  EXPECT_TRUE(contains(testing::read_file(folder_ / "f.yaml"), "latency_us"));
}

TEST_F(Tune, measures_copies_of_groups_where_nodes_of_one_host_have_devices) {
  const auto words = [](const char* backend) {
    return std::vector<std::string>{"tune",
                                    "--seconds",
                                    "1",
                                    "--set",
                                    std::string("runtime.devices.backend=").append(backend),
                                    "--output",
                                    "f.yaml"};
  };
  const Ended without = run(on(2, words("none")));
  ASSERT_EQ(without.status, 0) << without.error;
  EXPECT_FALSE(contains(testing::read_file(folder_ / "f.yaml"), "group_copies"));

  const Ended with = run(on(3, words("emulated")));
  ASSERT_EQ(with.status, 0) << with.error;
  EXPECT_TRUE(contains(with.out, "broadcast of 3 ranks, up to 4.00 KiB: ")) << with.out;
  const std::string file = testing::read_file(folder_ / "f.yaml");
  EXPECT_TRUE(contains(file, "{operation: broadcast, ranks: 3, bytes: 4096, staged: ")) << file;
  EXPECT_EQ(plan_with("f.yaml", 2).status, 0);

  // One node measures none, and keeps them.
  const Ended alone_again = run(alone(words("emulated")));
  ASSERT_EQ(alone_again.status, 0) << alone_again.error;
  EXPECT_TRUE(contains(testing::read_file(folder_ / "f.yaml"), "group_copies"));
}

TEST_F(Tune, refuses_what_it_cannot_do_before_it_measures) {
  struct Case {
    std::vector<std::string> options;
    std::vector<std::string> parts;
  };
  for (const Case& c :
       {Case{{"--seconds", "0"}, {"--seconds", "a number from 1 to 120"}},
        Case{{"--seconds", "121"}, {"--seconds", "a number from 1 to 120"}},
        Case{{"--outptu", "f.yaml"}, {"--outptu"}},
        Case{{"--output", "nowhere/f.yaml"}, {"nowhere/f.yaml", "no folder"}},
        Case{{"--output", "."}, {"it is a folder"}},
        Case{{"--set", "runtime.devcies.backend=none"}, {"did you mean 'devices'"}},
        Case{{"--set", "runtime.devices.per_node=-1"}, {"--set 1", "per_node"}},
        Case{{"--output", "f.yaml", "--set", "machine=none.yaml"}, {"none.yaml", "missing"}}}) {
    std::vector<std::string> words{"tune"};
    words.insert(words.end(), c.options.begin(), c.options.end());
    expect_refused(run(alone(words)), c.parts);
  }
  expect_refused(run(on(3, {"tune", "--output", "nowhere/f.yaml"})), {"nowhere/f.yaml"});
  EXPECT_TRUE(folder_.names().empty());
}

TEST_F(Tune, refuses_an_old_file_that_was_named_and_says_what_to_do) {
  folder_.write("old.yaml", "heddle_machine: 1\n");
  expect_refused(plan_with("old.yaml", 0),
                 {"old.yaml:1:17", "format 1", "reads 2", "`heddle tune` writes a new one"});
}

TEST_F(Tune, replaces_a_broken_file_but_leaves_nothing_when_it_is_interrupted) {
  folder_.write("f.yaml", "broken");
  Process process(alone({"tune", "-v", "--seconds", "60", "--set", "runtime.devices.backend=none",
                         "--output", "f.yaml"}),
                  folder_.path());
  ASSERT_TRUE(process.wait_for_output("gsmm"));
  process.signal(SIGINT);
  const Ended ended = process.wait();
  EXPECT_EQ(ended.status, 130) << ended.error;
  EXPECT_TRUE(contains(ended.error, "interrupted by SIGINT")) << ended.error;
  EXPECT_EQ(folder_.names(), (std::vector<std::string>{"f.yaml"}));
  EXPECT_EQ(testing::read_file(folder_ / "f.yaml"), "broken");
}

}  // namespace heddle
