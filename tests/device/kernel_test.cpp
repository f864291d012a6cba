#include <array>
#include <gtest/gtest.h>
#include <vector>

#include "tests/device/device_fixture.hpp"
#include "tests/device/device_kernels.hpp"

namespace heddle {

using testing::AffineParameters;
using testing::column;
using testing::error_of;
using testing::HostArray;

using DeviceKernelTest = testing::DeviceTest;
HEDDLE_ON_ALL_BACKENDS(DeviceKernelTest);

TEST_P(DeviceKernelTest, a_kernel_sees_its_tiles_and_its_parameters) {
  const HostArray array(device(), std::size_t{6} * 4, 3);
  const DeviceBuffer a(device(), array.bytes());
  testing::upload(device(), a.address(), array);
  const auto stream = device().create_stream();
  {
    // Gone when the call returns: the stream keeps its own copy.
    std::array<TileView, 1> tiles{
        TileView{reinterpret_cast<double*>(a.address()), 6, 4, 6}.block(1, 1, 4, 2)};
    const KernelParameters parameters(AffineParameters{2, 0.5});
    stream->launch(testing::affine, tiles, parameters, nullptr);
    tiles.fill({});
  }
  stream->synchronize();
  testing::download(device(), array, a.address());
  for (std::size_t j = 0; j < 4; ++j) {
    for (std::size_t i = 0; i < 6; ++i) {
      const bool inside = i >= 1 && i < 5 && j >= 1 && j < 3;
      EXPECT_EQ(array[i + 6 * j], inside ? 6.5 : 3) << i << ", " << j;
    }
  }
}

TEST_P(DeviceKernelTest, info_is_there_when_the_event_is_complete_and_is_no_failure) {
  const HostArray x(device(), 4, 1);
  const HostArray y(device(), 4, 1);
  y[2] = -5;
  const DeviceBuffer a(device(), x.bytes());
  const DeviceBuffer b(device(), y.bytes());
  testing::upload(device(), a.address(), x);
  testing::upload(device(), b.address(), y);
  const auto stream = device().create_stream();
  const auto event = device().create_event();
  const std::array tiles{column(a.address(), 4), column(b.address(), 4)};
  std::int64_t info = -1;
  std::int64_t next = -1;
  stream->launch(testing::add, tiles, {}, &info);
  stream->launch(testing::affine, {tiles.data() + 1, 1}, KernelParameters(AffineParameters{0, 1}),
                 &next);
  stream->record(*event);
  event->synchronize();
  EXPECT_EQ(info, 3);
  EXPECT_EQ(next, 0);
  EXPECT_FALSE(stream->failure());
}

TEST_P(DeviceKernelTest, tiles_must_lie_in_the_devices_memory) {
  const HostArray host(device(), 100);
  const DeviceBuffer a(device(), 100 * sizeof(double));
  const DeviceBuffer b(other(), 100 * sizeof(double));
  const auto stream = device().create_stream();
  const auto launch = [&](TileView tile) {
    return error_of([&] { stream->launch(testing::affine, {&tile, 1}, {}, nullptr); });
  };
  auto* data = reinterpret_cast<double*>(a.address());
  EXPECT_NE(launch({host.data(), 10, 10, 10}).find("tile 0 of kernel 'affine'"), std::string::npos);
  EXPECT_FALSE(launch({data, 10, 11, 10}).empty());
  EXPECT_FALSE(launch({data, 10, 10, 9}).empty());
  EXPECT_FALSE(launch({reinterpret_cast<double*>(b.address()), 10, 10, 10}).empty());
  const TileView empty{nullptr, 0, 10, 1};
  stream->launch(testing::affine, {&empty, 1}, {}, nullptr);
  stream->synchronize();
}

TEST_P(DeviceKernelTest, a_kernel_without_a_definition_for_the_backend_is_refused_by_name) {
  const auto stream = device().create_stream();
  const std::string text = error_of([&] { stream->launch(testing::host_only, {}, {}, nullptr); });
  EXPECT_NE(text.find("host-only"), std::string::npos) << text;
}

}  // namespace heddle
