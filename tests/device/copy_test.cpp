#include <gtest/gtest.h>
#include <vector>

#include "tests/device/device_fixture.hpp"
#include "tests/device/device_kernels.hpp"

namespace heddle {

using testing::error_of;
using testing::HostArray;

constexpr std::size_t word = sizeof(double);

using DeviceCopyTest = testing::DeviceTest;
HEDDLE_ON_ALL_BACKENDS(DeviceCopyTest);

TEST_P(DeviceCopyTest, data_survives_the_way_to_the_device_within_it_and_back) {
  constexpr std::size_t count = 100'003;
  const HostArray in(device(), count);
  const HostArray out(device(), count);
  in.count_up_from(1);
  const DeviceBuffer a(device(), in.bytes());
  const DeviceBuffer b(device(), in.bytes());
  const auto stream = device().create_stream();

  stream->copy({a.address(), &device()}, {in.data(), nullptr}, in.bytes());
  stream->copy({b.address(), &device()}, {a.address(), &device()}, in.bytes());
  stream->copy({out.data(), nullptr}, {b.address(), &device()}, in.bytes());
  stream->synchronize();

  EXPECT_EQ(out.values(), in.values());
}

TEST_P(DeviceCopyTest, a_copy_of_nothing_does_nothing) {
  const auto stream = device().create_stream();
  stream->copy({nullptr, &device()}, {nullptr, nullptr}, 0);
  stream->copy_strided({nullptr, &device()}, {nullptr, nullptr}, {16, 0, 16, 16});
  stream->synchronize();
}

TEST_P(DeviceCopyTest, a_strided_copy_touches_its_block_and_nothing_else) {
  // A block of 5 x 7 of a host array with leading dimension 9 goes into a device array with
  // leading dimension 6, and from there into one with leading dimension 8.
  const HostArray in(device(), std::size_t{9} * 7);
  in.count_up_from(100);
  const HostArray middle(device(), std::size_t{6} * 7, -1);
  const HostArray out(device(), std::size_t{8} * 7, -2);
  const DeviceBuffer a(device(), middle.bytes());
  testing::upload(device(), a.address(), middle);
  const auto stream = device().create_stream();

  stream->copy_strided({a.address(), &device()}, {in.data() + 2, nullptr},
                       {5 * word, 7, 6 * word, 9 * word});
  stream->copy_strided({out.data(), nullptr}, {a.address(), &device()},
                       {5 * word, 7, 8 * word, 6 * word});
  stream->copy({middle.data(), nullptr}, {a.address(), &device()}, middle.bytes());
  stream->synchronize();

  for (std::size_t j = 0; j < 7; ++j) {
    for (std::size_t i = 0; i < 5; ++i) {
      EXPECT_EQ(out[i + 8 * j], in[2 + i + 9 * j]);
      EXPECT_EQ(middle[i + 6 * j], in[2 + i + 9 * j]);
    }
    EXPECT_EQ(middle[5 + 6 * j], -1);
    for (std::size_t i = 5; i < 8; ++i) EXPECT_EQ(out[i + 8 * j], -2);
  }
}

TEST_P(DeviceCopyTest, large_strided_copies_are_whole) {
  // Larger than any fragment, with columns that no fragment divides.
  constexpr std::size_t rows = 1009;
  constexpr std::size_t columns = 401;
  const HostArray in(device(), rows * columns);
  in.count_up_from(0);
  const HostArray out(device(), (rows + 3) * columns, -1);
  const DeviceBuffer a(device(), in.bytes());
  const auto stream = device().create_stream();
  stream->copy_strided({a.address(), &device()}, {in.data(), nullptr},
                       {rows * word, columns, rows * word, rows * word});
  stream->copy_strided({out.data(), nullptr}, {a.address(), &device()},
                       {rows * word, columns, (rows + 3) * word, rows * word});
  stream->synchronize();
  std::size_t wrong = 0;
  for (std::size_t j = 0; j < columns; ++j) {
    for (std::size_t i = 0; i < rows + 3; ++i) {
      const double expected = i < rows ? in[i + rows * j] : -1;
      wrong += out[i + (rows + 3) * j] != expected ? 1U : 0U;
    }
  }
  EXPECT_EQ(wrong, 0U);
}

TEST_P(DeviceCopyTest, peers_copy_in_both_directions_on_a_stream_of_either) {
  if (!device().can_access_peer(other())) GTEST_SKIP() << "no access between these devices";
  EXPECT_FALSE(device().can_access_peer(device()));
  const HostArray in(device(), 1000);
  in.count_up_from(5);
  const HostArray out(device(), 1000);
  const DeviceBuffer a(device(), in.bytes());
  const DeviceBuffer b(other(), in.bytes());
  const DeviceBuffer c(device(), in.bytes());
  testing::upload(device(), a.address(), in);
  const auto stream = device().create_stream();
  const auto theirs = other().create_stream();
  const auto event = device().create_event();

  stream->copy({b.address(), &other()}, {a.address(), &device()}, in.bytes());
  stream->record(*event);
  theirs->wait(*event);
  theirs->copy({c.address(), &device()}, {b.address(), &other()}, in.bytes());
  theirs->synchronize();

  testing::download(device(), out, c.address());
  EXPECT_EQ(out.values(), in.values());
}

TEST_P(DeviceCopyTest, wrong_arguments_are_refused_at_once_and_leave_the_stream_usable) {
  const HostArray host(device(), 64);
  const DeviceBuffer a(device(), 256);
  const DeviceBuffer b(other(), 256);
  const auto stream = device().create_stream();
  const auto copy = [&](Destination to, Source from, std::size_t bytes) {
    return error_of([&] { stream->copy(to, from, bytes); });
  };
  const Destination own{a.address(), &device()};

  EXPECT_NE(copy(own, {host.data(), nullptr}, 257).find("destination"), std::string::npos);
  EXPECT_NE(copy({host.data(), nullptr}, {a.address() + 250, &device()}, 8).find("source"),
            std::string::npos);
  EXPECT_NE(copy({host.data(), &device()}, {a.address(), &device()}, 8).find("allocation"),
            std::string::npos);
  EXPECT_NE(copy({a.address(), nullptr}, {a.address(), &device()}, 8).find("host memory"),
            std::string::npos);
  EXPECT_NE(copy({nullptr, nullptr}, {a.address(), &device()}, 8).find("null"), std::string::npos);
  EXPECT_NE(copy({host.data(), nullptr}, {host.data() + 8, nullptr}, 8).find("neither"),
            std::string::npos);
  EXPECT_NE(copy({b.address(), &other()}, {host.data(), nullptr}, 8).find("neither"),
            std::string::npos);
  EXPECT_NE(copy(own, {a.address() + 64, &device()}, 128).find("overlap"), std::string::npos);
  const std::string leading = error_of([&] {
    stream->copy_strided(own, {host.data(), nullptr}, {16, 2, 8, 16});
  });
  EXPECT_NE(leading.find("leading"), std::string::npos);

  stream->copy(own, {host.data(), nullptr}, 256);
  stream->synchronize();
  EXPECT_FALSE(stream->failure());
}

}  // namespace heddle
