#include "node-runtime/collectives/reduce/unit_reduction.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <vector>

#include "node-runtime/collectives/reduce/built_in.hpp"
#include "tests/collectives/reduce/own_cases.hpp"
#include "tests/collectives/reduce/reduce_cases.hpp"

/// What GPU threads do, on the host: one thread after the other, with wrong alignments as traps.
namespace heddle::reduction {
namespace {

using test::ReduceCase;

template <class Functor>
struct HostLaunch {
  const Work& work;
  const Functor& functor;
  std::int64_t workers;

  /// Returns the bytes of a word.
  template <class T, class U, std::uint32_t Inputs, bool HasRows>
  [[nodiscard]] std::size_t run(const Cut& cut) const {
    EXPECT_EQ(cut.head + cut.tail + cut.units * std::int64_t{sizeof(U) / sizeof(T)}, work.count);
    for (std::int64_t w = 0; w < workers; ++w) {
      reduce_range<T, U, Inputs, HasRows>(work, functor, cut, Worker{w, workers});
    }
    return sizeof(U{}.word[0]);
  }
};

template <class T, class Functor>
std::size_t run(const Work& work, const Functor& functor, std::int64_t workers) {
  return cut_and_launch<T>(work, HostLaunch<Functor>{work, functor, workers});
}

template <class Operation>
std::size_t run_built_in(Scalar scalar, const Work& work, std::int64_t workers) {
  std::size_t word = 0;
  with_element<Operation>(
      scalar, [&]<class T>(ElementType<T>) { word = run<T>(work, Operation{}, workers); });
  return word;
}

std::size_t run(const ReduceCase& what, const Work& work, std::int64_t workers) {
  const std::string_view name = what.operation.name();
  const Scalar scalar = what.scalar;
  if (name == "sum") return run_built_in<Sum>(scalar, work, workers);
  if (name == "product") return run_built_in<Product>(scalar, work, workers);
  if (name == "minimum") return run_built_in<Minimum>(scalar, work, workers);
  if (name == "maximum") return run_built_in<Maximum>(scalar, work, workers);
  if (name == "minimum_with_index") return run_built_in<MinimumWithIndex>(scalar, work, workers);
  if (name == "maximum_with_index") return run_built_in<MaximumWithIndex>(scalar, work, workers);
  if (name == "bit_and") return run_built_in<BitAnd>(scalar, work, workers);
  if (name == "bit_or") return run_built_in<BitOr>(scalar, work, workers);
  if (name == "bit_xor") return run_built_in<BitXor>(scalar, work, workers);
  if (name == "logical_and") return run_built_in<LogicalAnd>(scalar, work, workers);
  if (name == "logical_or") return run_built_in<LogicalOr>(scalar, work, workers);
  if (name == "logical_xor") return run_built_in<LogicalXor>(scalar, work, workers);
  if (name == "matrix product") return run<test::Matrix2>(work, test::MatrixProduct{}, workers);
  if (name == "then modulo") return run<test::AffineMap>(work, test::ThenModulo{1000003}, workers);
  if (name == "first that is") return run<test::ThreeBytes>(work, test::FirstThatIs{}, workers);
  if (name == "integer product") return run<test::Matrix3>(work, test::IntegerProduct{}, workers);
  ADD_FAILURE() << name;
  return 0;
}

/// Inputs and outputs in one memory, each at a given distance behind a multiple of 16 bytes.
class Memory {
 public:
  Memory(const ReduceCase& what, std::size_t inputs, std::size_t outputs, std::int64_t count,
         std::span<const std::size_t> distances, const Arrangement& in, const Arrangement& out)
      : what_(what),
        inputs_(inputs),
        count_(static_cast<std::size_t>(count)),
        in_(in),
        out_(out),
        slot_bytes_((std::max(place(0, count_ - 1), place(inputs, count_ - 1)) + what.bytes + 64) /
                    16 * 16) {
    bytes_.assign((inputs + outputs) * slot_bytes_ + 16, std::byte{0x5a});
    const auto base = reinterpret_cast<std::uintptr_t>(bytes_.data());
    base_ = bytes_.data() + (16 - base % 16) % 16;
    for (std::size_t k = 0; k < inputs + outputs; ++k) {
      offsets_.push_back(k * slot_bytes_ + 16 + distances[k % distances.size()]);
    }
  }

