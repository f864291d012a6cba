#include "node-runtime/collectives/reduce/reduce_operation.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "base/error.hpp"

namespace heddle {
namespace {

const std::array all_operations{ReduceOperation::sum(),        ReduceOperation::product(),
                                ReduceOperation::minimum(),    ReduceOperation::maximum(),
                                ReduceOperation::bit_and(),    ReduceOperation::bit_or(),
                                ReduceOperation::bit_xor(),    ReduceOperation::logical_and(),
                                ReduceOperation::logical_or(), ReduceOperation::logical_xor()};

/// Inputs of one type between sentinels, and what their reduction must be.
template <class T>
class Inputs {
 public:
  Inputs(std::size_t inputs, std::size_t count, std::mt19937_64& random)
      : values_(inputs, std::vector<T>(count)) {
    for (auto& values : values_) {
      for (T& value : values) value = draw(random);
    }
  }

  [[nodiscard]] std::vector<const void*> addresses() const {
    std::vector<const void*> all;
    for (const auto& values : values_) all.push_back(values.data());
    return all;
  }
  [[nodiscard]] T* data(std::size_t input) { return values_[input].data(); }

  /// Element i, in the bracket by its definition.
  template <class Operation>
  [[nodiscard]] T expected(std::size_t i, const Operation& operation) const {
    return bracket(0, values_.size(), i, operation);
  }

 private:
  static T draw(std::mt19937_64& random) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(random());
    } else if constexpr (std::is_floating_point_v<T>) {
      switch (random() % 16) {
        case 0:
          return T{0};
        case 1:
          return -T{0};
        case 2:
          return std::numeric_limits<T>::infinity();
        default:
          return std::uniform_real_distribution<T>(-2, 2)(random);
      }
    } else {
      using Real = typename T::value_type;
      std::uniform_real_distribution<Real> uniform(-2, 2);
      const Real real = uniform(random);
      return {real, uniform(random)};
    }
  }
  template <class Operation>
  [[nodiscard]] T bracket(std::size_t begin, std::size_t end, std::size_t i,
                          const Operation& operation) const {
    if (end - begin == 1) return values_[begin][i];
    std::size_t left = 1;
    while (2 * left < end - begin) left *= 2;
    const T a = bracket(begin, begin + left, i, operation);
    return operation(a, bracket(begin + left, end, i, operation));
  }

  std::vector<std::vector<T>> values_;
};

