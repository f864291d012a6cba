#include "apps/simulation/configuration_keys.hpp"

#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "config/options.hpp"
#include "config/problem.hpp"

namespace heddle {
namespace {

Config configured(const std::string& runtime) {
  return Config::from_text("problem: {matrix: {generate: spd, n: 100}}\nruntime: {" + runtime + "}",
                           "p.yaml");
}

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    return error.what();
  }
  return "not refused";
}

}  // namespace

TEST(ConfigurationKeys, say_of_each_option_what_it_is_to_a_simulation) {
  std::vector<std::string_view> options;
  for (const config::Option& option : config::options()) {
    if (!option.is_group()) options.push_back(option.path);
  }
  std::vector<std::string_view> keys;
  for (const ConfigurationKey& key : configuration_keys()) {
    keys.push_back(key.path);
    EXPECT_EQ(key.why.empty(), key.use == KeyUse::modelled) << key.path;
  }
  EXPECT_EQ(keys, options) << "a new option needs a line in configuration_keys.cpp";
}

TEST(ConfigurationKeys, configurations_differ_by_what_changes_times) {
  const Config one = configured("window: 4, watchdog_seconds: 5");
  EXPECT_FALSE(difference_of(one, configured("window: 4, watchdog_seconds: 7")));
  Config other = one;
  other.machine = "m.yaml";
  other.logging.level = config::LogLevel::debug;
  other.problem->verify = config::Verify::none;
  EXPECT_FALSE(difference_of(one, other));
  const auto window = difference_of(one, configured("watchdog_seconds: 5"));
  ASSERT_TRUE(window);
  EXPECT_EQ(window->path, "runtime.window");
  EXPECT_EQ(window->one, "4");
  EXPECT_EQ(window->other, "auto");
  const auto wait = difference_of(one, configured("window: 4, wait: spin"));
  ASSERT_TRUE(wait);
  EXPECT_EQ(wait->path, "runtime.wait");
  EXPECT_EQ(wait->other, "spin");
}

TEST(ConfigurationKeys, that_are_in_measured_times_keep_their_values) {
  check_measured_keys(configured("window: 4"), configured("window: 5"));
  check_measured_keys(configured("wait: park"), configured("wait: park"));
  EXPECT_EQ(refusal([] { check_measured_keys(configured("wait: park"), configured("")); }),
            "p.yaml: runtime.wait: park cannot be simulated: the times to wake a thread are "
            "measured, not modelled; the times here are those of adaptive");
  EXPECT_EQ(
      refusal([] { check_measured_keys(configured("messages: {path: put}"), configured("")); }),
      "p.yaml: runtime.messages.path: put cannot be simulated: the times of messages are measured, "
      "not modelled by path; the times here are those of auto");
}

TEST(ConfigurationKeys, of_the_runtime_change_the_machine) {
  Config all = configured("cpu_workers: 3, devices: {per_node: 2, memory: 1MiB, streams: 4}");
  all.layout.inner = 32;
  EXPECT_EQ(machine_changes(all, {}),
            (std::vector<std::string>{"cpu_workers=3", "devices=2", "device_memory=1048576",
                                      "device_streams=4", "inverse_block=32"}));
  EXPECT_TRUE(machine_changes(all, all).empty());
  EXPECT_TRUE(machine_changes({}, all).empty());
  EXPECT_EQ(machine_changes(configured("devices: {backend: none}"), all),
            std::vector<std::string>{"devices=0"});
}

TEST(ConfigurationKeys, and_those_of_the_machine_do_not_say_the_same_at_once) {
  check_said_once(SplitOverrides({"runtime.cpu_workers=3", "machine.devices=2"}));
  EXPECT_EQ(refusal([] {
              check_said_once(SplitOverrides({"runtime.cpu_workers=3", "machine.cpu_workers=2"}));
            }),
            "'runtime.cpu_workers' and 'machine.cpu_workers' are set at once, and say the same of "
            "a node; leave one out");
  EXPECT_NE(
      refusal([] {
        check_said_once(SplitOverrides({"runtime.devices={per_node: 3}", "machine.devices=2"}));
      }),
      "not refused");
}

TEST(ConfigurationKeys, want_devices_of_the_kind_that_the_machine_has) {
  const config::Devices emulated = configured("devices: {backend: emulated}").runtime.devices;
  MachineDescription machine;
  machine.machine.name = "small";
  const SplitOverrides nothing({});
  check_device_kind({}, machine, nothing);
  EXPECT_NE(refusal([&] {
              check_device_kind(emulated, machine, nothing);
            }).find("emulated cannot be simulated: machine 'small' has no devices"),
            std::string::npos);
  check_device_kind(emulated, machine, SplitOverrides({"machine.devices=0"}));
  machine.machine.devices = 1;
  EXPECT_EQ(refusal([&] { check_device_kind(emulated, machine, nothing); }),
            "runtime.devices.backend: emulated cannot be simulated: the devices of machine 'small' "
            "are of the kind cuda");
  machine.device_backend = "emulated";
  check_device_kind(emulated, machine, nothing);
}

TEST(ConfigurationKeys, are_set_by_themselves_or_by_a_group_that_they_are_in) {
  const std::vector<std::string> overrides{"layout={tile: 50}", "runtime.window=4",
                                           "nodes_per_host=2"};
  for (const char* key : {"layout.tile", "layout", "runtime.window", "nodes_per_host"}) {
    EXPECT_TRUE(sets(overrides, key)) << key;
  }
  for (const char* key : {"runtime", "runtime.windows", "nodes", "tile", "machine"}) {
    EXPECT_FALSE(sets(overrides, key)) << key;
  }
}

}  // namespace heddle
