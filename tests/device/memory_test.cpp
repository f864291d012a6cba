#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <gtest/gtest.h>
#include <memory>
#include <set>
#include <thread>

#include "tests/device/device_fixture.hpp"
#include "tests/device/fresh_memory.hpp"

namespace heddle {

using testing::error_of;
using testing::HostArray;

using DeviceMemoryTest = testing::DeviceTest;
HEDDLE_ON_ALL_BACKENDS(DeviceMemoryTest);

TEST_P(DeviceMemoryTest, a_device_says_what_it_is) {
  EXPECT_EQ(device().info().index, 0);
  EXPECT_EQ(other().info().index, 1);
  EXPECT_EQ(device().info().backend, GetParam().backend);
  EXPECT_FALSE(device().info().name.empty());
  EXPECT_GT(device().info().memory_bytes, 0U);
  EXPECT_NE(device().info().uuid, other().info().uuid);
  EXPECT_EQ(to_string(device().info().uuid).size(), 32U);
}

TEST_P(DeviceMemoryTest, allocations_are_aligned_and_do_not_share_bytes) {
  const DeviceBuffer a(device(), 1000);
  const DeviceBuffer b(device(), 3);
  const DeviceBuffer c(device(), 4096);
  for (const DeviceBuffer* buffer : {&a, &b, &c}) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer->address()) % 256, 0U);
  }
  EXPECT_EQ(a.bytes(), 1000U);
  const HostArray ones(device(), 125, 1);
  const HostArray twos(device(), 512, 2);
  testing::upload(device(), a.address(), ones);
  testing::upload(device(), c.address(), twos);
  const HostArray back(device(), 125);
  testing::download(device(), back, a.address());
  EXPECT_EQ(back.values(), ones.values());
}

TEST_P(DeviceMemoryTest, freed_memory_can_be_allocated_again) {
  const std::uint64_t before = device().memory_available();
  for (int round = 0; round < 3; ++round) {
    const DeviceBuffer most(device(), before);
    EXPECT_LT(device().memory_available(), before);
  }
  EXPECT_EQ(device().memory_available(), before);
}

TEST_P(DeviceMemoryTest, exhaustion_is_an_error_with_the_numbers) {
  const DeviceBuffer some(device(), 1 << 20);
  const std::string text =
      error_of([&] { static_cast<void>(device().allocate(device().info().memory_bytes)); });
  EXPECT_NE(text.find("out of memory"), std::string::npos) << text;
  EXPECT_NE(text.find("16.00 MiB"), std::string::npos) << text;
  const DeviceBuffer still_works(device(), 1 << 20);
}

TEST_P(DeviceMemoryTest, freeing_what_is_not_allocated_is_an_error) {
  const DeviceMemory memory = device().allocate(512);
  EXPECT_FALSE(error_of([&] { other().free(memory); }).empty());
  EXPECT_FALSE(error_of([&] { device().free({memory.address + 256, 256}); }).empty());
  device().free(memory);
  EXPECT_NE(error_of([&] { device().free(memory); }).find("free already"), std::string::npos);
}

TEST_P(DeviceMemoryTest, memory_that_others_allocated_is_the_device_s_from_its_adoption_on) {
  const HostArray ones(device(), 1000, 1);
  const HostArray back(device(), 1000);
  std::uint64_t before = 0;
  {
    const testing::ForeignMemory foreign(device(), ones.bytes() + 64);
    std::byte* const inside = foreign.address() + 64;
    EXPECT_FALSE(device().owns(inside));
    EXPECT_NE(error_of([&] { testing::upload(device(), inside, ones); }), "");
    std::thread([&] { EXPECT_TRUE(device().adopt(inside)) << "by a thread that is new"; }).join();
    EXPECT_TRUE(device().adopt(foreign.address())) << "again";
    testing::upload(device(), inside, ones);
    testing::download(device(), back, inside);
    EXPECT_EQ(back.values(), ones.values());
    EXPECT_NE(error_of([&] { testing::upload(device(), inside + 8, ones); }), "") << "too long";
    const IpcMemoryHandle handle = device().export_memory(inside);
    EXPECT_EQ(handle.offset, 64U);
    EXPECT_EQ(handle.bytes, ones.bytes());
    EXPECT_EQ(handle.allocation, device().export_memory(foreign.address()).allocation);
    before = handle.allocation;
    device().disown(inside);
    EXPECT_NE(error_of([&] { testing::upload(device(), inside, ones); }), "");
    EXPECT_TRUE(device().adopt(inside));  // and freed without a word
  }
  const testing::ForeignMemory next(device(), 100);
  ASSERT_TRUE(device().adopt(next.address()));
  EXPECT_NE(device().export_memory(next.address()).allocation, before);
  EXPECT_NE(error_of([&] { testing::upload(device(), next.address(), ones); }), "");
  double value = 0;
  EXPECT_FALSE(device().adopt(&value));
  EXPECT_FALSE(device().adopt(nullptr));
  const DeviceBuffer elsewhere(other(), 100);
  EXPECT_FALSE(device().adopt(elsewhere.address()) && GetParam().backend != DeviceBackend::cuda)
      << "devices of one GPU cannot tell";
}