template <class T>
bool same_bits(const T& a, const T& b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

/// For 1 to 16 inputs and several lengths, into memory of its own and into each of the inputs.
template <class T, class Operation>
void check(const ReduceOperation& operation, Scalar scalar, const Operation& reference) {
  std::mt19937_64 random(46);
  ASSERT_TRUE(operation.takes(scalar)) << operation.name() << " of " << name_of(scalar);
  for (std::size_t inputs = 1; inputs <= ReduceOperation::inputs_max; ++inputs) {
    for (const std::size_t count : {0U, 1U, 7U, 1000U}) {
      for (std::size_t into = 0; into <= inputs; ++into) {
        Inputs<T> given(inputs, count, random);
        std::vector<T> wanted;
        for (std::size_t i = 0; i < count; ++i) wanted.push_back(given.expected(i, reference));
        std::vector<T> own(count + 1, T{3});
        T* const output = into == inputs ? own.data() : given.data(into);
        operation.reduce(scalar, output, given.addresses(), static_cast<std::int64_t>(count));
        for (std::size_t i = 0; i < count; ++i) {
          ASSERT_TRUE(same_bits(output[i], wanted[i]))
              << operation.name() << " of " << name_of(scalar) << ", " << inputs
              << " inputs, element " << i << " of " << count << " into " << into;
        }
        EXPECT_TRUE(same_bits(own.back(), T{3}));
      }
    }
  }
}

template <class T>
void check_integers(Scalar scalar) {
  using Wide = std::uint64_t;
  check<T>(ReduceOperation::sum(), scalar,
           [](T a, T b) { return static_cast<T>(static_cast<Wide>(a) + static_cast<Wide>(b)); });
  check<T>(ReduceOperation::product(), scalar,
           [](T a, T b) { return static_cast<T>(static_cast<Wide>(a) * static_cast<Wide>(b)); });
  check<T>(ReduceOperation::minimum(), scalar, [](T a, T b) { return std::min(a, b); });
  check<T>(ReduceOperation::maximum(), scalar, [](T a, T b) { return std::max(a, b); });
  check<T>(ReduceOperation::bit_and(), scalar, [](T a, T b) { return static_cast<T>(a & b); });
  check<T>(ReduceOperation::bit_or(), scalar, [](T a, T b) { return static_cast<T>(a | b); });
  check<T>(ReduceOperation::bit_xor(), scalar, [](T a, T b) { return static_cast<T>(a ^ b); });
  check<T>(ReduceOperation::logical_and(), scalar,
           [](T a, T b) { return static_cast<T>(static_cast<bool>(a) && static_cast<bool>(b)); });
  check<T>(ReduceOperation::logical_or(), scalar,
           [](T a, T b) { return static_cast<T>(static_cast<bool>(a) || static_cast<bool>(b)); });
  check<T>(ReduceOperation::logical_xor(), scalar,
           [](T a, T b) { return static_cast<T>(static_cast<bool>(a) != static_cast<bool>(b)); });
}

template <class T>
void check_reals(Scalar scalar) {
  check<T>(ReduceOperation::sum(), scalar, [](T a, T b) { return a + b; });
  check<T>(ReduceOperation::product(), scalar, [](T a, T b) { return a * b; });
  // fmin and fmax leave it open which zero they choose.
  check<T>(ReduceOperation::minimum(), scalar, [](T a, T b) {
    return a != b ? std::fmin(a, b) : std::signbit(b) ? b : a;
  });
  check<T>(ReduceOperation::maximum(), scalar, [](T a, T b) {
    return a != b ? std::fmax(a, b) : std::signbit(a) ? b : a;
  });
}

template <class Real>
void check_complex(Scalar scalar) {
  using T = std::complex<Real>;
  check<T>(ReduceOperation::sum(), scalar, [](T a, T b) { return a + b; });
  check<T>(ReduceOperation::product(), scalar, [](T a, T b) {
    return T(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
  });
}

}  // namespace

TEST(ReduceOperation, reduces_in_the_bracket_with_any_number_of_inputs_in_place_too) {
  check_integers<std::int8_t>(Scalar::int8);
  check_integers<std::int16_t>(Scalar::int16);
  check_integers<std::int32_t>(Scalar::int32);
  check_integers<std::int64_t>(Scalar::int64);
  check_integers<std::uint8_t>(Scalar::uint8);
  check_integers<std::uint16_t>(Scalar::uint16);
  check_integers<std::uint32_t>(Scalar::uint32);
  check_integers<std::uint64_t>(Scalar::uint64);
  check_reals<float>(Scalar::float32);
  check_reals<double>(Scalar::float64);
  check_complex<float>(Scalar::complex_float32);
  check_complex<double>(Scalar::complex_float64);
}

TEST(ReduceOperation, lets_nan_win_and_minus_zero_be_below_zero) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const ReduceOperation& operation :
       {ReduceOperation::minimum(), ReduceOperation::maximum()}) {
    for (const auto& [a, b] : {std::pair{nan, 1.0}, {1.0, nan}, {nan, nan}}) {
      double result = 0;
      operation.reduce(Scalar::float64, &result, std::array<const void*, 2>{&a, &b}, 1);
      EXPECT_TRUE(std::isnan(result));
    }
    for (const auto& [a, b] : {std::pair{0.0, -0.0}, {-0.0, 0.0}}) {
      double result = 0;
      operation.reduce(Scalar::float64, &result, std::array<const void*, 2>{&a, &b}, 1);
      EXPECT_EQ(std::signbit(result), operation == ReduceOperation::minimum());
    }
  }
}

TEST(ReduceOperation, takes_what_it_means_something_for_and_refuses_the_rest) {
  for (const ReduceOperation& operation : all_operations) {
    const std::string name(operation.name());
    const bool is_bitwise = name.starts_with("bit_");
    const bool is_logical = name.starts_with("logical_");
    const bool is_order = name == "minimum" || name == "maximum";
    for (const Scalar scalar :
         {Scalar::byte, Scalar::int32, Scalar::float64, Scalar::complex_float32}) {
      const bool taken =
          scalar == Scalar::int32 || (scalar == Scalar::byte && is_bitwise) ||
          (scalar == Scalar::float64 && !is_bitwise && !is_logical) ||
          (scalar == Scalar::complex_float32 && !is_bitwise && !is_logical && !is_order);
      EXPECT_EQ(operation.takes(scalar), taken) << name << " of " << name_of(scalar);
      std::array<std::byte, 64> memory{};
      const std::array<const void*, 2> inputs{memory.data(), memory.data() + 16};
      if (taken) {
        EXPECT_NO_THROW(operation.reduce(scalar, memory.data() + 32, inputs, 1));
      } else {
        EXPECT_THROW(operation.reduce(scalar, memory.data() + 32, inputs, 1), Error);
      }
    }
  }
  std::array<double, 2> value{};
  EXPECT_THROW(ReduceOperation::sum().reduce(Scalar::float64, value.data(), {}, 1), Error);
  EXPECT_TRUE(ReduceOperation::sum().is_exact(Scalar::uint8));
  EXPECT_FALSE(ReduceOperation::sum().is_exact(Scalar::float32));
  EXPECT_TRUE(ReduceOperation::maximum().is_exact(Scalar::float64));
}

}  // namespace heddle
