#include "node-runtime/topology/surroundings.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <unistd.h>

namespace heddle {
namespace {

namespace fs = std::filesystem;

/// A made-up /proc and a made-up folder of MPS.
class SurroundingsTest : public ::testing::Test {
 protected:
  SurroundingsTest()
      : root_(fs::temp_directory_path() / ("heddle-surroundings-" + std::to_string(::getpid()))) {
    ::setenv("CUDA_MPS_PIPE_DIRECTORY", (root_ / "mps").c_str(), 1);
  }
  void TearDown() override {
    ::unsetenv("CUDA_MPS_PIPE_DIRECTORY");
    fs::remove_all(root_);
  }

  void write(const std::string& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  void link(const std::string& path, const std::string& target) const {
    fs::create_directories((root_ / path).parent_path());
    fs::create_symlink(target, root_ / path);
  }
  [[nodiscard]] Surroundings look() const { return look_around(root_ / "proc", root_); }

  fs::path root_;
};

TEST_F(SurroundingsTest, what_cannot_be_read_is_left_out) {
  const Surroundings found = look_around(root_ / "proc", root_ / "nowhere");
  EXPECT_EQ(found.namespaces, Namespaces{});
  EXPECT_FALSE(found.shared_memory_bytes || found.ptrace_scope);
  EXPECT_FALSE(found.mps.has_pipes || found.mps.has_process || found.mps.is_connected);
}

TEST_F(SurroundingsTest, namespaces_and_limits_are_as_the_system_says) {
  link("proc/self/ns/pid", "pid:[1]");
  link("proc/self/ns/ipc", "ipc:[2]");
  link("proc/self/ns/mnt", "mnt:[3]");
  link("proc/self/ns/user", "user:[4]");
  write("proc/sys/kernel/yama/ptrace_scope", "1\n");
  const Surroundings found = look();
  EXPECT_EQ(found.namespaces, (Namespaces{"pid:[1]", "ipc:[2]", "mnt:[3]", "user:[4]"}));
  EXPECT_EQ(found.ptrace_scope, 1);
  EXPECT_EQ(found.user, ::geteuid());
  ASSERT_TRUE(found.shared_memory_bytes.has_value());
  EXPECT_GE(*found.shared_memory_bytes, found.shared_memory_free_bytes);
}

TEST_F(SurroundingsTest, mps_is_there_when_its_daemon_and_its_pipes_are) {
  write("proc/17/comm", "nvidia-cuda-mps\n");
  write("proc/18/comm", "bash\n");
  EXPECT_TRUE(look().mps.has_process);
  EXPECT_FALSE(look().mps.has_pipes);
  write("mps/control", "");
  EXPECT_TRUE(look().mps.has_pipes);
  EXPECT_FALSE(look().mps.is_connected);
  link("proc/self/fd/5", (root_ / "mps" / "control").string());
  EXPECT_TRUE(look().mps.is_connected);
  EXPECT_EQ(look().mps.folder, (root_ / "mps").string());
}

TEST(Surroundings, of_this_very_process_are_found) {
  const Surroundings found = look_around();
  EXPECT_TRUE(found.namespaces.process.starts_with("pid:[")) << found.namespaces.process;
  EXPECT_EQ(found.mps.folder, "/tmp/nvidia-mps");
}

}  // namespace
}  // namespace heddle
