// Messages longer than 2^31 bytes, by every path that takes them.

#include <array>
#include <gtest/gtest.h>
#include <optional>
#include <stdexcept>
#include <string>
#include <sys/mman.h>

#include "node-runtime/transport/p2p/host_pages.hpp"
#include "tests/transport/p2p/cluster.hpp"

namespace heddle::p2p {
namespace {

constexpr std::int64_t columns = (1 << 16) + 1;
constexpr std::int64_t column_bytes = 1 << 15;
constexpr std::int64_t message_bytes = columns * column_bytes;
constexpr std::int64_t leading = column_bytes + 4096;
static_assert(message_bytes > std::int64_t{1} << 31);

struct Way {
  std::string name;
  Path path = Path::get;
  bool from_device = false;
  bool to_device = false;
  bool is_apart = false;  ///< both sides are columns with gaps
};

class LongMessages : public ::testing::TestWithParam<Way> {};

INSTANTIATE_TEST_SUITE_P(ways, LongMessages,
                         ::testing::Values(Way{"host_message", Path::message},
                                           Way{"host_get", Path::get},
                                           Way{"device_get_apart", Path::get, true, true, true},
                                           Way{"device_put", Path::put, true, true},
                                           Way{"to_device_shared", Path::shared, false, true}),
                         [](const auto& test) { return test.param.name; });

/// The side's memory, nearly all of which is left as the system gives it: zero.
struct Memory {
  Memory(Device* device, std::size_t size) {
    if (device != nullptr) {
      on_device.emplace(*device, size);
      address = on_device->address();
    } else {
      on_host.emplace(size);
      address = on_host->span().data();
      ::madvise(address, size, MADV_HUGEPAGE);  // or half a million of small ones would be cleared
    }
  }
  std::optional<HostPages> on_host;
  std::optional<DeviceBuffer> on_device;
  std::byte* address = nullptr;
};

/// Emulated devices' memory is the process's, so the test reads and writes it as it lies.
TEST_P(LongMessages, arrive_whole) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "takes too much time and memory with a sanitizer";
#endif
  const Way& way = GetParam();
  const std::int64_t step = way.is_apart ? leading : column_bytes;
  const auto size = static_cast<std::size_t>(columns * step);
  const Datatype type = way.is_apart
                            ? Datatype::vector(columns, column_bytes, leading, Scalar::byte)
                            : Datatype::contiguous(message_bytes, Scalar::byte);
  Endpoint::Options options;
  options.path = way.path;
  Cluster::Devices devices{way.from_device || way.to_device ? 1 : 0, {}, -1};
  devices.emulated.memory_bytes = std::uint64_t{4} << 30U;
  Cluster cluster(2, 4, options, devices);
  {
    const Memory source(way.from_device ? &cluster.device(0, 0) : nullptr, size);
    const Memory target(way.to_device ? &cluster.device(1, 0) : nullptr, size);
    // The first byte, the last one, and those about 2^31.
    const std::int64_t middle = (std::int64_t{1} << 31) / column_bytes * step;
    const std::array places{std::int64_t{0}, middle - step + column_bytes - 1, middle,
                            (columns - 1) * step + column_bytes - 1};
    const auto exchange = [&](const Datatype& what) {
      const auto send = cluster.at(0).send({source.address, 1, what}, NodeId{1}, 0, channel);
      const auto receive =
          cluster.at(1).receive({target.address, 1, what}, {NodeId{0}, 0, channel});
      const bool came = cluster.run_until([&] { return send.done() && receive.done(); });
      if (!came) throw std::runtime_error("the message has not come");  // waiting would not end
      return receive.wait();
    };
    static_cast<void>(exchange(Datatype::contiguous(10'000, Scalar::byte)));  // maps the memory
    std::uint8_t value = 1;
    for (const std::int64_t place : places) source.address[place] = std::byte{value++};
    const Status status = exchange(type);
    EXPECT_EQ(status.bytes, message_bytes);
    EXPECT_EQ(name_of(status.path), name_of(way.path));
    value = 1;
    for (const std::int64_t place : places) {
      EXPECT_EQ(target.address[place], std::byte{value++}) << "byte " << place;
    }
    for (const auto& [node, memory] : {std::pair(0, &source), std::pair(1, &target)}) {
      if (!memory->on_device) continue;
      const auto release = cluster.at(node).release(memory->address);
      ASSERT_TRUE(cluster.run_until([&] { return release.done(); }));
    }
  }
  ASSERT_TRUE(cluster.close());
}

}  // namespace
}  // namespace heddle::p2p
