#include "node-runtime/device/devices.hpp"

#include <gtest/gtest.h>

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
