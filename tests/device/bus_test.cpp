#include "node-runtime/topology/bus.hpp"

#include <gtest/gtest.h>
#include <string>

/// A machine with two sockets: GPUs 11 and 12 on a switch of the first one, 21 beside interface
/// mlx5_0 on its other switch, 51 on the second socket, which has interface mlx5_1.
namespace heddle {
namespace {

const std::string two_sockets = HEDDLE_BUS_FILE;

BusPlace place_of(const char* pci_address) {
  return place_on_bus(pci_address, two_sockets);
}

}  // namespace

TEST(Bus, gpus_of_a_switch_have_its_number) {
  EXPECT_EQ(place_of("0000:11:00.0").pci_switch, place_of("0000:12:00.0").pci_switch);
  EXPECT_NE(place_of("0000:11:00.0").pci_switch, place_of("0000:21:00.0").pci_switch);
  EXPECT_NE(place_of("0000:21:00.0").pci_switch, place_of("0000:51:00.0").pci_switch);
}

TEST(Bus, gpus_are_on_the_socket_of_their_bus) {
  EXPECT_EQ(place_of("0000:12:00.0").socket, 0);
  EXPECT_EQ(place_of("0000:21:00.0").socket, 0);
  EXPECT_EQ(place_of("0000:51:00.0").socket, 1);
}

TEST(Bus, the_nearest_interface_is_on_the_switch_or_else_on_the_socket) {
  EXPECT_EQ(place_of("0000:21:00.0").card, 0);
  EXPECT_EQ(place_of("0000:11:00.0").card, 0);
  EXPECT_EQ(place_of("0000:51:00.0").card, 1);
  EXPECT_EQ(card_of_socket(0, two_sockets), 0);
  EXPECT_EQ(card_of_socket(1, two_sockets), 1);
}

TEST(Bus, what_is_not_there_is_nowhere) {
  EXPECT_EQ(place_of("0000:99:00.0"), BusPlace{});
  EXPECT_EQ(place_of("what"), BusPlace{});
  EXPECT_EQ(place_on_bus("0000:11:00.0", "/nonexistent"), BusPlace{});
}

}  // namespace heddle
