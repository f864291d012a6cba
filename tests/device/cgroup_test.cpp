#include "node-runtime/topology/cgroup.hpp"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <unistd.h>

namespace heddle {
namespace {

namespace fs = std::filesystem;

/// A made-up /proc/self and /sys/fs/cgroup.
class CgroupTest : public ::testing::Test {
 protected:
  CgroupTest()
      : root_(fs::temp_directory_path() / ("heddle-cgroup-" + std::to_string(::getpid()))) {}
  void TearDown() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  [[nodiscard]] CgroupLimits read() const {
    return read_cgroup_limits(root_ / "proc", root_ / "sys");
  }

 private:
  fs::path root_;
};

TEST_F(CgroupTest, no_files_mean_no_limits) {
  const CgroupLimits limits = read();
  EXPECT_FALSE(limits.cpus || limits.memory_bytes || limits.memory_unused);
}

TEST_F(CgroupTest, the_tightest_group_above_the_process_counts) {
  write("proc/cgroup", "0::/batch/job\n");
  write("sys/batch/job/cpu.max", "max 100000\n");
  write("sys/batch/job/memory.max", "max\n");
  write("sys/batch/cpu.max", "250000 100000\n");
  write("sys/batch/memory.max", "1000000\n");
  write("sys/batch/memory.current", "600000\n");
  write("sys/batch/memory.stat", "anon 1\ninactive_file 200000\nfile 3\n");
  const CgroupLimits limits = read();
  EXPECT_EQ(limits.cpus, 2.5);
  EXPECT_EQ(limits.memory_bytes, 1000000U);
  EXPECT_EQ(limits.memory_unused, 600000U);
}

TEST_F(CgroupTest, version_1_is_read_and_its_words_for_unlimited_are_known) {
  write("proc/cgroup", "5:cpu,cpuacct:/docker/1\n4:memory:/docker/1\n");
  write("sys/cpu/cpu.cfs_quota_us", "-1\n");
  write("sys/cpu/docker/1/cpu.cfs_quota_us", "400000\n");
  write("sys/cpu/docker/1/cpu.cfs_period_us", "100000\n");
  write("sys/memory/memory.limit_in_bytes", "9223372036854771712\n");
  CgroupLimits limits = read();
  EXPECT_EQ(limits.cpus, 4.0);
  EXPECT_FALSE(limits.memory_bytes);
  write("sys/memory/docker/1/memory.limit_in_bytes", "5000\n");
  write("sys/memory/docker/1/memory.usage_in_bytes", "6000\n");
  limits = read();
  EXPECT_EQ(limits.memory_bytes, 5000U);
  EXPECT_EQ(limits.memory_unused, 0U);
}

}  // namespace
}  // namespace heddle
