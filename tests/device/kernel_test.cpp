#include <array>
#include <cstdlib>
#include <cstring>
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

namespace {

std::uint8_t* bytes_of(std::byte* address) {
  return reinterpret_cast<std::uint8_t*>(address);
}

/// Whole pages of the caller, registered with a device.
class RegisteredPages {
 public:
  static constexpr std::size_t bytes = 8192;

  explicit RegisteredPages(Device& device)
      : device_(device), address_(static_cast<std::byte*>(std::aligned_alloc(4096, bytes))) {
    std::memset(address_, 1, bytes);
    device_.register_host(address_, bytes);
  }
  RegisteredPages(const RegisteredPages&) = delete;
  RegisteredPages& operator=(const RegisteredPages&) = delete;
  ~RegisteredPages() {
    device_.unregister_host(address_);
    std::free(address_);  // NOLINT(cppcoreguidelines-no-malloc): of aligned_alloc
  }
  [[nodiscard]] std::byte* address() const { return address_; }

 private:
  Device& device_;
  std::byte* address_;
};

}  // namespace

TEST_P(DeviceKernelTest, a_byte_kernel_works_on_device_memory_and_on_page_locked_host_memory) {
  const HostArray host(device(), 128, 0);
  auto* in_host = reinterpret_cast<std::byte*>(host.data());
  std::memset(in_host, 5, host.bytes());
  const RegisteredPages pages(device());
  const DeviceBuffer a(device(), host.bytes());
  const auto stream = device().create_stream();
  stream->copy({a.address(), &device()}, {in_host, nullptr}, host.bytes());
  const auto add = [&](std::byte* to, const Device* to_device, std::byte* from,
                       const Device* from_device, std::uint8_t addend) {
    const testing::AddBytesParameters p{bytes_of(to), bytes_of(from), 100, {}, addend};
    const std::array memory{KernelMemory{to, 100, to_device}, KernelMemory{from, 100, from_device}};
    stream->launch(testing::add_bytes, ByteParameters(p), memory);
  };
  add(a.address() + 3, &device(), pages.address() + 4000, nullptr, 10);  // 5 + 1 + 10
  add(in_host + 1, nullptr, a.address() + 3, &device(), 20);             // 5 + 16 + 20
  stream->synchronize();
  EXPECT_EQ(in_host[0], std::byte{5});
  EXPECT_EQ(in_host[1], std::byte{41});
  EXPECT_EQ(in_host[100], std::byte{41});
  EXPECT_EQ(in_host[101], std::byte{5});
}

TEST_P(DeviceKernelTest, a_byte_kernel_works_on_a_peers_memory) {
  if (!device().can_access_peer(other())) GTEST_SKIP() << "no access between the devices";
  const HostArray host(device(), 16, 0);
  const DeviceBuffer a(device(), host.bytes());
  const DeviceBuffer b(other(), host.bytes());
  testing::upload(device(), a.address(), host);
  testing::upload(other(), b.address(), host);
  const auto stream = device().create_stream();
  const testing::AddBytesParameters p{bytes_of(b.address()), bytes_of(a.address()), 128, {}, 7};
  const std::array memory{KernelMemory{a.address(), 128, &device()},
                          KernelMemory{b.address(), 128, &other()}};
  stream->launch(testing::add_bytes, ByteParameters(p), memory);
  stream->synchronize();
  testing::download(other(), host, b.address());
  EXPECT_EQ(reinterpret_cast<const std::byte*>(host.data())[127], std::byte{7});
}

TEST_P(DeviceKernelTest, a_byte_kernel_is_refused_memory_of_nobody) {
  const HostArray host(device(), 16);
  const HostArray others(other(), 16);
  const DeviceBuffer a(device(), 128);
  std::array<std::byte, 128> plain{};
  const auto stream = device().create_stream();
  const auto launch = [&](const void* address, std::size_t bytes, const Device* owner) {
    const KernelMemory memory{address, bytes, owner};
    return error_of([&] { stream->launch(testing::add_bytes, {}, {&memory, 1}); });
  };
  EXPECT_NE(launch(plain.data(), 1, nullptr).find("memory 0 of kernel 'add-bytes'"),
            std::string::npos);
  EXPECT_FALSE(launch(plain.data(), 1, &device()).empty());
  EXPECT_FALSE(launch(host.data(), 129, nullptr).empty());
  EXPECT_FALSE(launch(others.data(), 128, nullptr).empty());
  EXPECT_FALSE(launch(a.address(), 129, &device()).empty());
  EXPECT_FALSE(launch(a.address() + 1, 128, &device()).empty());
  EXPECT_FALSE(launch(a.address(), 128, nullptr).empty());
  EXPECT_FALSE(launch(a.address(), 128, &other()).empty());
  const KernelMemory nothing{};
  stream->launch(testing::add_bytes, {}, {&nothing, 1});
  stream->synchronize();
}

TEST_P(DeviceKernelTest, a_byte_kernel_without_a_definition_is_refused_by_name) {
  const auto stream = device().create_stream();
  const std::string text = error_of([&] { stream->launch(testing::no_bytes, {}, {}); });
  EXPECT_NE(text.find("no-bytes"), std::string::npos) << text;
  EXPECT_FALSE(device().runs(testing::no_bytes));
  EXPECT_TRUE(device().runs(testing::add_bytes));
}

}  // namespace heddle
