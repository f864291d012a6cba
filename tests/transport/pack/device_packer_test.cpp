#include "node-runtime/transport/pack/device_packer.hpp"

#include <array>
#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <numeric>
#include <vector>

#include "base/error.hpp"
#include "node-runtime/transport/datatype/overlap.hpp"
#include "tests/device/device_fixture.hpp"
#include "tests/device/device_kernels.hpp"
#include "tests/support/seeds.hpp"
#include "tests/transport/pack/packed_elements.hpp"
#include "tests/transport/pack/shape_pairs.hpp"

namespace heddle::test {
namespace {

using simulation::replay_hint;
using simulation::seeds;
using Plan = DevicePacker::Plan;

Plan plan_of(const Datatype& type) {
  return std::make_shared<const PackPlan>(make_plan(type));
}

bool is_receivable(const PackPlan& plan, std::int64_t count) {
  try {
    check_receivable(plan, count);
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// A little of everything, so that small types fill it: 4 chunks of 40 units, a cache of 256.
DevicePacker::Options small() {
  return {.cache_bytes = 256 * sizeof(WorkUnit), .chunk_units = 40, .chunks = 4};
}

/// Memory of a device with an image of it on the host, to be compared as a whole.
class Image {
 public:
  Image(Device& device, std::size_t bytes)
      : device_(device),
        memory_(device, bytes),
        host_(static_cast<std::byte*>(device.allocate_host(bytes))) {}
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;
  ~Image() { device_.free_host(host_); }

  [[nodiscard]] std::byte* address() const { return memory_.address(); }
  [[nodiscard]] Device& device() const { return device_; }
  /// Queued: the stream is synchronized before the image is set again.
  void set(Stream& stream, const std::vector<std::byte>& bytes) const {
    stream.synchronize();
    std::copy(bytes.begin(), bytes.end(), host_);
    stream.copy({memory_.address(), &device_}, {host_, nullptr}, bytes.size());
  }
  [[nodiscard]] std::vector<std::byte> get(Stream& stream, std::size_t bytes) const {
    stream.copy({host_, nullptr}, {memory_.address(), &device_}, bytes);
    stream.synchronize();
    return {host_, host_ + bytes};
  }

 private:
  Device& device_;
  DeviceBuffer memory_;
  std::byte* host_;
};

/// The packed side, or that of the elements: memory of the device or, in place, of its host.
class PackedSide {
 public:
  PackedSide(Device& device, std::size_t bytes, bool is_on_host)
      : image_(device, bytes),
        host_(static_cast<std::byte*>(device.allocate_host(bytes))),
        is_on_host_(is_on_host) {}
  PackedSide(const PackedSide&) = delete;
  PackedSide& operator=(const PackedSide&) = delete;
  ~PackedSide() { image_.device().free_host(host_); }

  [[nodiscard]] Destination at(std::size_t offset) const {
    return is_on_host_ ? Destination{host_ + offset, nullptr}
                       : Destination{image_.address() + offset, &image_.device()};
  }
  [[nodiscard]] Source from(std::size_t offset) const {
    const Destination same = at(offset);
    return {same.address, same.device};
  }
  void set(Stream& stream, const std::vector<std::byte>& bytes) const {
    if (!is_on_host_) return image_.set(stream, bytes);
    stream.synchronize();
    std::copy(bytes.begin(), bytes.end(), host_);
  }
  [[nodiscard]] std::vector<std::byte> get(Stream& stream, std::size_t bytes) const {
    if (!is_on_host_) return image_.get(stream, bytes);
    stream.synchronize();
    return {host_, host_ + bytes};
  }

 private:
  Image image_;
  std::byte* host_;
  bool is_on_host_;
};

class DevicePackerTest : public testing::DeviceTest {
 protected:
  static constexpr std::size_t packed_bytes = std::size_t{1} << 20U;

  void SetUp() override {
    testing::DeviceTest::SetUp();
    if (IsSkipped()) return;
    stream_ = device().create_stream();
    memory_ = std::make_unique<Image>(device(), packed_bytes);
    packed_ = std::make_unique<PackedSide>(device(), packed_bytes, false);
    in_host_ = std::make_unique<PackedSide>(device(), packed_bytes, true);
  }

  [[nodiscard]] Stream& stream() const { return *stream_; }
  [[nodiscard]] const Image& memory() const { return *memory_; }
  [[nodiscard]] const PackedSide& packed(bool is_on_host) const {
    return is_on_host ? *in_host_ : *packed_;
  }
  /// In the device's memory or in that of the host, where packed bytes may be otherwise.
  void set_elements(bool on_host, const std::vector<std::byte>& bytes) const {
    on_host ? in_host_->set(*stream_, bytes) : memory_->set(*stream_, bytes);
  }
  [[nodiscard]] std::vector<std::byte> get_elements(bool on_host, std::size_t bytes) const {
    return on_host ? in_host_->get(*stream_, bytes) : memory_->get(*stream_, bytes);
  }
  /// The slow backend is there for its orders, not for its numbers.
  [[nodiscard]] std::uint64_t share_of(std::uint64_t seeds) const {
    return GetParam().name == "emulated_adverse" ? seeds / 20 + 1 : seeds;
  }

  void check(DevicePacker& packer, const Plan& plan, std::int64_t count, Elements& elements,
             RandomType& random);

 private:
  // After the devices, and so gone before them.
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Image> memory_;
  std::unique_ptr<PackedSide> packed_;
  std::unique_ptr<PackedSide> in_host_;
};
HEDDLE_ON_ALL_BACKENDS(DevicePackerTest);

/// Packs and unpacks all of the stream in pieces that are queued one behind the other.
void DevicePackerTest::check(DevicePacker& packer, const Plan& plan, std::int64_t count,
                             Elements& elements, RandomType& random) {
  const auto ranges = random_ranges(random, elements.stream_bytes(), 3);
  // One of both sides may be on the host.
  const bool on_host = random.one_in(3);
  const PackedSide& side = packed(!on_host && random.one_in(2));
  const PackOptions options{
      .blocks_max = static_cast<std::uint32_t>(random.one_in(2) ? 0 : random.number(1, 4)),
      .on_host = on_host};
  // Pieces lie one behind the other with a gap, at any alignment.
  std::vector<std::size_t> places;
  std::size_t end = 0;
  for (const StreamRange& range : ranges) {
    places.push_back(end + static_cast<std::size_t>(random.one_in(2) ? 16 : random.number(1, 31)));
    end = places.back() + static_cast<std::size_t>(range.bytes);
  }
  end += Elements::guard;
  ASSERT_LE(end, packed_bytes);

  std::vector<std::byte> expected(end, Elements::sentinel);
  set_elements(on_host, elements.bytes());
  side.set(stream(), expected);
  std::byte* const begin =
      on_host ? static_cast<std::byte*>(packed(true).at(0).address) : memory().address();
  std::byte* const origin = begin + elements.origin();
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    packer.pack(stream(), plan, count, origin, ranges[i], side.at(places[i]), options);
    const std::vector<std::byte> right = elements.packed(ranges[i]);
    std::copy(right.begin(), right.end(),
              expected.begin() + static_cast<std::ptrdiff_t>(places[i]));
  }
  ASSERT_TRUE(side.get(stream(), end) == expected);
  ASSERT_TRUE(get_elements(on_host, elements.bytes().size()) == elements.bytes());
  if (!is_receivable(*plan, count)) return;

  const std::vector<std::byte> bytes = counted_bytes(elements.stream_bytes());
  std::vector<std::byte> unpacked(elements.bytes().size(), Elements::sentinel);
  set_elements(on_host, unpacked);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    std::copy_n(bytes.begin() + ranges[i].begin, ranges[i].bytes,
                expected.begin() + static_cast<std::ptrdiff_t>(places[i]));
  }
  side.set(stream(), expected);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    packer.unpack(stream(), plan, count, ranges[i], side.from(places[i]), origin, options);
  }
  for (std::int64_t i = 0; i < elements.stream_bytes(); ++i) {
    unpacked[elements.place(i)] = bytes[static_cast<std::size_t>(i)];
  }
  ASSERT_TRUE(get_elements(on_host, unpacked.size()) == unpacked);
}

/// Blocks at irregular distances, `count` of them.
Plan irregular_plan(std::int64_t count, std::int64_t first_gap) {
  std::vector<Datatype::IndexedBlock> blocks;
  std::int64_t at = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    blocks.push_back({at, 1 + i % 3});
    at += 4 + first_gap + i * i % 7;
  }
  return plan_of(Datatype::indexed(blocks, Scalar::float64));
}

