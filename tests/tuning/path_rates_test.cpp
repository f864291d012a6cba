#include "node-runtime/path_rates.hpp"

#include <gtest/gtest.h>

namespace heddle {

TEST(PathRates, are_what_was_measured_and_otherwise_what_is_usual) {
  const p2p::PathRates usual;
  const p2p::PathRates nothing = path_rates({});
  EXPECT_EQ(nothing.message, usual.message);
  EXPECT_EQ(nothing.device_us, usual.device_us);

  Measurements measured;
  measured.messages.emplace();
  measured.messages->latency_us = 3;
  measured.messages->rate = 11;
  p2p::PathRates rates = path_rates(measured);
  EXPECT_EQ(rates.message_us, 3);
  EXPECT_EQ(rates.message, 11);
  EXPECT_EQ(rates.note_us, usual.note_us);
  EXPECT_EQ(rates.read, usual.read);

  measured.messages->host = {0.5, 7};
  measured.messages->reading = {1.5, 13};
  CopyRates& copies = measured.devices.emplace_back().copies;
  copies.to_device = 51;
  copies.to_host = 52;
  copies.to_peer = 53;
  copies.within = 54;
  copies.packing = 55;
  copies.short_us = 56;
  rates = path_rates(measured);
  EXPECT_EQ(rates.note_us, 0.5);
  EXPECT_EQ(rates.host, 7);
  EXPECT_EQ(rates.read_us, 1.5);
  EXPECT_EQ(rates.read, 13);
  EXPECT_EQ(rates.to_device, 51);
  EXPECT_EQ(rates.to_host, 52);
  EXPECT_EQ(rates.peer, 53);
  EXPECT_EQ(rates.local, 54);
  EXPECT_EQ(rates.pack, 55);
  EXPECT_EQ(rates.device_us, 56);
}

}  // namespace heddle