  void draw(std::mt19937_64& random) {
    for (std::size_t k = 0; k < inputs_; ++k) {
      for (std::size_t i = 0; i < count_; ++i) what_.draw(random, at(k) + place(k, i));
    }
  }
  /// Bytes from at(k) to element i of that input or output.
  [[nodiscard]] std::size_t place(std::size_t k, std::size_t i) const {
    return test::walked_place(k < inputs_ ? in_ : out_, i * what_.bytes);
  }
  [[nodiscard]] std::byte* at(std::size_t k) { return base_ + offsets_[k]; }
  [[nodiscard]] std::vector<std::byte>& bytes() { return bytes_; }

 private:
  const ReduceCase& what_;
  std::size_t inputs_;
  std::size_t count_;
  Arrangement in_;
  Arrangement out_;
  std::size_t slot_bytes_;
  std::vector<std::byte> bytes_;
  std::byte* base_ = nullptr;
  std::vector<std::size_t> offsets_;
};

struct Shape {
  std::size_t inputs, outputs;
  std::int64_t count;
  std::int64_t workers;
  bool is_in_place;  ///< output 0 is the last input
  Arrangement in{};
  Arrangement out{};
};

/// Returns the bytes of a word.
std::size_t check(const ReduceCase& what, const Shape& shape,
                  std::span<const std::size_t> distances, std::mt19937_64& random) {
  SCOPED_TRACE(std::string(what.operation.name()) + " of " + std::string(name_of(what.scalar)) +
               ", " + std::to_string(shape.inputs) + " inputs, " + std::to_string(shape.outputs) +
               " outputs, " + std::to_string(shape.count) + " elements, " +
               std::to_string(shape.workers) + " threads");
  Memory memory(what, shape.inputs, shape.outputs, shape.count, distances, shape.in, shape.out);
  memory.draw(random);
  Work work;
  work.count = shape.count;
  work.in = shape.in;
  work.out = shape.out;
  work.input_count = static_cast<std::uint32_t>(shape.inputs);
  work.output_count = static_cast<std::uint32_t>(shape.outputs);
  for (std::size_t k = 0; k < shape.inputs; ++k) work.inputs[k] = memory.at(k);
  for (std::size_t o = 0; o < shape.outputs; ++o) work.outputs[o] = memory.at(shape.inputs + o);
  if (shape.is_in_place) work.outputs[0] = memory.at(shape.inputs - 1);
  std::vector<std::vector<std::byte>> wanted;
  for (std::int64_t i = 0; i < shape.count; ++i) {
    std::vector<const std::byte*> elements;
    for (std::size_t k = 0; k < shape.inputs; ++k) {
      elements.push_back(memory.at(k) + memory.place(k, static_cast<std::size_t>(i)));
    }
    wanted.push_back(test::bracketed(what, elements));
  }
  std::vector<std::byte> before = memory.bytes();
  const std::size_t word = run(what, work, shape.workers);
  for (std::size_t o = 0; o < shape.outputs; ++o) {
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const std::byte* const is = work.outputs[o] + memory.place(shape.inputs, i);
      EXPECT_TRUE(what.same(is, wanted[i].data())) << "output " << o << ", element " << i;
      std::memcpy(before.data() + (is - memory.bytes().data()), is, what.bytes);
      if (::testing::Test::HasFailure()) return word;
    }
  }
  EXPECT_EQ(before, memory.bytes()) << "something else was written";
  return word;
}

std::vector<ReduceCase> all_cases() {
  std::vector<ReduceCase> all = test::built_in_cases();
  for (ReduceCase& one : test::own_cases()) all.push_back(std::move(one));
  return all;
}

ReduceCase sum_of_doubles() {
  for (ReduceCase& one : test::built_in_cases()) {
    if (one.scalar == Scalar::float64) return one;
  }
  return {ReduceOperation::sum(), Scalar::float64, 8, {}, {}, {}};
}

}  // namespace

TEST(UnitReduction, has_the_hosts_bits_for_all_operations_inputs_outputs_and_alignments) {
  std::mt19937_64 random(1);
  for (const ReduceCase& what : all_cases()) {
    for (std::size_t inputs = 1; inputs <= inputs_max; ++inputs) {
      for (const std::int64_t count : {1, 2, 13, 61}) {
        const Shape shape{inputs, 1 + random() % inputs_max, count,
                          static_cast<std::int64_t>(1 + random() % 7), random() % 2 == 0};
        std::vector<std::size_t> distances{random() % 16};
        if (random() % 2 == 0) distances.push_back(random() % 16);
        check(what, shape, distances, random);
        if (::testing::Test::HasFailure()) return;
      }
    }
  }
}