/// Where the bytes of an irregular plan are, from the plan itself.
std::vector<std::byte> packed_by_host(const PackPlan& plan, const std::vector<std::byte>& memory) {
  std::vector<std::byte> result(static_cast<std::size_t>(plan.size));
  pack(plan, 1, memory.data(), {0, plan.size}, result.data());
  return result;
}

TEST_P(DevicePackerTest, moves_any_type_in_any_pieces_as_its_type_map_says) {
  DevicePacker packer(device(), small());
  for (const std::uint64_t seed : seeds(share_of(400))) {
    RandomType random(seed);
    const DescribedType described = random_described(random);
    const TypeMap map = type_map_of(described);
    SCOPED_TRACE(replay_hint(seed) + "\n" + to_string(described));
    const Plan plan = plan_of(datatype_of(described));
    const std::int64_t count = random.number(0, 4);
    Elements elements(map, count, random);
    if (elements.bytes().size() > packed_bytes) continue;
    check(packer, plan, count, elements, random);
    if (HasFatalFailure()) return;
  }
}

TEST_P(DevicePackerTest, keeps_units_and_drops_the_least_recently_used) {
  DevicePacker packer(device(), small());
  const std::vector<std::byte> bytes = counted_bytes(std::int64_t{1} << 15);
  memory().set(stream(), bytes);
  // Two of them fit.
  const std::array plans{irregular_plan(100, 0), irregular_plan(100, 1), irregular_plan(100, 2)};
  const auto pack_with = [&](std::size_t i) {
    const Plan& plan = plans.at(i);
    ASSERT_EQ(plan->body, PackPlan::Body::units);
    packer.pack(stream(), plan, 1, memory().address(), {0, plan->size}, packed(false).at(0));
    const auto result = packed(false).get(stream(), static_cast<std::size_t>(plan->size));
    ASSERT_TRUE(result == packed_by_host(*plan, bytes)) << i;
  };
  pack_with(0);
  pack_with(1);
  pack_with(0);
  pack_with(2);  // takes the place of 1
  pack_with(0);
  auto statistics = packer.statistics();
  EXPECT_EQ(statistics.prepared, 3);
  EXPECT_EQ(statistics.found, 2);
  EXPECT_EQ(statistics.dropped, 1);
  EXPECT_TRUE(packer.is_valid());
  pack_with(1);  // takes the place of 2
  pack_with(0);
  statistics = packer.statistics();
  EXPECT_EQ(statistics.prepared, 4);
  EXPECT_EQ(statistics.found, 3);
  EXPECT_EQ(statistics.passed, 0);
}

