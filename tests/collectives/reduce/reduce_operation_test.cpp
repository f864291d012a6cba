#include "node-runtime/collectives/reduce/reduce_operation.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "node-runtime/device/device.hpp"
#include "tests/collectives/reduce/own_cases.hpp"
#include "tests/collectives/reduce/reduce_cases.hpp"

namespace heddle {
namespace {

using test::built_in_cases;
using test::ReduceCase;

/// Inputs in memory of their own, with bytes around them, at any distance from a multiple of 16.
class Inputs {
 public:
  Inputs(const ReduceCase& what, std::size_t inputs, std::size_t count, std::mt19937_64& random)
      : what_(what) {
    for (std::size_t k = 0; k < inputs; ++k) {
      offsets_.push_back(16 + random() % 16);
      memory_.emplace_back(count * what.bytes + 48, std::byte{0x5a});
      for (std::size_t i = 0; i < count; ++i) what.draw(random, data(k) + i * what.bytes);
    }
  }

  [[nodiscard]] std::byte* data(std::size_t input) {
    return memory_[input].data() + offsets_[input];
  }
  [[nodiscard]] std::vector<const void*> addresses() {
    std::vector<const void*> all;
    for (std::size_t k = 0; k < memory_.size(); ++k) all.push_back(data(k));
    return all;
  }
  [[nodiscard]] std::vector<std::byte> expected(std::size_t i) {
    std::vector<const std::byte*> elements;
    for (std::size_t k = 0; k < memory_.size(); ++k) elements.push_back(data(k) + i * what_.bytes);
    return test::bracketed(what_, elements);
  }

 private:
  const ReduceCase& what_;
  std::vector<std::size_t> offsets_;
  std::vector<std::vector<std::byte>> memory_;
};

/// For 1 to 16 inputs and several lengths, into memory of its own and into each of the inputs.
void check(const ReduceCase& what) {
  std::mt19937_64 random(46);
  ASSERT_TRUE(what.operation.takes(what.scalar));
  ASSERT_EQ(what.operation.element_bytes(what.scalar), static_cast<std::int64_t>(what.bytes));
  for (std::size_t inputs = 1; inputs <= ReduceOperation::inputs_max; ++inputs) {
    for (const std::size_t count : {0U, 1U, 7U, 301U}) {
      for (const std::size_t into : {inputs, std::size_t{random() % inputs}}) {
        Inputs given(what, inputs, count, random);
        std::vector<std::vector<std::byte>> wanted;
        for (std::size_t i = 0; i < count; ++i) wanted.push_back(given.expected(i));
        std::vector<std::byte> own((count + 1) * what.bytes, std::byte{3});
        std::byte* const output = into == inputs ? own.data() : given.data(into);
        what.operation.reduce(what.scalar, output, given.addresses(),
                              static_cast<std::int64_t>(count));
        for (std::size_t i = 0; i < count; ++i) {
          ASSERT_TRUE(what.same(output + i * what.bytes, wanted[i].data()))
              << what.operation.name() << " of " << name_of(what.scalar) << ", " << inputs
              << " inputs, element " << i << " of " << count << " into " << into;
        }
        EXPECT_EQ(own.back(), std::byte{3});
      }
    }
  }
}

template <class T>
T reduced(const ReduceOperation& operation, Scalar scalar, const T& a, const T& b) {
  T result{};
  operation.reduce(scalar, &result, std::array<const void*, 2>{&a, &b}, 1);
  return result;
}

}  // namespace

TEST(ReduceOperation, reduces_in_the_bracket_with_any_number_of_inputs_in_place_too) {
  for (const ReduceCase& what : built_in_cases()) check(what);
}

TEST(ReduceOperation, of_a_program_reduces_as_its_functor_does) {
  for (const ReduceCase& what : test::own_cases()) check(what);
}

TEST(ReduceOperation, lets_nan_win_and_minus_zero_be_below_zero) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const ReduceOperation& operation :
       {ReduceOperation::minimum(), ReduceOperation::maximum()}) {
    for (const auto& [a, b] : {std::pair{nan, 1.0}, {1.0, nan}, {nan, nan}}) {
      EXPECT_TRUE(std::isnan(reduced(operation, Scalar::float64, a, b)));
    }
    for (const auto& [a, b] : {std::pair{0.0, -0.0}, {-0.0, 0.0}}) {
      EXPECT_EQ(std::signbit(reduced(operation, Scalar::float64, a, b)),
                operation == ReduceOperation::minimum());
    }
  }
}

