#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <string>
#include <vector>

#include "tests/system/heddle_run.hpp"

/// Inputs that are not what a run takes them for: others change them meanwhile, or not all nodes
/// see the same.
namespace heddle {
namespace {

using testing::Dense;
using testing::Ended;
using testing::HeddleRun;
using testing::Process;

constexpr const char* problem =
    "problem:\n  matrix: {file: a.npy}\n  rhs: {file: b.npy}\n"
    "  output: {solution: x.npy, factor: l.npy}\n";
constexpr const char* same_folder = "do all nodes see the same folder?";

Dense doubled(Dense matrix) {
  for (double& element : matrix.elements) element *= 2;
  return matrix;
}

class ChangingInputs : public HeddleRun {
 protected:
  /// Starts a run of some seconds and calls `change` when it has its plan: the matrix is read then,
  /// and once more at the end.
  /// With `devices` the matrix is read beside its factorization.
  template <class Change>
  Ended change_during_run(int nodes, const Change& change, bool devices = false) {
    constexpr std::int64_t n = 1200;
    folder_.write("a.npy", testing::npy(testing::spd(n)));
    folder_.write("b.npy", testing::npy(testing::sides(n, 1)));
    make_older("a.npy");
    make_older("b.npy");
    folder_.write(
        "problem.yaml",
        fmt::format("{}layout: {{tile: 16, strip: 0}}\nruntime: {{cpu_workers: 1, "
                    "devices: {{{}}}}}\n",
                    problem,
                    devices ? "backend: emulated, per_node: 1, memory: 64MiB" : "backend: none"));
    const std::vector<std::string> words{"solve", "problem.yaml"};
    Process run(nodes == 0 ? alone(words) : on(nodes, words), folder_.path());
    EXPECT_TRUE(run.wait_for_output("host memory")) << run.wait().error;
    change();
    return run.wait();
  }

  void make_older(const std::string& name) const {
    std::filesystem::last_write_time(
        folder_ / name, std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  }
};

class UnlikeInputs : public HeddleRun {
 protected:
  void SetUp() override {
    HeddleRun::SetUp();
    std::filesystem::create_directory(folder_ / "other");
    for (const char* folder : {"", "other/"}) {
      write(folder, "a.npy", testing::npy(testing::spd(200)));
      write(folder, "b.npy", testing::npy(testing::sides(200, 1)));
      write(folder, "problem.yaml", problem);
    }
  }

  void write(const std::string& folder, const std::string& name, const std::string& content) {
    folder_.write(folder + name, content);
  }

  /// The last of the nodes works in the folder `other`.
  Ended run_beside_other(int nodes, const std::vector<std::string>& options = {}) {
    std::vector<std::string> words{HEDDLE_MPIEXEC, "-n", std::to_string(nodes - 1)};
    const auto add = [&](const std::vector<std::string>& more) {
      words.insert(words.end(), more.begin(), more.end());
    };
    add({HEDDLE_BINARY, "solve", "problem.yaml"});
    add(options);
    add({":", "-n", "1", "-wdir", folder_ / "other", HEDDLE_BINARY, "solve", "problem.yaml"});
    add(options);
    return run(words);
  }