TEST_P(DevicePackerTest, does_not_drop_units_that_a_queued_kernel_reads) {
  DevicePacker packer(device(), small());
  const std::vector<std::byte> bytes = counted_bytes(std::int64_t{1} << 15);
  memory().set(stream(), bytes);
  stream().synchronize();
  const std::array plans{irregular_plan(100, 0), irregular_plan(100, 1), irregular_plan(100, 2)};
  {
    // CUDA may load a kernel when it is first used, and wait for all streams then.
    DevicePacker first(device(), small());
    first.pack(stream(), plans[0], 1, memory().address(), {0, plans[0]->size}, packed(false).at(0));
    stream().synchronize();
  }
  // The queue of the slow backend is too short to be held with all of this in it.
  testing::Gate gate;
  const auto held = device().create_stream();
  const bool holds = GetParam().name != "emulated_adverse";
  if (holds) {
    gate.close(*held);
    gate.wait_until_running();
  }
  std::array<std::size_t, 3> places{0, std::size_t{1} << 16U, std::size_t{1} << 17U};
  for (std::size_t i = 0; i < 2; ++i) {
    packer.pack(*held, plans.at(i), 1, memory().address(), {0, plans.at(i)->size},
                packed(false).at(places.at(i)));
  }
  // Both places are taken and in use: these units only pass through.
  packer.pack(stream(), plans[2], 1, memory().address(), {0, plans[2]->size},
              packed(false).at(places[2]));
  stream().synchronize();
  if (holds) {
    EXPECT_EQ(packer.statistics().passed, 1);
    EXPECT_EQ(packer.statistics().dropped, 0);
  }
  gate.open();
  held->synchronize();
  const auto all = packed(false).get(stream(), packed_bytes);
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const auto right = packed_by_host(*plans.at(i), bytes);
    EXPECT_EQ(std::memcmp(all.data() + places.at(i), right.data(), right.size()), 0) << i;
  }
}