TEST_P(DeviceMemoryTest, host_memory_is_page_aligned_and_belongs_to_its_device) {
  void* memory = device().allocate_host(100);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 4096, 0U);
  EXPECT_FALSE(error_of([&] { other().free_host(memory); }).empty());
  device().free_host(memory);
}

TEST_P(DeviceMemoryTest, registered_host_memory_has_its_pages) {
  constexpr std::size_t bytes = std::size_t{1} << 20;
  const testing::FreshMemory memory(bytes);
  memory.keep_pages_small();
  device().register_host(memory.address(), bytes);
  const std::size_t pages = memory.pages(0, bytes);
  const bool can_populate = memory.can_populate();
  device().unregister_host(memory.address());
  if (!can_populate) GTEST_SKIP() << "this system cannot populate pages";
  EXPECT_EQ(pages, bytes / testing::FreshMemory::page_bytes());
}

TEST_P(DeviceMemoryTest, host_memory_is_registered_once_and_unregistered_where_it_was) {
  const std::unique_ptr<std::byte, decltype(&std::free)> memory(
      static_cast<std::byte*>(std::aligned_alloc(4096, 8192)), &std::free);
  device().register_host(memory.get(), 8192);
  EXPECT_FALSE(error_of([&] { device().register_host(memory.get(), 8192); }).empty());
  EXPECT_NE(error_of([&] { other().unregister_host(memory.get()); }).find("was not registered"),
            std::string::npos);
  device().unregister_host(memory.get());
  EXPECT_FALSE(error_of([&] { device().unregister_host(memory.get()); }).empty());
}

TEST_P(DeviceMemoryTest, an_exported_handle_identifies_the_allocation_not_the_address) {
  std::set<std::uint64_t> identities;
  const std::byte* address = nullptr;
  for (int round = 0; round < 3; ++round) {
    const DeviceBuffer buffer(device(), 4096);
    if (round == 0) address = buffer.address();
    EXPECT_EQ(buffer.address(), address);  // the same place again and again
    const IpcMemoryHandle handle = device().export_memory(buffer.address() + 1000);
    EXPECT_EQ(handle.offset, 1000U);
    EXPECT_EQ(handle.bytes, 3096U);
    EXPECT_EQ(handle.device, device().info().uuid);
    identities.insert(handle.allocation);
  }
  EXPECT_EQ(identities.size(), 3U);
}

TEST_P(DeviceMemoryTest, a_process_cannot_open_its_own_handles) {
  const DeviceBuffer buffer(device(), 4096);
  const IpcMemoryHandle memory = device().export_memory(buffer.address());
  EXPECT_NE(error_of([&] { static_cast<void>(other().open_memory(memory)); }).find("this process"),
            std::string::npos);
  const auto event = device().create_event();
  const IpcEventHandle shared = device().export_event(*event);
  EXPECT_FALSE(error_of([&] { static_cast<void>(other().open_event(shared)); }).empty());
  EXPECT_FALSE(error_of([&] { static_cast<void>(other().export_event(*event)); }).empty());
  EXPECT_FALSE(error_of([&] { static_cast<void>(device().export_memory(&memory)); }).empty());
}

}  // namespace heddle
