#include "node-runtime/node_places.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "node-runtime/collectives/schedule/levels.hpp"
#include "node-runtime/device_rates.hpp"
#include "node-runtime/wanted_devices.hpp"

/// Where nodes are, and what choices on memory of their devices follow from.
namespace heddle {
namespace {

using collectives::Level;
using collectives::Levels;
using collectives::Places;
using collectives::Rank;
using collectives::RankPlace;

NodePlace on_gpu(std::uint8_t gpu, std::int32_t pci_switch = 0) {
  NodePlace place;
  place.gpu.emplace().bytes.back() = gpu;
  place.pci_switch = pci_switch;
  return place;
}

}  // namespace

TEST(NodePlaces, travel_as_words) {
  NodePlace place = on_gpu(7, (3 << 16) | 5);
  place.socket = 2;
  place.card = 1;
  const auto words = place.to_words();
  const NodePlace other = NodePlace::from_words(words);
  EXPECT_EQ(other.gpu, place.gpu);
  EXPECT_EQ(other.socket, 2);
  EXPECT_EQ(other.pci_switch, (3 << 16) | 5);
  EXPECT_EQ(other.card, 1);
  EXPECT_FALSE(NodePlace::from_words(NodePlace{}.to_words()).gpu.has_value());
}

TEST(NodePlaces, of_one_identity_on_one_host_are_one_gpu) {
  const std::vector<std::string> hosts{"a", "a", "a", "b", "b"};
  // The third node has no GPU, and an identity on another host is another GPU.
  const std::vector<NodePlace> nodes{on_gpu(1), on_gpu(1), NodePlace{}, on_gpu(1), on_gpu(2)};
  const Places places = places_of_nodes(nodes, hosts);
  EXPECT_EQ(places[Rank{0}].gpu, places[Rank{1}].gpu);
  EXPECT_EQ(places[Rank{2}].gpu, RankPlace::no_gpu);
  EXPECT_NE(places[Rank{3}].gpu, places[Rank{0}].gpu);
  EXPECT_NE(places[Rank{3}].gpu, places[Rank{4}].gpu);
  EXPECT_EQ(Levels(places).largest(), (std::array<std::int32_t, 4>{2, 1, 2, 2}));
}

TEST(NodePlaces, order_ranks_by_what_they_share) {
  const std::vector<std::string> hosts(4, "a");
  const std::vector<NodePlace> nodes{on_gpu(1, 1), on_gpu(2, 2), on_gpu(3, 1), on_gpu(4, 2)};
  const Places places = places_of_nodes(nodes, hosts);
  const std::vector<Rank> expected{Rank{0}, Rank{2}, Rank{1}, Rank{3}};
  EXPECT_TRUE(std::ranges::equal(places.order(), expected));
}

TEST(DeviceRates, are_measured_ones_and_what_the_links_of_emulated_devices_leave) {
  NodeFacts facts;
  facts.device_backend = "cuda";
  p2p::PathRates paths;
  paths.peer = 300;
  paths.device_us = 9;
  config::Devices devices;
  const auto gpus = device_rates(facts, devices, paths);
  EXPECT_EQ(gpus.peer_bytes_per_s, 300e9);
  EXPECT_NEAR(gpus.work_s, 9e-6, 1e-12);
  EXPECT_EQ(gpus.turn_s, 0);
  facts.takes_turns = true;
  EXPECT_NEAR(device_rates(facts, devices, paths).turn_s, 140e-6, 1e-12);

  facts.device_backend = "emulated";
  devices.turn_us = 10;
  devices.link_rate = 1;
  devices.link_latency_us = 20;
  devices.switch_rate = 2;
  const auto emulated = device_rates(facts, devices, paths);
  EXPECT_EQ(emulated.peer_bytes_per_s, 1e9);
  EXPECT_EQ(emulated.to_host_bytes_per_s, 1e9);
  EXPECT_EQ(emulated.switch_bytes_per_s, 2e9);
  EXPECT_NEAR(emulated.peer_s, 20e-6, 1e-12);
  EXPECT_NEAR(emulated.turn_s, 10e-6, 1e-12);
  facts.tuning.measured.devices.emplace_back();
  devices.link_rate = 0;
  EXPECT_EQ(device_rates(facts, devices, paths).peer_bytes_per_s, 300e9) << "it was measured";
}

TEST(WantedDevices, refuse_what_only_emulated_ones_have) {
  for (const char* key :
       {"nodes_per_device=2", "links.rate=1", "links.latency_us=1", "links.switch_rate=1",
        "links.devices_per_switch=2", "links.switches_per_socket=2"}) {
    SCOPED_TRACE(key);
    const std::string set = std::string("runtime.devices.") + key;
    const auto config = [&](const char* backend) {
      const std::string chosen = std::string("runtime.devices.backend=") + backend;
      const std::vector<std::string> sets{set, chosen};
      return Config::from_text("{}", "t", sets).runtime.devices;
    };
    EXPECT_NO_THROW(static_cast<void>(wanted_devices(config("emulated"))));
    try {
      static_cast<void>(wanted_devices(config("none")));
      FAIL() << "it was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::usage);
      const std::string named = set.substr(0, set.find('='));
      EXPECT_NE(std::string(error.what()).find(named), std::string::npos) << error.what();
    }
  }
}

}  // namespace heddle