TEST_P(DevicePackerTest, passes_units_through_that_are_too_many_to_keep) {
  DevicePacker packer(device(), small());
  const std::vector<std::byte> bytes = counted_bytes(std::int64_t{1} << 16);
  memory().set(stream(), bytes);
  const Plan plan = irregular_plan(1000, 0);
  const auto right = packed_by_host(*plan, bytes);
  // From within a unit to within another.
  const StreamRange range{1003, plan->size - 5000};
  for (int i = 0; i < 2; ++i) {
    packer.pack(stream(), plan, 1, memory().address(), range, packed(false).at(3));
  }
  const auto result = packed(false).get(stream(), static_cast<std::size_t>(range.bytes) + 3);
  EXPECT_EQ(std::memcmp(result.data() + 3, right.data() + range.begin,
                        static_cast<std::size_t>(range.bytes)),
            0);
  EXPECT_EQ(packer.statistics().passed, 2);
  EXPECT_EQ(packer.statistics().prepared, 0);
}

TEST_P(DevicePackerTest, prepares_units_piece_by_piece_for_several_streams) {
  DevicePacker packer(device(), small());
  const std::vector<std::byte> bytes = counted_bytes(std::int64_t{1} << 15);
  memory().set(stream(), bytes);
  stream().synchronize();
  const Plan plan = irregular_plan(200, 0);
  const auto right = packed_by_host(*plan, bytes);
  const auto other_stream = device().create_stream();
  const std::int64_t step = plan->size / 7 + 1;
  std::int64_t pieces = 0;
  for (std::int64_t at = 0; at < plan->size; at += step, ++pieces) {
    const StreamRange range{at, std::min(step, plan->size - at)};
    Stream& one = pieces % 2 == 0 ? stream() : *other_stream;
    packer.pack(one, plan, 1, memory().address(), range,
                packed(false).at(static_cast<std::size_t>(at)));
  }
  other_stream->synchronize();
  const auto result = packed(false).get(stream(), right.size());
  EXPECT_TRUE(result == right);
  EXPECT_EQ(packer.statistics().prepared, 1);
  EXPECT_EQ(packer.statistics().found, pieces - 1);
}

