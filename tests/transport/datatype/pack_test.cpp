#include "node-runtime/transport/datatype/pack.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <gtest/gtest.h>
#include <numeric>
#include <vector>

#include "base/error.hpp"
#include "node-runtime/transport/datatype/datatype.hpp"
#include "node-runtime/transport/datatype/overlap.hpp"
#include "node-runtime/transport/datatype/streaming.hpp"
#include "tests/support/seeds.hpp"
#include "tests/transport/datatype/described_type.hpp"
#include "tests/transport/datatype/random_type.hpp"

namespace heddle::test {
namespace {

using simulation::replay_hint;
using simulation::seeds;

constexpr std::size_t guard = 32;
constexpr std::byte sentinel{0xa5};

/// Memory that some elements lie in, at any alignment, and that of the packed stream.
class Memory {
 public:
  Memory(const TypeMap& map, std::int64_t count, RandomType& random)
      : map_(map), count_(count), shift_(guard + static_cast<std::size_t>(random.number(0, 15))) {
    const std::int64_t last = count > 0 ? (count - 1) * map.extent() : 0;
    low_ = std::min<std::int64_t>(0, last) + map.true_lower_bound();
    const std::int64_t high = std::max<std::int64_t>(0, last) + map.true_upper_bound();
    bytes_.resize(static_cast<std::size_t>(high - low_) + shift_ + guard);
    for (std::byte& byte : bytes_) byte = static_cast<std::byte>(random.number(0, 255));
  }

  /// What is passed as the elements' address.
  [[nodiscard]] std::byte* address() {
    return bytes_.data() + static_cast<std::ptrdiff_t>(shift_) - low_;
  }
  [[nodiscard]] const std::vector<std::byte>& bytes() const { return bytes_; }
  void clear() { std::fill(bytes_.begin(), bytes_.end(), sentinel); }

  /// Where each byte of the stream lies, counted in bytes().
  [[nodiscard]] std::vector<std::size_t> places() const {
    std::vector<std::size_t> result;
    for (std::int64_t e = 0; e < count_; ++e) {
      for (const auto& entry : map_.entries) {
        const std::int64_t at = e * map_.extent() + entry.displacement - low_;
        for (std::int64_t b = 0; b < size_of(entry.scalar); ++b) {
          result.push_back(shift_ + static_cast<std::size_t>(at + b));
        }
      }
    }
    return result;
  }