TEST(ReduceOperation, with_index_takes_the_lower_index_among_equal_values_and_among_nans) {
  using Pair = test::Pair<double>;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto least = ReduceOperation::minimum_with_index();
  const auto most = ReduceOperation::maximum_with_index();
  struct Choice {
    Pair a, b;
    double index_of_least, index_of_most;
  };
  for (const Choice& c : {Choice{{1, 7}, {2, 3}, 7, 3}, Choice{{2, 3}, {1, 7}, 7, 3},
                          Choice{{5, 7}, {5, 3}, 3, 3}, Choice{{5, 3}, {5, 7}, 3, 3},
                          Choice{{-0.0, 7}, {0.0, 3}, 7, 3}, Choice{{0.0, 3}, {-0.0, 7}, 7, 3},
                          Choice{{nan, 7}, {1, 3}, 7, 7}, Choice{{1, 3}, {nan, 7}, 7, 7},
                          Choice{{nan, 7}, {nan, 3}, 3, 3}, Choice{{nan, 3}, {nan, 7}, 3, 3},
                          Choice{{4, nan}, {4, 3}, 3, 3}, Choice{{4, 3}, {4, nan}, 3, 3}}) {
    EXPECT_EQ(reduced(least, Scalar::float64, c.a, c.b).index, c.index_of_least);
    EXPECT_EQ(reduced(most, Scalar::float64, c.a, c.b).index, c.index_of_most);
  }
}

/// Any order of the inputs, and any bracket over them.
TEST(ReduceOperation, that_is_exact_gives_the_same_bits_in_any_order) {
  std::mt19937_64 random(7);
  std::size_t exact = 0;
  for (const ReduceCase& what : built_in_cases()) {
    if (!what.operation.is_exact(what.scalar)) continue;
    ++exact;
    for (int round = 0; round < 200; ++round) {
      std::vector<std::vector<std::byte>> values(2 + random() % 8);
      for (auto& value : values) {
        value.resize(what.bytes);
        what.draw(random, value.data());
      }
      std::vector<const std::byte*> elements;
      for (const auto& value : values) elements.push_back(value.data());
      const std::vector<std::byte> wanted = test::bracketed(what, elements);
      std::shuffle(values.begin(), values.end(), random);
      while (values.size() > 1) {
        const std::size_t at = random() % (values.size() - 1);
        what.operation.reduce(what.scalar, values[at].data(),
                              std::array<const void*, 2>{values[at].data(), values[at + 1].data()},
                              1);
        values.erase(values.begin() + static_cast<std::ptrdiff_t>(at) + 1);
      }
      ASSERT_TRUE(what.same(values[0].data(), wanted.data()))
          << what.operation.name() << " of " << name_of(what.scalar) << ", round " << round;
    }
  }
  EXPECT_EQ(exact, built_in_cases().size() - 8);  // all but rounded sums and products
}

TEST(ReduceOperation, takes_what_it_means_something_for_and_refuses_the_rest) {
  const std::vector<ReduceCase> cases = built_in_cases();
  for (const ReduceCase& one : cases) {
    for (std::size_t s = 0; s < scalar_count; ++s) {
      const auto scalar = static_cast<Scalar>(s);
      const bool taken = std::ranges::any_of(cases, [&](const ReduceCase& other) {
        return other.operation == one.operation && other.scalar == scalar;
      });
      EXPECT_EQ(one.operation.takes(scalar), taken)
          << one.operation.name() << " of " << name_of(scalar);
      std::array<std::byte, 96> memory{};
      const std::array<const void*, 2> inputs{memory.data(), memory.data() + 32};
      if (taken) {
        EXPECT_NO_THROW(one.operation.reduce(scalar, memory.data() + 64, inputs, 1));
      } else {
        EXPECT_THROW(one.operation.reduce(scalar, memory.data() + 64, inputs, 1), Error);
      }
    }
  }
  std::array<double, 2> value{};
  EXPECT_THROW(ReduceOperation::sum().reduce(Scalar::float64, value.data(), {}, 1), Error);
  EXPECT_TRUE(ReduceOperation::sum().is_exact(Scalar::uint8));
  EXPECT_FALSE(ReduceOperation::sum().is_exact(Scalar::float32));
  EXPECT_TRUE(ReduceOperation::maximum().is_exact(Scalar::float64));
  EXPECT_TRUE(ReduceOperation::sum().is_commutative());
  EXPECT_EQ(ReduceOperation::sum().scalars_per_element(), 1);
  EXPECT_EQ(ReduceOperation::minimum_with_index().scalars_per_element(), 2);
}

}  // namespace heddle