/// Blocks that copy engines take to and from the host, and ranges of them that kernels do.
TEST_P(DevicePackerTest, moves_blocks_to_and_from_the_host_whole_or_not) {
  DevicePacker packer(device(), small());
  const PackedSide& host = packed(true);
  const std::vector<std::byte> long_bytes = counted_bytes(140'000);
  const Plan long_plan = plan_of(Datatype::vector(3, 33'001, 40'003, Scalar::byte));
  memory().set(stream(), long_bytes);
  packer.pack(stream(), long_plan, 1, memory().address(), {0, long_plan->size}, host.at(3));
  std::vector<std::byte> packed_long =
      host.get(stream(), 3 + static_cast<std::size_t>(long_plan->size));
  packed_long.erase(packed_long.begin(), packed_long.begin() + 3);
  EXPECT_TRUE(packed_long == packed_by_host(*long_plan, long_bytes));

  const std::vector<std::byte> bytes = counted_bytes(std::int64_t{1} << 15);
  const Plan plan = plan_of(Datatype::vector(20, 128, 192, Scalar::byte));
  const std::vector<std::byte> stream_bytes = packed_by_host(*plan, bytes);
  for (const StreamRange range : {StreamRange{0, 2560}, StreamRange{256, 1280},
                                  StreamRange{64, 1280}, StreamRange{128, 200}}) {
    SCOPED_TRACE(range.begin);
    const auto size = static_cast<std::size_t>(range.bytes);
    const auto* const first = stream_bytes.data() + range.begin;
    memory().set(stream(), bytes);
    host.set(stream(), std::vector<std::byte>(size + 64, std::byte{0xEE}));
    packer.pack(stream(), plan, 1, memory().address(), range, host.at(0));
    std::vector<std::byte> expected(first, first + size);
    expected.resize(size + 64, std::byte{0xEE});
    EXPECT_TRUE(host.get(stream(), size + 64) == expected);

    std::vector<std::byte> target(bytes.size(), std::byte{0xEE});
    memory().set(stream(), target);
    packer.unpack(stream(), plan, 1, range, host.from(0), memory().address());
    for (std::int64_t at = range.begin; at < range.begin + range.bytes; ++at) {
      const auto place = static_cast<std::size_t>(at / 128 * 192 + at % 128);
      target[place] = bytes[place];
    }
    EXPECT_TRUE(memory().get(stream(), target.size()) == target);
  }
}

TEST_P(DevicePackerTest, packs_to_a_peer) {
  if (!device().can_access_peer(other())) GTEST_SKIP() << "no access between the devices";
  DevicePacker packer(device(), small());
  const std::vector<std::byte> bytes = counted_bytes(std::int64_t{1} << 15);
  memory().set(stream(), bytes);
  const Image there(other(), std::size_t{1} << 15U);
  const auto plans = {irregular_plan(50, 0), plan_of(Datatype::vector(20, 3, 5, Scalar::float64)),
                      plan_of(Datatype::contiguous(100, Scalar::float64))};
  const auto theirs = other().create_stream();
  for (const Plan& plan : plans) {
    packer.pack(stream(), plan, 1, memory().address(), {0, plan->size},
                {there.address(), &other()});
    stream().synchronize();
    EXPECT_TRUE(there.get(*theirs, static_cast<std::size_t>(plan->size)) ==
                packed_by_host(*plan, bytes));
  }
}

TEST_P(DevicePackerTest, moves_long_runs_within_its_memory_by_a_kernel) {
  DevicePacker packer(device(), small());
  constexpr std::int64_t bytes = (std::int64_t{3} << 20U) + 5;
  constexpr std::size_t room = static_cast<std::size_t>(bytes) + 64;
  const Plan plan = plan_of(Datatype::contiguous(bytes, Scalar::byte));
  const Image from(device(), room);
  const Image to(device(), room);
  const std::vector<std::byte> content = counted_bytes(static_cast<std::int64_t>(room));
  from.set(stream(), content);
  const PackOptions near{.is_near = true};
  for (const std::size_t shift : {std::size_t{0}, std::size_t{8}, std::size_t{13}}) {
    std::vector<std::byte> expected(room, Elements::sentinel);
    std::copy_n(content.begin() + static_cast<std::ptrdiff_t>(shift), bytes, expected.begin() + 16);
    to.set(stream(), std::vector<std::byte>(room, Elements::sentinel));
    packer.pack(stream(), plan, 1, from.address() + shift, {0, bytes},
                {to.address() + 16, &device()}, near);
    ASSERT_TRUE(to.get(stream(), room) == expected) << shift;
    to.set(stream(), std::vector<std::byte>(room, Elements::sentinel));
    packer.unpack(stream(), plan, 1, {0, bytes}, {from.address() + shift, &device()},
                  to.address() + 16, near);
    ASSERT_TRUE(to.get(stream(), room) == expected) << shift;
  }
}

TEST_P(DevicePackerTest, transfers_from_any_loops_to_others) {
  DevicePacker packer(device(), small());
  const bool has_peer = device().can_access_peer(other());
  const auto theirs = other().create_stream();
  for (const std::uint64_t seed : seeds(share_of(300))) {
    SCOPED_TRACE(replay_hint(seed));
    RandomType random(seed);
    const ShapePair pair = random_pair(random);
    const PackPlan from = make_plan(pair.from);
    const PackPlan to = make_plan(pair.to);
    const auto from_shape = loop_shape(from, 1);
    const auto to_shape = loop_shape(to, 1);
    if (!from_shape || !to_shape || !from_shape->fits(*to_shape)) continue;
    const bool by_peer = has_peer && random.one_in(2);
    Device& source_device = by_peer ? other() : device();
    const auto bytes = static_cast<std::size_t>(from.true_upper_bound) + 16;
    const Image source(source_device, bytes);
    const std::vector<std::byte> content = counted_bytes(static_cast<std::int64_t>(bytes));
    source.set(by_peer ? *theirs : stream(), content);
    if (by_peer) theirs->synchronize();
    const auto shift = static_cast<std::size_t>(random.one_in(2) ? 0 : random.number(1, 15));
    std::vector<std::byte> expected(static_cast<std::size_t>(to.true_upper_bound) + shift + 16,
                                    Elements::sentinel);
    memory().set(stream(), expected);
    move_by_host(from, content.data() + shift, to, expected.data() + shift);
    const PackOptions options{
        static_cast<std::uint32_t>(random.one_in(2) ? 0 : random.number(1, 4))};
    packer.transfer(stream(), *from_shape,
                    {source.address() + shift + from.true_lower_bound, &source_device}, *to_shape,
                    {memory().address() + shift + to.true_lower_bound, &device()}, options);
    ASSERT_TRUE(memory().get(stream(), expected.size()) == expected);
  }
}

/// Small ones of any kind, and long columns as copy engines and kernels that go by lines like them.
TEST_P(DevicePackerTest, transfers_from_loops_on_the_host_and_to_them) {
  DevicePacker packer(device(), small());
  int done = 0;
  for (const std::uint64_t seed : seeds(share_of(400))) {
    SCOPED_TRACE(replay_hint(seed));
    RandomType random(seed);
    ShapePair pair = random_pair(random);
    if (random.one_in(2)) {
      const std::int64_t rows = random.number(60, 700);
      const std::int64_t columns = random.number(1, 20);
      const auto column = [&] {
        const std::int64_t leading =
            random.one_in(3) ? rows : (rows + random.number(0, 16)) / 8 * 8 + 8;
        return random.one_in(3)
                   ? Datatype::triangle({.rows = rows, .columns = columns, .leading = leading},
                                        Scalar::float64)
                   : Datatype::vector(columns, rows, leading, Scalar::float64);
      };
      pair = {column(), column()};
    }
    const PackPlan from = make_plan(pair.from);
    const PackPlan to = make_plan(pair.to);
    const auto from_shape = loop_shape(from, 1);
    const auto to_shape = loop_shape(to, 1);
    if (!from_shape || !to_shape || !from_shape->fits(*to_shape)) continue;
    ++done;
    const bool from_host = random.one_in(2);
    const auto shift = static_cast<std::size_t>(random.one_in(2) ? 0 : 8 * random.number(1, 15));
    const auto room = static_cast<std::size_t>(from.true_upper_bound) + shift;
    ASSERT_LE(room, packed_bytes);
    const std::vector<std::byte> content = counted_bytes(static_cast<std::int64_t>(room));
    std::vector<std::byte> expected(static_cast<std::size_t>(to.true_upper_bound) + shift + 64,
                                    Elements::sentinel);
    set_elements(from_host, content);
    set_elements(!from_host, expected);
    move_by_host(from, content.data() + shift, to, expected.data() + shift);
    const auto place = [&](bool on_host, std::int64_t offset) {
      const Destination begin =
          on_host ? packed(true).at(0) : Destination{memory().address(), &device()};
      return Destination{static_cast<std::byte*>(begin.address) + shift + offset, begin.device};
    };
    const Destination source = place(from_host, from.true_lower_bound);
    const PackOptions options{
        static_cast<std::uint32_t>(random.one_in(2) ? 0 : random.number(1, 4))};
    packer.transfer(stream(), *from_shape, {source.address, source.device}, *to_shape,
                    place(!from_host, to.true_lower_bound), options);
    ASSERT_TRUE(get_elements(!from_host, expected.size()) == expected);
    ASSERT_TRUE(get_elements(from_host, content.size()) == content);
  }
  EXPECT_GT(done, 0);
}

TEST_P(DevicePackerTest, refuses_ranges_beyond_the_stream_and_negative_counts) {
  DevicePacker packer(device(), small());
  const Plan plan = plan_of(Datatype::vector(4, 1, 2, Scalar::float64));
  const auto refused = [&](std::int64_t count, StreamRange range) {
    return testing::error_of([&] {
      packer.pack(stream(), plan, count, memory().address(), range, packed(false).at(0));
    });
  };
  EXPECT_FALSE(refused(-1, {0, 0}).empty());
  EXPECT_FALSE(refused(1, {0, 33}).empty());
  EXPECT_FALSE(refused(1, {-1, 1}).empty());
  EXPECT_FALSE(refused(1, {33, 0}).empty());
  EXPECT_FALSE(refused(0, {0, 1}).empty());
  // Nothing is touched.
  packer.pack(stream(), plan, 0, nullptr, {0, 0}, {});
  packer.unpack(stream(), plan, 1, {32, 0}, {}, nullptr);
}

TEST_P(DevicePackerTest, refuses_memory_that_is_not_the_devices) {
  DevicePacker packer(device(), small());
  const Image theirs(other(), 4096);
  std::vector<std::byte> plain(4096);
  for (const Plan& plan :
       {plan_of(Datatype::vector(4, 1, 2, Scalar::float64)), irregular_plan(5, 0)}) {
    const StreamRange all{0, plan->size};
    const auto refused = [&](void* elements, Destination to) {
      return testing::error_of([&] { packer.pack(stream(), plan, 1, elements, all, to); });
    };
    EXPECT_FALSE(refused(plain.data(), packed(false).at(0)).empty());
    EXPECT_FALSE(refused(theirs.address(), packed(false).at(0)).empty());
    EXPECT_FALSE(refused(memory().address(), {plain.data(), nullptr}).empty());
    EXPECT_FALSE(refused(memory().address(), {plain.data(), &device()}).empty());
    EXPECT_FALSE(refused(memory().address(), packed(true).at(packed_bytes - 1)).empty());
    EXPECT_FALSE(refused(memory().address() + packed_bytes - 8, packed(false).at(0)).empty());
    // What was refused leaves no trace.
    packer.pack(stream(), plan, 1, memory().address(), all, packed(false).at(0));
  }
  stream().synchronize();
}

}  // namespace
}  // namespace heddle::test