 private:
  const TypeMap& map_;
  std::int64_t count_;
  std::size_t shift_;
  std::int64_t low_ = 0;
  std::vector<std::byte> bytes_;
};

/// Cuts [0, bytes) at up to `cuts` random places.
std::vector<StreamRange> random_ranges(RandomType& random, std::int64_t bytes, int cuts) {
  std::vector<std::int64_t> ends{0, bytes};
  for (int i = 0; i < cuts; ++i) ends.push_back(random.number(0, bytes));
  std::sort(ends.begin(), ends.end());
  std::vector<StreamRange> ranges;
  for (std::size_t i = 1; i < ends.size(); ++i) {
    ranges.push_back({ends[i - 1], ends[i] - ends[i - 1]});
  }
  return ranges;
}

bool is_receivable(const PackPlan& plan, std::int64_t count) {
  try {
    check_receivable(plan, count);
    return true;
  } catch (const Error&) {
    return false;
  }
}

void check_pack(const PackPlan& plan, std::int64_t count, Memory& memory,
                const std::vector<StreamRange>& ranges) {
  const std::vector<std::size_t> places = memory.places();
  for (const StreamRange& range : ranges) {
    // As large as it must be, so that a sanitizer sees what goes beyond.
    std::vector<std::byte> packed(static_cast<std::size_t>(range.bytes));
    pack(plan, count, memory.address(), range, packed.data());
    for (std::size_t i = 0; i < packed.size(); ++i) {
      const std::size_t place = places[static_cast<std::size_t>(range.begin) + i];
      ASSERT_EQ(packed[i], memory.bytes()[place]) << "byte " << i << " from " << range.begin;
    }
  }
}

void check_unpack(const PackPlan& plan, std::int64_t count, Memory& memory,
                  const std::vector<StreamRange>& ranges) {
  const std::vector<std::size_t> places = memory.places();
  std::vector<std::byte> stream(places.size());
  std::iota(reinterpret_cast<unsigned char*>(stream.data()),
            reinterpret_cast<unsigned char*>(stream.data()) + stream.size(), 1);
  memory.clear();
  std::vector<std::byte> expected = memory.bytes();
  for (std::size_t i = 0; i < places.size(); ++i) expected[places[i]] = stream[i];
  for (const StreamRange& range : ranges) {
    const std::vector<std::byte> packed(stream.begin() + range.begin,
                                        stream.begin() + range.begin + range.bytes);
    unpack(plan, count, range, packed.data(), memory.address());
  }
  ASSERT_TRUE(memory.bytes() == expected);
}

}  // namespace

TEST(Pack, moves_any_type_in_any_pieces_as_its_type_map_says) {
  int received = 0;
  for (const std::uint64_t seed : seeds(6000)) {
    RandomType random(seed);
    const DescribedType described = random.next();
    const TypeMap map = type_map_of(described);
    SCOPED_TRACE(replay_hint(seed) + "\n" + to_string(described));
    const PackPlan plan = make_plan(datatype_of(described));
    const std::int64_t count = random.number(0, 4);
    ASSERT_EQ(plan.stream_bytes(count), count * map.size());
    Memory memory(map, count, random);
    const auto ranges = random_ranges(random, count * map.size(), 4);
    check_pack(plan, count, memory, ranges);
    if (HasFatalFailure()) return;
    std::vector<std::size_t> places = memory.places();
    std::sort(places.begin(), places.end());
    const bool disjoint = std::adjacent_find(places.begin(), places.end()) == places.end();
    ASSERT_EQ(is_receivable(plan, count), disjoint);
    if (!disjoint) continue;
    ++received;
    check_unpack(plan, count, memory, ranges);
    if (HasFatalFailure()) return;
  }
  if (!simulation::one_seed_only()) {
    EXPECT_GT(received, 100);  // else nothing was tried
  }
}

TEST(Pack, transposes_in_any_pieces) {
  for (const std::uint64_t seed : seeds(300)) {
    RandomType random(seed);
    DescribedType element;
    element.scalar = static_cast<Scalar>(random.number(0, 12));
    const std::int64_t rows = random.number(1, 40);
    const std::int64_t columns = random.number(1, 40);
    const std::int64_t leading = rows + random.number(0, 5);
    DescribedType row;
    row.kind = DescribedType::Kind::vector;
    row.count = columns;
    row.block_length = 1;
    row.stride = leading;
    row.parts = {std::make_shared<const DescribedType>(element)};
    DescribedType transposed;
    transposed.kind = DescribedType::Kind::hvector;
    transposed.count = rows;
    transposed.block_length = 1;
    transposed.stride = size_of(element.scalar);
    transposed.parts = {std::make_shared<const DescribedType>(row)};
    SCOPED_TRACE(replay_hint(seed));
    const TypeMap map = type_map_of(transposed);
    const PackPlan plan = make_plan(datatype_of(transposed));
    Memory memory(map, 1, random);
    const auto ranges = random_ranges(random, map.size(), 3);
    check_pack(plan, 1, memory, ranges);
    check_unpack(plan, 1, memory, ranges);
    if (HasFatalFailure()) return;
  }
}

TEST(Pack, takes_offsets_and_streams_beyond_32_bits) {
  // 2^33 elements, every other one travels: those around the address, which is in the middle.
  const std::int64_t count = std::int64_t{1} << 33;
  const std::int64_t half = count / 2;
  const Datatype all = Datatype::vector(count, 1, 2, Scalar::float64);
  const std::array<Datatype::IndexedBlock, 1> moved{{{-16 * half, 1}}};
  const PackPlan plan = make_plan(Datatype::hindexed(moved, all));
  EXPECT_EQ(plan.size, 8 * count);
  std::vector<double> memory(64);
  std::iota(memory.begin(), memory.end(), 0.0);
  std::vector<double> packed(32);
  const StreamRange range{8 * half, 256};
  pack(plan, 1, memory.data(), range, packed.data());
  for (std::size_t i = 0; i < packed.size(); ++i) EXPECT_EQ(packed[i], memory[2 * i]);
  std::fill(memory.begin(), memory.end(), -1.0);
  unpack(plan, 1, range, packed.data(), memory.data());
  for (std::size_t i = 0; i < memory.size(); ++i) {
    EXPECT_EQ(memory[i], i % 2 == 0 ? static_cast<double>(i) : -1.0);
  }
}

/// Packs and unpacks a range of blocks that were written down by hand; `memory` is misaligned.
void check_blocks(const Datatype& type, const std::vector<Datatype::IndexedBlock>& blocks) {
  SCOPED_TRACE(type.size());
  const PackPlan plan = make_plan(type);
  const auto bytes = static_cast<std::size_t>(type.true_upper_bound());
  std::vector<std::byte> buffer(bytes + 3 + guard);
  std::byte* const memory = buffer.data() + 3;
  for (std::size_t i = 0; i < bytes; ++i) memory[i] = static_cast<std::byte>(i * 37 + i / 4096);
  std::vector<std::byte> stream;
  for (const auto& b : blocks) {
    stream.insert(stream.end(), memory + b.displacement, memory + b.displacement + b.length);
  }
  ASSERT_EQ(static_cast<std::int64_t>(stream.size()), type.size());
  const StreamRange range{1001, type.size() - 2003};
  std::vector<std::byte> packed(static_cast<std::size_t>(range.bytes));
  pack(plan, 1, memory, range, packed.data());
  ASSERT_TRUE(std::equal(packed.begin(), packed.end(), stream.begin() + range.begin));

  std::fill(buffer.begin(), buffer.end(), sentinel);
  std::vector<std::byte> expected = buffer;
  std::int64_t at = 0;
  for (const auto& b : blocks) {
    for (std::int64_t i = 0; i < b.length; ++i, ++at) {
      const bool inside = at >= range.begin && at < range.begin + range.bytes;
      if (inside)
        expected[static_cast<std::size_t>(3 + b.displacement + i)] =
            stream[static_cast<std::size_t>(at)];
    }
  }
  unpack(plan, 1, range, packed.data(), memory);
  ASSERT_TRUE(buffer == expected);
}

TEST(Pack, moves_much_at_once_past_the_caches_and_little_with_prefetching) {
  using Block = Datatype::IndexedBlock;
  // Columns of some hundred bytes to some hundred kilobytes, above and below what is streamed.
  for (const std::int64_t rows : {35, 100, 1000, 30'011}) {
    for (const std::int64_t bytes : {std::int64_t{1} << 20, datatype::streamed_bytes_min + 5000}) {
      const std::int64_t columns = bytes / (8 * rows) + 1;
      std::vector<Block> blocks;
      for (std::int64_t j = 0; j < columns; ++j) blocks.push_back({8 * j * (rows + 3), 8 * rows});
      check_blocks(Datatype::vector(columns, rows, rows + 3, Scalar::float64), blocks);
    }
  }
  for (const std::int64_t order : {500, 1500}) {
    std::vector<Block> blocks;
    for (std::int64_t j = 0; j < order; ++j) {
      blocks.push_back({8 * (j * (order + 1) + j), 8 * (order - j)});
    }
    check_blocks(Datatype::triangle({.rows = order, .columns = order, .leading = order + 1},
                                    Scalar::float64),
                 blocks);
    // Every other column only: no plan but units fits it.
    std::vector<Block> some;
    for (std::size_t j = 0; j < blocks.size(); ++j) {
      if (j % 2 == 0 || j % 5 == 0) some.push_back(blocks[j]);
    }
    check_blocks(Datatype::hindexed(some, Scalar::byte), some);
  }
}

TEST(Pack, cuts_long_blocks_into_units_and_copies_them_as_one) {
  const std::int64_t length = 3 * PackPlan::unit_bytes_usual + 100;
  const std::vector<Datatype::IndexedBlock> blocks{{0, length}, {2 * length, 7}, {4 * length, 50}};
  const PackPlan plan = make_plan(Datatype::hindexed(blocks, Scalar::byte));
  ASSERT_EQ(plan.body, PackPlan::Body::units);
  ASSERT_EQ(plan.units.size(), 6U);
  EXPECT_EQ(plan.units[3], (WorkUnit{3 * plan.unit_bytes, 3 * plan.unit_bytes, 100}));
  std::vector<std::byte> memory(static_cast<std::size_t>(4 * length + 50));
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>(i % 251);
  const std::int64_t bytes = plan.size - 60;
  std::vector<std::byte> packed(static_cast<std::size_t>(bytes));
  pack(plan, 1, memory.data(), {60, bytes}, packed.data());
  for (std::int64_t i = 0; i < bytes; ++i) {
    const std::int64_t at = i + 60;
    std::int64_t place = at;
    if (at >= length) place = at + length;
    if (at >= length + 7) place = at - (length + 7) + 4 * length;
    ASSERT_EQ(packed[static_cast<std::size_t>(i)], memory[static_cast<std::size_t>(place)]) << i;
  }
}

}  // namespace heddle::test
