#include "node-runtime/device/devices.hpp"

#include <gtest/gtest.h>

#include "node-runtime/device/gpu_share.hpp"
#include "tests/device/device_fixture.hpp"

namespace heddle {

using testing::error_of;

TEST(Devices, none_gives_none_and_says_so) {
  const DeviceSet set = make_devices({DeviceBackend::none, {}, {}});
  EXPECT_EQ(set.backend, DeviceBackend::none);
  EXPECT_TRUE(set.devices.empty());
  EXPECT_FALSE(set.why.empty());
}

TEST(Devices, automatic_never_emulates_and_gives_its_reason) {
  const DeviceSet set = make_devices({});
  EXPECT_NE(set.backend, DeviceBackend::emulated);
  EXPECT_NE(set.backend, DeviceBackend::automatic);
  EXPECT_EQ(set.devices.empty(), set.backend == DeviceBackend::none);
  EXPECT_FALSE(set.why.empty());
}

TEST(Devices, emulated_ones_are_as_many_as_asked_for_and_one_by_default) {
  DeviceOptions options{DeviceBackend::emulated, 3, {}};
  options.emulated.memory_bytes = 1 << 20;
  const DeviceSet three = make_devices(options);
  ASSERT_EQ(three.devices.size(), 3U);
  EXPECT_EQ(three.devices[2]->info().index, 2);
  EXPECT_EQ(three.devices[2]->info().memory_bytes, 1U << 20);
  options.count.reset();
  EXPECT_EQ(make_devices(options).devices.size(), 1U);
}

TEST(Devices, nodes_of_one_host_divide_its_gpus_and_share_them_where_they_must) {
  const auto share = [](std::int32_t gpus, std::optional<std::int32_t> each, std::int32_t nodes,
                        std::int32_t node) {
    CudaOptions options;
    options.nodes = nodes;
    options.node = node;
    return share_gpus(gpus, each, options);
  };
  using Gpus = std::vector<std::int32_t>;
  EXPECT_EQ(share(4, {}, 1, 0).gpus, (Gpus{0, 1, 2, 3}));
  EXPECT_EQ(share(4, {}, 2, 1).gpus, (Gpus{2, 3}));
  EXPECT_EQ(share(4, {}, 2, 1).sharers, 1);
  EXPECT_EQ(share(4, 1, 2, 1).gpus, (Gpus{1}));
  EXPECT_EQ(share(1, {}, 3, 2).gpus, (Gpus{0}));
  EXPECT_EQ(share(1, {}, 3, 2).sharers, 3);
  EXPECT_EQ(share(2, {}, 3, 0).sharers, 2);
  EXPECT_EQ(share(2, {}, 3, 1).sharers, 1);
  EXPECT_EQ(share(2, 2, 2, 1).gpus, (Gpus{0, 1}));
  EXPECT_EQ(share(2, 2, 2, 1).sharers, 2);
}

TEST(Devices, contradictions_are_usage_errors) {
  EXPECT_NE(error_of([] {
              (void)make_devices({DeviceBackend::none, 2, {}});
            }).find("none"),
            std::string::npos);
  EXPECT_NE(error_of([] {
              (void)make_devices({DeviceBackend::emulated, -1, {}});
            }).find("-1"),
            std::string::npos);
  EXPECT_NE(error_of([] {
              (void)make_devices({DeviceBackend::cuda, 1000, {}});
            }).find("use"),
            std::string::npos);
  DeviceOptions wrong{DeviceBackend::emulated, 1, {}};
  wrong.emulated.kernel_slowdown = 0.5;
  EXPECT_NE(error_of([&] { (void)make_devices(wrong); }).find("kernel_slowdown"),
            std::string::npos);
}

}  // namespace heddle
