#include "apps/gpu_need.hpp"

#include <cstdlib>
#include <gtest/gtest.h>
#include <string>

namespace heddle {
namespace {

Config configured(const std::string& factorization, const std::string& devices = "") {
  return Config::from_text("problem: {factorization: " + factorization +
                               ", matrix: {generate: spd, n: 100}}\n" + "runtime: {devices: {" +
                               devices + "}}\n",
                           "gpu need test");
}

bool one_does(std::int64_t n, int gpus, const std::string& devices = "", int nodes = 1) {
  return one_gpu_does(configured("cholesky", devices), n, n, nodes, gpus);
}

}  // namespace

TEST(GpuNeed, is_one_for_problems_that_are_solved_before_others_would_have_started) {
  EXPECT_TRUE(one_does(1000, 2));
  EXPECT_TRUE(one_does(20000, 4));
  EXPECT_FALSE(one_does(50000, 4));
  EXPECT_FALSE(one_does(40000, 2)) << "two start sooner than four";
  EXPECT_TRUE(one_gpu_does(configured("qr"), 400000, 2000, 1, 4));
  EXPECT_FALSE(one_gpu_does(configured("qr"), 50000, 50000, 1, 4));
}

TEST(GpuNeed, is_all_where_one_may_lack_memory) {
  EXPECT_FALSE(one_gpu_does(configured("qr"), 40000000, 64, 1, 4)) << "twice 19 GiB";
}

TEST(GpuNeed, leaves_what_the_user_says_and_several_nodes_alone) {
  EXPECT_FALSE(one_does(1000, 4, "per_node: 4"));
  EXPECT_FALSE(one_does(1000, 4, "per_node: 1")) << "nothing is to be said";
  EXPECT_FALSE(one_does(1000, 4, "backend: emulated"));
  EXPECT_FALSE(one_does(1000, 4, "backend: none"));
  EXPECT_TRUE(one_does(1000, 4, "backend: cuda"));
  EXPECT_FALSE(one_does(1000, 4, "", 2));
  EXPECT_FALSE(one_does(1000, 1));
  EXPECT_FALSE(one_does(1000, 0));
}

TEST(GpuNeed, leaves_the_first_gpu_that_the_environment_shows) {
  ASSERT_EQ(::setenv("CUDA_VISIBLE_DEVICES", "GPU-1a,3,2", 1), 0);
  EXPECT_EQ(gpus_in_sight(), 3);
  leave_one_gpu_in_sight();
  EXPECT_STREQ(std::getenv("CUDA_VISIBLE_DEVICES"), "GPU-1a");
  EXPECT_EQ(gpus_in_sight(), 1);
  ASSERT_EQ(::setenv("CUDA_VISIBLE_DEVICES", "", 1), 0);
  EXPECT_EQ(gpus_in_sight(), 0);
  ASSERT_EQ(::unsetenv("CUDA_VISIBLE_DEVICES"), 0);
  leave_one_gpu_in_sight();
  EXPECT_STREQ(std::getenv("CUDA_VISIBLE_DEVICES"), "0");
}

}  // namespace heddle
