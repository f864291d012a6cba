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

int worth(std::int64_t n, int gpus, const std::string& devices = "", int nodes = 1) {
  return gpus_worth_starting(configured("cholesky", devices), n, n, nodes, gpus);
}

}  // namespace

TEST(GpuNeed, is_as_many_as_save_more_than_they_take_to_start) {
  EXPECT_EQ(worth(1000, 2), 1);
  EXPECT_EQ(worth(20000, 4), 1);
  EXPECT_EQ(worth(40000, 4), 1);
  EXPECT_EQ(worth(50000, 2), 2);
  EXPECT_EQ(worth(50000, 4), 2);
  EXPECT_EQ(worth(50000, 3), 2);
  EXPECT_EQ(worth(200000, 4), 4);
  const Config qr = configured("qr");
  EXPECT_EQ(gpus_worth_starting(qr, 400000, 2000, 1, 4), 1);
  EXPECT_EQ(gpus_worth_starting(qr, 30000, 30000, 1, 4), 2);
}

TEST(GpuNeed, is_more_where_fewer_may_lack_memory) {
  const Config qr = configured("qr");
  EXPECT_EQ(gpus_worth_starting(qr, 40000000, 64, 1, 4), 4) << "twice 19 GiB";
  EXPECT_EQ(gpus_worth_starting(qr, 20000000, 64, 1, 4), 2);
}

TEST(GpuNeed, leaves_what_the_user_says_and_several_nodes_alone) {
  EXPECT_EQ(worth(1000, 4, "per_node: 4"), 4);
  EXPECT_EQ(worth(1000, 4, "per_node: 1"), 4) << "nothing is to be said";
  EXPECT_EQ(worth(1000, 4, "backend: emulated"), 4);
  EXPECT_EQ(worth(1000, 4, "backend: none"), 4);
  EXPECT_EQ(worth(1000, 4, "backend: cuda"), 1);
  EXPECT_EQ(worth(1000, 4, "", 2), 4);
  EXPECT_EQ(worth(1000, 1), 1);
  EXPECT_EQ(worth(1000, 0), 0);
}

TEST(GpuNeed, leaves_the_first_gpus_that_the_environment_shows) {
  ASSERT_EQ(::setenv("CUDA_VISIBLE_DEVICES", "GPU-1a,3,2", 1), 0);
  EXPECT_EQ(gpus_in_sight(), 3);
  leave_gpus_in_sight(2);
  EXPECT_STREQ(std::getenv("CUDA_VISIBLE_DEVICES"), "GPU-1a,3");
  EXPECT_EQ(gpus_in_sight(), 2);
  leave_gpus_in_sight(1);
  EXPECT_STREQ(std::getenv("CUDA_VISIBLE_DEVICES"), "GPU-1a");
  EXPECT_EQ(gpus_in_sight(), 1);
  ASSERT_EQ(::setenv("CUDA_VISIBLE_DEVICES", "", 1), 0);
  EXPECT_EQ(gpus_in_sight(), 0);
  ASSERT_EQ(::unsetenv("CUDA_VISIBLE_DEVICES"), 0);
  leave_gpus_in_sight(2);
  EXPECT_STREQ(std::getenv("CUDA_VISIBLE_DEVICES"), "0,1");
}

}  // namespace heddle