  void expect_difference(const std::vector<std::string>& parts,
                         const std::vector<std::string>& options = {}) {
    for (const int nodes : {2, 3, 4}) {
      SCOPED_TRACE(nodes);
      std::vector<std::string> all = parts;
      all.push_back(fmt::format("node {} ", nodes - 1));
      all.emplace_back(same_folder);
      expect_refused(run_beside_other(nodes, options), all);
    }
  }
};

}  // namespace

TEST_F(ChangingInputs, that_become_shorter_end_the_run_with_their_name) {
  for (const char* name : {"a.npy", "b.npy"}) {
    for (const int nodes : {0, 1, 2, 3}) {
      SCOPED_TRACE(fmt::format("{} nodes {}", name, nodes));
      expect_refused(
          change_during_run(nodes, [&] { std::filesystem::resize_file(folder_ / name, 5000); }),
          {name, "it became shorter while it was read", "5000 now"});
    }
    for (const int nodes : {0, 2}) {
      SCOPED_TRACE(fmt::format("{} nodes with devices {}", name, nodes));
      const auto shorten = [&] { std::filesystem::resize_file(folder_ / name, 5000); };
      expect_refused(change_during_run(nodes, shorten, true),
                     {name, "it became shorter while it was read", "5000 now"});
    }
  }
}

TEST_F(ChangingInputs, that_get_other_numbers_end_the_run_with_their_name) {
  const std::string other = testing::npy(doubled(testing::spd(1200)));
  for (const int nodes : {0, 2, 3}) {
    SCOPED_TRACE(nodes);
    expect_refused(change_during_run(nodes,
                                     [&] {
                                       std::fstream file(folder_ / "a.npy", std::ios::in |
                                                                                std::ios::out |
                                                                                std::ios::binary);
                                       file << other;
                                     }),
                   {"a.npy", "changed while it was read"});
  }
}

TEST_F(ChangingInputs, that_are_replaced_as_a_whole_do_not_disturb_the_run) {
  const Ended ended = change_during_run(2, [&] {
    folder_.write("next.npy", testing::npy(testing::spd(10)));
    std::filesystem::rename(folder_ / "next.npy", folder_ / "a.npy");
  });
  EXPECT_EQ(ended.status, 0) << ended.error;
}

TEST_F(UnlikeInputs, that_have_the_same_content_are_good) {
  for (const char* folder : {"", "other/"}) {
    write(folder, "problem.yaml", "problem: {matrix: {file: a.npy}, rhs: {file: b.npy}}\n");
  }
  const Ended ended = run_beside_other(3);
  EXPECT_EQ(ended.status, 0) << ended.error;
  EXPECT_EQ(ended.error, "");
}

TEST_F(UnlikeInputs, of_another_content_are_refused) {
  write("other/", "a.npy", testing::npy(doubled(testing::spd(200))));
  expect_difference({"another a.npy than node 0, both of 200 x 200"});
}

TEST_F(UnlikeInputs, that_differ_in_one_element_are_refused) {
  Dense b = testing::sides(200, 1);
  b(199, 0) += 1;
  write("other/", "b.npy", testing::npy(b));
  expect_difference({"another b.npy than node 0, both of 200 x 1"});
}

TEST_F(UnlikeInputs, of_another_size_are_refused_with_both_sizes) {
  write("other/", "a.npy", testing::npy(testing::spd(100)));
  write("other/", "b.npy", testing::npy(testing::sides(100, 1)));
  expect_difference({"sees a.npy of 100 x 100, node 0 of 200 x 200"});
}

TEST_F(UnlikeInputs, of_another_number_of_sides_are_refused_though_each_alone_is_good) {
  write("other/", "b.npy", testing::npy(testing::sides(200, 2)));
  expect_difference({"sees b.npy of 200 x 2, node 0 of 200 x 1"});
}

TEST_F(UnlikeInputs, that_one_node_does_not_have_are_refused) {
  std::filesystem::remove(folder_ / "other/b.npy");
  expect_difference(
      {"sees b.npy that cannot be read (No such file or directory)", "node 0 of 200 x 1"});
}

TEST_F(UnlikeInputs, of_text_are_compared_too) {
  const std::string of_text = "problem:\n  matrix: {file: a.mtx}\n";
  for (const char* folder : {"", "other/"}) {
    write(folder, "problem.yaml", of_text);
    write(folder, "a.mtx", testing::mtx(testing::spd(folder[0] == 0 ? 60 : 70), true));
  }
  expect_difference({"sees a.mtx of 70 x 70, node 0 of 60 x 60"});
}

TEST_F(UnlikeInputs, of_machines_that_the_user_names_are_compared) {
  for (const char* folder : {"", "other/"}) {
    write(folder, "machine.yaml", folder[0] == 0 ? "first\n" : "second one\n");
  }
  expect_difference({"sees machine.yaml of 11 bytes, node 0 of 6 bytes"},
                    {"--set", "machine=machine.yaml"});
}

TEST_F(UnlikeInputs, that_are_large_are_compared_by_samples) {
  write("other/", "a.npy", testing::npy(testing::spd(1500)));
  write("", "a.npy", testing::npy(doubled(testing::spd(1500))));
  for (const char* folder : {"", "other/"}) {
    write(folder, "b.npy", testing::npy(testing::sides(1500, 1)));
  }
  expect_refused(run_beside_other(2), {"node 1 sees another a.npy", same_folder});
}

TEST_F(UnlikeInputs, of_problems_are_refused) {
  write("other/", "problem.yaml", fmt::format("{}layout: {{tile: 32}}\n", problem));
  for (const int nodes : {2, 3, 4}) {
    SCOPED_TRACE(nodes);
    expect_refused(run_beside_other(nodes),
                   {fmt::format("node {} ", nodes - 1), "another configuration", "problem.yaml"});
  }
}

}  // namespace heddle
