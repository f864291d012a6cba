#include "node-runtime/measured_copies.hpp"

#include <gtest/gtest.h>

namespace heddle {

using collectives::CollectiveKind;
using collectives::CopyTable;
using collectives::CopyType;

TEST(MeasuredCopies, are_the_rows_of_the_machine_file_and_what_one_copy_takes_by_its_rates) {
  Measurements measured;
  EXPECT_TRUE(measured_copies(measured)->rows.empty());
  EXPECT_FALSE(measured_copies(measured)->rates.has_value());

  DeviceMeasurement& device = measured.devices.emplace_back();
  device.group_copies = {{"broadcast", 4, 8192, 3}, {"all_reduce", 8, 65536, 2}};
  device.copies.to_device = 50;
  device.copies.to_host = 50;
  const auto rows = measured_copies(measured);
  EXPECT_EQ(rows->rows, (std::vector<CopyTable::Row>{{CollectiveKind::broadcast, 4, 8192, 3},
                                                     {CollectiveKind::all_reduce, 8, 65536, 2}}));
  EXPECT_FALSE(rows->rates.has_value()) << "a short copy was not measured";

  device.copies.within = 1000;
  device.copies.short_us = 8;
  measured.messages.emplace();
  measured.messages->host = {2, 25};
  const auto rates = measured_copies(measured)->rates;
  ASSERT_TRUE(rates.has_value());
  EXPECT_DOUBLE_EQ((*rates)[0].seconds(1e6), 8e-6 + 1e-6);
  // 18 us; then 20 us to the host, 40 us there, and 20 us to the device.
  EXPECT_DOUBLE_EQ((*rates)[1].seconds(1e6), 18e-6 + 80e-6);
  EXPECT_EQ(measured_copies(measured)->faster(1'000'000), CopyType::mapped);
}

}  // namespace heddle