TEST(UnitReduction, has_the_hosts_bits_for_rows_of_all_shapes) {
  std::mt19937_64 random(3);
  for (const ReduceCase& what : all_cases()) {
    const auto bytes = static_cast<std::int64_t>(what.bytes);
    for (int repeat = 0; repeat < 40; ++repeat) {
      const auto count = static_cast<std::int64_t>(1 + random() % 70);
      Shape shape{1 + random() % inputs_max,
                  1 + random() % inputs_max,
                  count,
                  static_cast<std::int64_t>(1 + random() % 7),
                  random() % 2 == 0,
                  test::drawn_arrangement(random, bytes, count)};
      shape.out = shape.is_in_place ? shape.in : test::drawn_arrangement(random, bytes, count);
      check(what, shape, std::vector<std::size_t>{random() % 2 == 0 ? 0 : random() % 16}, random);
      if (::testing::Test::HasFailure()) return;
    }
  }
}

TEST(UnitReduction, finds_the_row_of_every_byte_of_large_triangles) {
  std::mt19937_64 random(4);
  for (const std::int64_t n : {1, 2, 1000, 46'341, 3'000'000}) {
    for (const Rows& rows : {Rows{8, 8, 8 * n}, Rows{8 * n, -8, 8 * n}, Rows{24, 0, 8 * n}}) {
      const std::int64_t bytes = rows.before(n);
      for (int repeat = 0; repeat < 1000; ++repeat) {
        const std::int64_t byte =
            repeat == 0   ? 0
            : repeat == 1 ? bytes - 1
                          : static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(bytes));
        const std::int64_t row = rows.row_of(byte);
        ASSERT_TRUE(rows.before(row) <= byte && byte < rows.before(row + 1))
            << "n " << n << ", byte " << byte << ", row " << row;
      }
      if (n < 2) continue;
      for (const std::int64_t row : {std::int64_t{1}, n / 2, n - 1}) {
        ASSERT_EQ(rows.row_of(rows.before(row)), row);
        ASSERT_EQ(rows.row_of(rows.before(row) - 1), row - 1);
      }
    }
  }
}

TEST(UnitReduction, moves_16_bytes_of_rows_that_are_multiples_of_them) {
  std::mt19937_64 random(5);
  const ReduceCase sum = sum_of_doubles();
  const auto word = [&](const Rows& rows, std::int64_t first, std::size_t distance) {
    const Shape shape{3, 2, 100, 4, false, {rows, first}, {rows, first}};
    return check(sum, shape, std::vector<std::size_t>{distance}, random);
  };
  EXPECT_EQ(word({48, 0, 64}, 0, 0), 16U);
  EXPECT_EQ(word({48, 0, 64}, 16, 0), 16U);
  EXPECT_EQ(word({48, 0, 64}, 8, 0), 8U);
  EXPECT_EQ(word({48, 0, 72}, 0, 0), 8U);
  EXPECT_EQ(word({40, 0, 64}, 0, 0), 8U);
  EXPECT_EQ(word({48, 0, 64}, 0, 8), 8U);
  EXPECT_EQ(word({48, 0, 52}, 0, 0), 1U);
  EXPECT_EQ(word({8, 8, 128}, 0, 0), 8U);
}

TEST(UnitReduction, moves_16_bytes_at_at_a_time_where_all_are_the_same_distance_from_them) {
  std::mt19937_64 random(2);
  const ReduceCase sum = sum_of_doubles();
  const Shape shape{3, 2, 100, 4, false};
  const auto word = [&](std::vector<std::size_t> distances) {
    return check(sum, shape, distances, random);
  };
  EXPECT_EQ(word({0}), 16U);
  EXPECT_EQ(word({8}), 16U) << "behind an element";
  EXPECT_EQ(word({0, 8}), 8U);
  EXPECT_EQ(word({4}), 1U);
  const ReduceCase bytes = test::own_cases()[2];
  EXPECT_EQ(check(bytes, shape, std::vector<std::size_t>{7}, random), 16U) << "behind 3 elements";
  const ReduceCase wide = test::own_cases()[0];
  EXPECT_EQ(check(wide, shape, std::vector<std::size_t>{0}, random), 16U);
  EXPECT_EQ(check(wide, shape, std::vector<std::size_t>{8}, random), 8U);
}

}  // namespace heddle::reduction
