#include "node-runtime/transport/pack/device_work.hpp"

#include <gtest/gtest.h>
#include <numeric>
#include <vector>

#include "base/error.hpp"
#include "node-runtime/transport/datatype/overlap.hpp"
#include "node-runtime/transport/pack/prepare.hpp"
#include "tests/support/seeds.hpp"
#include "tests/transport/pack/host_grid.hpp"
#include "tests/transport/pack/packed_elements.hpp"
#include "tests/transport/pack/shape_pairs.hpp"

/// What a GPU's threads do, on the host.
namespace heddle::test {
namespace {

using simulation::replay_hint;
using simulation::seeds;

bool is_receivable(const PackPlan& plan, std::int64_t count) {
  try {
    check_receivable(plan, count);
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// One direction on a grid of some threads.
void run_on_grid(const PackPlan& plan, std::int64_t count, std::byte* memory,
                 const StreamRange& range, std::byte* packed, HostGrid& grid, bool packs,
                 packing::FarSide far = packing::FarSide::none) {
  if (range.bytes == 0) return;
  const LoopNest nest = plan.nest_of(count);
  if (plan.body == PackPlan::Body::units) {
    packing::UnitsWork work;
    work.packs = packs;
    work.nest = nest;
    work.memory = memory;
    work.packed = packed;
    work.range = range;
    work.units = plan.units.data();
    work.count = static_cast<std::int64_t>(plan.units.size());
    work.lanes_log2 = packing::lanes_log2_for(nest.body_bytes / work.count);
    packing::prepare(work, grid);
  } else {
    packing::prepare(
        packing::BlocksWork{plan.body, packs, 0, nest, plan.triangle, memory, packed, range, far},
        grid);
  }
}

/// Packs and unpacks all ranges, the packed side misaligned by chance.
void check(const PackPlan& plan, std::int64_t count, Elements& elements, RandomType& random,
           int cuts) {
  const auto ranges = random_ranges(random, elements.stream_bytes(), cuts);
  const auto blocks = static_cast<std::uint32_t>(random.number(1, 5));
  const auto threads = static_cast<std::uint32_t>(32 * random.number(1, 3));
  const std::vector<std::byte> stream = counted_bytes(elements.stream_bytes());
  std::vector<std::byte> unpacked(elements.bytes().size(), Elements::sentinel);
  const bool receives = is_receivable(plan, count);
  for (const StreamRange& range : ranges) {
    const auto shift = static_cast<std::size_t>(random.one_in(2) ? 0 : random.number(1, 15));
    const auto bytes = static_cast<std::size_t>(range.bytes);
    // Aligned as allocations are, and as large as it must be, so that a sanitizer sees what goes
    // beyond.
    std::vector<std::byte> packed(shift + bytes, Elements::sentinel);
    HostGrid packing_grid(true, blocks, threads);
    run_on_grid(plan, count, elements.bytes().data() + elements.origin(), range,
                packed.data() + shift, packing_grid, true);
    std::vector<std::byte> expected(shift, Elements::sentinel);
    const std::vector<std::byte> right = elements.packed(range);
    expected.insert(expected.end(), right.begin(), right.end());
    ASSERT_TRUE(packed == expected) << "from " << range.begin << ", " << range.bytes;
    if (!receives) continue;
    std::copy_n(stream.begin() + range.begin, bytes, packed.begin() + static_cast<long>(shift));
    HostGrid unpacking_grid(false, blocks, threads);
    run_on_grid(plan, count, unpacked.data() + elements.origin(), range, packed.data() + shift,
                unpacking_grid, false);
  }
  if (!receives) return;
  std::vector<std::byte> expected(unpacked.size(), Elements::sentinel);
  for (std::int64_t i = 0; i < elements.stream_bytes(); ++i) {
    expected[elements.place(i)] = stream[static_cast<std::size_t>(i)];
  }
  ASSERT_TRUE(unpacked == expected);
}

/// What a copy engine is told of blocks is what the shapes are.
void check_columns(const packing::BetweenWork& work, const PackPlan& from, const PackPlan& to) {
  const auto columns = work.columns();
  if (!columns) return;
  std::vector<std::byte> expected(static_cast<std::size_t>(to.true_upper_bound));
  std::vector<std::byte> target = expected;
  const std::vector<std::byte> source = counted_bytes(from.true_upper_bound);
  move_by_host(from, source.data(), to, expected.data());
  const std::byte* const begin = source.data() + from.true_lower_bound + work.from_nest.offset;
  std::byte* const place = target.data() + to.true_lower_bound + work.to_nest.offset;
  for (std::size_t column = 0; column < columns->columns; ++column) {
    std::copy_n(begin + column * columns->source_leading, columns->column_bytes,
                place + column * columns->destination_leading);
  }
  ASSERT_EQ(target, expected);
}

}  // namespace

TEST(Divisor, divides_every_number_below_2_to_the_31) {
  constexpr std::uint32_t last = (std::uint32_t{1} << 31U) - 1;
  std::vector<std::int64_t> values{1, 2, 3, 5, 7, 641, 65'535, 65'536, 65'537};
  for (std::int64_t power = 1; power < last; power *= 2) {
    values.insert(values.end(), {power, power + 1, std::max<std::int64_t>(1, power - 1)});
  }
  values.push_back(last);
  for (const std::int64_t value : values) {
    const packing::Divisor divisor = packing::divisor_of(value);
    std::vector<std::uint32_t> numbers{0, 1, last - 1, last};
    for (std::int64_t multiple = value; multiple <= last;
         multiple += last / 50 / value * value + value) {
      numbers.push_back(static_cast<std::uint32_t>(multiple));
      numbers.push_back(static_cast<std::uint32_t>(multiple - 1));
    }
    for (const std::uint32_t number : numbers) {
      ASSERT_EQ(divisor.quotient(number), number / value) << number << " / " << value;
    }
  }
}

TEST(DeviceWork, moves_any_type_in_any_pieces_as_its_type_map_says) {
  for (const std::uint64_t seed : seeds(3000)) {
    RandomType random(seed);
    const DescribedType described = random_described(random);
    const TypeMap map = type_map_of(described);
    SCOPED_TRACE(replay_hint(seed) + "\n" + to_string(described));
    const PackPlan plan = make_plan(datatype_of(described));
    const std::int64_t count = random.number(0, 4);
    Elements elements(map, count, random);
    check(plan, count, elements, random, 3);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(DeviceWork, copies_from_any_loops_to_others) {
  int alike = 0;
  for (const std::uint64_t seed : seeds(2000)) {
    SCOPED_TRACE(replay_hint(seed));
    RandomType random(seed);
    const ShapePair pair = random_pair(random);
    const PackPlan from = make_plan(pair.from);
    const PackPlan to = make_plan(pair.to);
    const auto from_shape = loop_shape(from, 1);
    const auto to_shape = loop_shape(to, 1);
    // Trapezoids may be lists of blocks, or blocks.
    if (!from_shape || !to_shape || !from_shape->fits(*to_shape)) continue;
    ++alike;
    const auto shift = static_cast<std::size_t>(random.one_in(2) ? 0 : random.number(1, 15));
    const std::vector<std::byte> source =
        counted_bytes(from.true_upper_bound + static_cast<std::int64_t>(shift));
    std::vector<std::byte> expected(static_cast<std::size_t>(to.true_upper_bound) + shift,
                                    Elements::sentinel);
    std::vector<std::byte> target = expected;
    move_by_host(from, source.data() + shift, to, expected.data() + shift);

    packing::BetweenWork work = packing::BetweenWork::of(*from_shape, *to_shape);
    work.far = static_cast<packing::FarSide>(random.number(0, 2));
    work.from = source.data() + shift + from.true_lower_bound;
    work.to = target.data() + shift + to.true_lower_bound;
    HostGrid grid(true, static_cast<std::uint32_t>(random.number(1, 5)), 32);
    packing::prepare(work, grid);
    ASSERT_EQ(target, expected);
    EXPECT_GE(grid.between, 1);
    check_columns(work, from, to);
  }
  EXPECT_TRUE(alike > 1000 || simulation::seeds(2000).size() < 2000) << alike;
}

/// Long columns, whose lines on the far side are touched as wholes, beginning anywhere in one.
TEST(DeviceWork, moves_triangles_line_by_line) {
  for (const std::uint64_t seed : seeds(300)) {
    SCOPED_TRACE(replay_hint(seed));
    RandomType random(seed);
    const std::int64_t rows = random.number(60, 300);
    const std::int64_t columns = random.number(2, rows);
    const auto part = random.one_in(2) ? Datatype::TriangleShape::Part::lower
                                       : Datatype::TriangleShape::Part::upper;
    const std::int64_t leading = rows + random.number(0, 9);
    const Scalar scalar = random.one_in(3) ? Scalar::float32 : Scalar::float64;
    const PackPlan plan =
        make_plan(Datatype::triangle({part, random.one_in(2), rows, columns, leading}, scalar));
    const std::int64_t count = random.one_in(2) ? 1 : random.number(2, 3);
    const std::vector<std::byte> memory = counted_bytes(count * plan.extent + 8 * leading);
    const std::int64_t all = plan.stream_bytes(count);
    const std::int64_t begin = random.one_in(2) ? 0 : random.number(0, all - 1);
    const StreamRange range{begin, random.one_in(2) ? all - begin : random.number(1, all - begin)};
    const auto bytes = static_cast<std::size_t>(range.bytes);
    const auto shift = static_cast<std::size_t>(8 * random.number(0, 20));
    const auto blocks = static_cast<std::uint32_t>(random.number(1, 5));

    std::vector<std::byte> expected(shift + bytes, Elements::sentinel);
    pack(plan, count, memory.data(), range, expected.data() + shift);
    std::vector<std::byte> packed(shift + bytes, Elements::sentinel);
    std::vector<std::byte> source = memory;
    const auto far = static_cast<packing::FarSide>(random.number(0, 2));
    HostGrid packing_grid(true, blocks, 64);
    run_on_grid(plan, count, source.data(), range, packed.data() + shift, packing_grid, true, far);
    ASSERT_TRUE(packed == expected);
    ASSERT_TRUE(source == memory);

    std::vector<std::byte> right(memory.size(), Elements::sentinel);
    unpack(plan, count, range, packed.data() + shift, right.data());
    std::vector<std::byte> unpacked(memory.size(), Elements::sentinel);
    HostGrid unpacking_grid(false, blocks, 64);
    run_on_grid(plan, count, unpacked.data(), range, packed.data() + shift, unpacking_grid, false,
                far);
    ASSERT_TRUE(unpacked == right);
  }
}

/// Long blocks that begin anywhere in lines of memory, and ranges that begin anywhere in blocks.
TEST(DeviceWork, unpacks_long_blocks_by_lines_of_memory) {
  for (const std::uint64_t seed : seeds(100)) {
    SCOPED_TRACE(replay_hint(seed));
    RandomType random(seed);
    const std::int64_t rows = 512 + random.number(0, 200);
    const std::int64_t columns = random.number(2, 40);
    const std::int64_t leading = rows + random.number(1, 40);
    const Scalar scalar = random.one_in(3) ? Scalar::float32 : Scalar::float64;
    const PackPlan plan = make_plan(Datatype::vector(columns, 2 * rows, 2 * leading + 1, scalar));
    const StreamRange all{0, plan.size};
    const std::int64_t begin = random.number(0, plan.size - 1);
    const StreamRange some{begin, random.number(1, plan.size - begin)};
    for (const StreamRange& range : {all, some}) {
      const std::vector<std::byte> stream = counted_bytes(range.bytes);
      const auto memory_bytes = static_cast<std::size_t>(plan.true_upper_bound);
      std::vector<std::byte> right(memory_bytes, Elements::sentinel);
      unpack(plan, 1, range, stream.data(), right.data());
      std::vector<std::byte> packed = stream;
      std::vector<std::byte> unpacked(memory_bytes, Elements::sentinel);
      HostGrid grid(false, static_cast<std::uint32_t>(random.number(1, 5)), 64);
      run_on_grid(plan, 1, unpacked.data(), range, packed.data(), grid, false);
      ASSERT_TRUE(unpacked == right);
      EXPECT_TRUE(grid.trapezoids > 0 || range.bytes < plan.size);
    }
  }
}

/// Columns long enough for it, from memory to memory: those of triangles, and those of matrices,
/// one side of which may be a single run.
TEST(DeviceWork, copies_columns_by_lines_of_the_far_side) {
  int by_lines = 0;
  for (const std::uint64_t seed : seeds(200)) {
    SCOPED_TRACE(replay_hint(seed));
    RandomType random(seed);
    const Scalar scalar = random.one_in(3) ? Scalar::float32 : Scalar::float64;
    const bool are_triangles = random.one_in(2);
    const std::int64_t rows = are_triangles ? random.number(300, 400) : random.number(1024, 1400);
    const std::int64_t columns = are_triangles ? random.number(2, rows) : random.number(2, 30);
    const auto part = random.one_in(2) ? Datatype::TriangleShape::Part::lower
                                       : Datatype::TriangleShape::Part::upper;
    const bool has_diagonal = random.one_in(2);
    const auto type = [&] {
      const std::int64_t leading = rows + (random.one_in(3) ? 0 : random.number(1, 40));
      return are_triangles
                 ? Datatype::triangle({part, has_diagonal, rows, columns, leading}, scalar)
                 : Datatype::vector(columns, rows, leading, scalar);
    };
    const PackPlan from = make_plan(type());
    const PackPlan to = make_plan(type());
    const auto from_shape = loop_shape(from, 1);
    const auto to_shape = loop_shape(to, 1);
    ASSERT_TRUE(from_shape && to_shape && from_shape->fits(*to_shape));
    const auto shift = static_cast<std::size_t>(size_of(scalar) * random.number(0, 20));
    // No longer than they must be, so that a sanitizer sees what goes beyond.
    const std::vector<std::byte> source =
        counted_bytes(from.true_upper_bound + static_cast<std::int64_t>(shift));
    std::vector<std::byte> expected(static_cast<std::size_t>(to.true_upper_bound) + shift,
                                    Elements::sentinel);
    std::vector<std::byte> target = expected;
    move_by_host(from, source.data() + shift, to, expected.data() + shift);
    packing::BetweenWork work = packing::BetweenWork::of(*from_shape, *to_shape);
    work.far = random.one_in(2) ? packing::FarSide::memory : packing::FarSide::stream;
    work.from = source.data() + shift + from.true_lower_bound;
    work.to = target.data() + shift + to.true_lower_bound;
    HostGrid grid(true, static_cast<std::uint32_t>(random.number(1, 5)), 64);
    packing::prepare(work, grid);
    ASSERT_EQ(target, expected);
    by_lines += grid.by_lines;
    EXPECT_TRUE(grid.by_lines > 0 || are_triangles) << "columns of 4096 bytes and more";
  }
  EXPECT_TRUE(by_lines > 150 || simulation::seeds(200).size() < 200) << by_lines;
}

TEST(DeviceWork, takes_tiles_for_transposes_and_pairs_of_columns_for_triangles) {
  std::vector<double> memory(100 * 100);
  std::vector<double> packed(100 * 100);
  const auto run = [&](const Datatype& type, StreamRange range) {
    HostGrid grid(true, 2, 32);
    run_on_grid(make_plan(type), 1, reinterpret_cast<std::byte*>(memory.data()), range,
                reinterpret_cast<std::byte*>(packed.data()), grid, true);
    return std::vector<int>{grid.strided, grid.transposed, grid.trapezoids};
  };
  const Datatype transposed =
      Datatype::hvector(50, 1, 8, Datatype::vector(60, 1, 100, Scalar::float64));
  EXPECT_EQ(run(transposed, {0, transposed.size()}), (std::vector{0, 1, 0}));
  EXPECT_EQ(run(transposed, {800, 8000}), (std::vector{0, 1, 0}));
  EXPECT_EQ(run(transposed, {800, 80}), (std::vector{1, 0, 0}));  // less than a row
  const Datatype columns = Datatype::vector(50, 60, 100, Scalar::float64);
  EXPECT_EQ(run(columns, {0, columns.size()}), (std::vector{1, 0, 0}));
  const Datatype triangle =
      Datatype::triangle({.rows = 100, .columns = 100, .leading = 100}, Scalar::float64);
  EXPECT_EQ(run(triangle, {0, triangle.size()}), (std::vector{0, 0, 1}));
  EXPECT_EQ(run(triangle, {100, 20'000}), (std::vector{0, 0, 1}));
}

TEST(DeviceWork, finds_its_place_in_streams_beyond_32_bits) {
  // 2^33 elements of 16 bytes, 8 of which travel; only a few of them are there.
  const std::int64_t count = std::int64_t{1} << 33;
  const PackPlan plan = make_plan(Datatype::vector(count, 1, 2, Scalar::float64));
  std::vector<double> around(64);
  std::iota(around.begin(), around.end(), 0.0);
  const std::int64_t first = count - 100;
  const auto address =
      reinterpret_cast<std::uintptr_t>(around.data()) - static_cast<std::uintptr_t>(16 * first);
  std::vector<double> packed(32);
  HostGrid grid(true, 2, 32);
  run_on_grid(plan, 1, reinterpret_cast<std::byte*>(address), {8 * first, 32 * 8},
              reinterpret_cast<std::byte*>(packed.data()), grid, true);
  for (std::size_t i = 0; i < packed.size(); ++i) EXPECT_EQ(packed[i], around[2 * i]);
}

TEST(DeviceWork, goes_from_the_end_of_a_loop_beyond_32_bits_to_the_next) {
  const std::int64_t count = std::int64_t{1} << 31;
  const Datatype row = Datatype::vector(count, 1, 2, Scalar::float64);
  const PackPlan plan = make_plan(Datatype::hvector(3, 1, 16 * count + 8, row));
  ASSERT_EQ(plan.nest.depth, 2U);
  std::vector<double> around(64);
  std::iota(around.begin(), around.end(), 0.0);
  // The second row begins at around[20].
  const auto address = reinterpret_cast<std::uintptr_t>(around.data() + 20) -
                       static_cast<std::uintptr_t>(16 * count + 8);
  std::vector<double> packed(18);
  HostGrid grid(true, 2, 32);
  run_on_grid(plan, 1, reinterpret_cast<std::byte*>(address), {8 * (count - 8), 18 * 8},
              reinterpret_cast<std::byte*>(packed.data()), grid, true);
  EXPECT_EQ(grid.strided, 2);
  for (std::size_t i = 0; i < packed.size(); ++i) {
    EXPECT_EQ(packed[i], i < 8 ? around[3 + 2 * i] : around[20 + 2 * (i - 8)]) << i;
  }
}

TEST(DeviceWork, finds_the_last_columns_of_a_triangle_beyond_32_bits) {
  const std::int64_t order = 100'000;
  const std::int64_t columns = 20;
  const std::int64_t elements = columns * (columns + 1) / 2;
  const PackPlan plan = make_plan(
      Datatype::triangle({.rows = order, .columns = order, .leading = order}, Scalar::float64));
  std::vector<double> last(static_cast<std::size_t>(columns * (order + 1)));
  std::iota(last.begin(), last.end(), 0.0);
  const auto address = reinterpret_cast<std::uintptr_t>(last.data()) -
                       static_cast<std::uintptr_t>(8 * (order - columns) * (order + 1));
  std::vector<double> packed(static_cast<std::size_t>(elements));
  HostGrid grid(true, 2, 32);
  run_on_grid(plan, 1, reinterpret_cast<std::byte*>(address),
              {plan.size - 8 * elements, 8 * elements}, reinterpret_cast<std::byte*>(packed.data()),
              grid, true);
  std::size_t at = 0;
  for (std::int64_t j = 0; j < columns; ++j) {
    for (std::int64_t i = 0; i < columns - j; ++i, ++at) {
      ASSERT_EQ(packed[at], last[static_cast<std::size_t>(j * (order + 1) + i)]) << i << ", " << j;
    }
  }
}

}  // namespace heddle::test
