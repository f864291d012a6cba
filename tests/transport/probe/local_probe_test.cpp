#include "node-runtime/transport/probe/local_probe.hpp"

#include <gtest/gtest.h>

#include "node-runtime/transport/probe/transport_probe.hpp"
#include "tests/device/device_fixture.hpp"

/// Pairs of places of one node, on every backend, and with devices that do not work.
namespace heddle {
namespace {

ProbeOptions small() {
  ProbeOptions options;
  options.checked_bytes = 10'001;
  options.timed_bytes = 65'536;
  options.repeats = 2;
  options.long_repeats = 2;
  return options;
}

const Attempt& attempt(const PairReport& pair, Way way) {
  for (const Attempt& tried : pair.attempts) {
    if (tried.way == way) return tried;
  }
  throw std::runtime_error("this way was not tried");
}

std::vector<PairReport> probe(const DeviceSet& set, const ProbeOptions& options = small()) {
  const Communicator alone;
  return TransportProbe(alone, set.devices, options).run();
}

DeviceSet emulated(const FaultPlan& faults, std::int32_t count = 2) {
  DeviceOptions options{DeviceBackend::emulated, count, {}, {}};
  options.emulated.memory_bytes = 1 << 20;
  options.emulated.faults = faults;
  return make_devices(options);
}

class LocalProbe : public testing::DeviceTest {};
HEDDLE_ON_ALL_BACKENDS(LocalProbe);

TEST_P(LocalProbe, finds_every_way_between_host_and_devices) {
  const DeviceSet set = testing::make_devices_of(GetParam(), 2);
  const std::vector<PairReport> pairs = probe(set);
  ASSERT_EQ(pairs.size(), 3U);
  for (const PairReport& pair : pairs) {
    EXPECT_TRUE(pair.is_valid());
    EXPECT_EQ(pair.nearness, Nearness::node);
    for (const Attempt& tried : pair.attempts) {
      EXPECT_TRUE(tried.works) << name_of(tried.way) << ": " << tried.reason;
      EXPECT_GT(tried.latency_us, 0);
      EXPECT_GT(tried.rate, 0);
    }
  }
  EXPECT_EQ(pairs[2].best()->way, Way::peer);
}

TEST(LocalProbeFaults, refused_peers_go_through_the_host_and_say_why) {
  FaultPlan faults;
  faults.refuse_peers = true;
  const auto pairs = probe(emulated(faults));
  const PairReport& devices = pairs.at(2);
  EXPECT_FALSE(attempt(devices, Way::peer).works);
  EXPECT_NE(attempt(devices, Way::peer).reason.find("no access to each other's memory"),
            std::string::npos);
  ASSERT_NE(devices.best(), nullptr);
  EXPECT_EQ(devices.best()->way, Way::staged);
}

TEST(LocalProbeFaults, a_failed_copy_is_told_and_the_next_way_starts_afresh) {
  FaultPlan faults;
  faults.fail_copy = 2;
  const auto pairs = probe(emulated(faults, 1));
  ASSERT_EQ(pairs.size(), 1U);
  EXPECT_NE(attempt(pairs[0], Way::staged).reason.find("injected fault in copy 2"),
            std::string::npos)
      << attempt(pairs[0], Way::staged).reason;
  EXPECT_TRUE(attempt(pairs[0], Way::host).works);
}

TEST(LocalProbeFaults, a_copy_that_does_not_end_is_given_up_and_the_next_way_starts_afresh) {
  FaultPlan faults;
  faults.slow_copy = 1;
  faults.slow_copy_us = 3'600'000'000;
  ProbeOptions options = small();
  options.device_seconds_max = 0.2;
  const auto pairs = probe(emulated(faults, 1), options);
  ASSERT_EQ(pairs.size(), 1U);
  EXPECT_NE(attempt(pairs[0], Way::staged).reason.find("device 0.0 did not come to an end within"),
            std::string::npos)
      << attempt(pairs[0], Way::staged).reason;
  EXPECT_TRUE(attempt(pairs[0], Way::host).works);
}

TEST(LocalProbeFaults, a_device_without_memory_has_no_way_and_says_why) {
  FaultPlan faults;
  faults.allocation_bytes_max = 256;
  const auto pairs = probe(emulated(faults));
  for (const PairReport& pair : pairs) {
    EXPECT_EQ(pair.best(), nullptr);
    for (const Attempt& tried : pair.attempts) {
      EXPECT_NE(tried.reason.find("out of memory"), std::string::npos) << tried.reason;
    }
  }
}

TEST(LocalProbeFaults, a_host_alone_has_no_pairs) {
  EXPECT_TRUE(probe(DeviceSet{}).empty());
}

}  // namespace
}  // namespace heddle
