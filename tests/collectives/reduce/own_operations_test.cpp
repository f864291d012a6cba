#include "node-runtime/collectives/reduce/own_operations.hpp"

#include <array>
#include <complex>
#include <cstdint>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "node-runtime/device/device.hpp"
#include "tests/collectives/reduce/own_functors.hpp"

namespace heddle {
namespace {

struct Plus {
  template <class T>
  T operator()(const T& a, const T& b) const {
    return static_cast<T>(a + b);
  }
};

template <class Call>
std::string refusal_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing";
}

template <class T>
void expect_scalar(Scalar scalar) {
  const ReduceOperation plus = make_reduce_operation<T>(Plus{}, {.name = "plus"});
  for (std::size_t s = 0; s < scalar_count; ++s) {
    EXPECT_EQ(plus.takes(static_cast<Scalar>(s)), static_cast<Scalar>(s) == scalar);
  }
  EXPECT_EQ(plus.scalars_per_element(), 1);
}

}  // namespace

TEST(OwnOperation, knows_the_scalars_of_arithmetic_types) {
  expect_scalar<std::int8_t>(Scalar::int8);
  expect_scalar<std::uint16_t>(Scalar::uint16);
  expect_scalar<int>(Scalar::int32);
  expect_scalar<long>(Scalar::int64);
  expect_scalar<long long>(Scalar::int64);
  expect_scalar<std::uint64_t>(Scalar::uint64);
  expect_scalar<float>(Scalar::float32);
  expect_scalar<double>(Scalar::float64);
  expect_scalar<std::complex<float>>(Scalar::complex_float32);
  expect_scalar<std::complex<double>>(Scalar::complex_float64);
}

TEST(OwnOperation, has_the_properties_that_it_was_given) {
  const ReduceOperation product = test::matrix_product();
  EXPECT_EQ(product.name(), "matrix product");
  EXPECT_EQ(product.scalars_per_element(), 4);
  EXPECT_EQ(product.element_bytes(Scalar::float64), 32);
  EXPECT_FALSE(product.is_commutative());
  EXPECT_FALSE(product.is_exact(Scalar::float64));
  EXPECT_TRUE(product.has_device_form(DeviceBackend::emulated));
  EXPECT_FALSE(product.has_device_form(DeviceBackend::none));

  const ReduceOperation plus =
      make_reduce_operation<int>(Plus{}, {.name = "plus", .commutative = true, .exact = true});
  EXPECT_TRUE(plus.is_commutative() && plus.is_exact(Scalar::int32));
  EXPECT_FALSE(plus.is_exact(Scalar::int64)) << "which it does not take";
  EXPECT_TRUE(plus.has_device_form(DeviceBackend::emulated));
  EXPECT_FALSE(plus.has_device_form(DeviceBackend::cuda)) << "nvcc has not compiled this source";

  const ReduceOperation copy = plus;  // NOLINT(performance-unnecessary-copy-initialization)
  EXPECT_EQ(copy, plus);
  EXPECT_NE(plus, make_reduce_operation<int>(Plus{}, {.name = "plus"}));
}

TEST(OwnOperation, of_a_host_function_keeps_what_the_function_has) {
  auto calls = std::make_shared<int>(0);
  std::weak_ptr<int> watched = calls;
  {
    const ReduceOperation counted = make_host_reduce_operation<double>(
        [calls](double a, double b) {
          ++*calls;
          return a < b ? b : a;
        },
        {.name = "counted maximum", .commutative = true});
    calls.reset();
    EXPECT_FALSE(counted.has_device_form(DeviceBackend::emulated));
    EXPECT_FALSE(counted.has_device_form(DeviceBackend::cuda));
    const std::array<double, 3> a{1, 5, 2};
    const std::array<double, 3> b{4, 3, 2};
    std::array<double, 3> result{};
    counted.reduce(Scalar::float64, result.data(),
                   std::array<const void*, 3>{a.data(), b.data(), a.data()}, 3);
    EXPECT_EQ(result, (std::array<double, 3>{4, 5, 2}));
    EXPECT_EQ(*watched.lock(), 6);
  }
  EXPECT_TRUE(watched.expired());
}

TEST(OwnOperation, of_large_elements_reduces_on_the_host) {
  struct Large {
    std::array<std::uint32_t, 256> at;
  };
  const ReduceOperation plus = make_host_reduce_operation<Large>(
      [](const Large& a, const Large& b) {
        Large sum{};
        for (std::size_t i = 0; i < sum.at.size(); ++i) sum.at[i] = 2 * a.at[i] + b.at[i];
        return sum;
      },
      {.name = "large", .scalar = Scalar::uint32});
  EXPECT_EQ(plus.scalars_per_element(), 256);
  std::vector<Large> inputs(std::size_t{3} * 5);
  for (std::size_t k = 0; k < 15; ++k) inputs[k].at.fill(static_cast<std::uint32_t>(k));
  std::vector<Large> result(5);
  plus.reduce(Scalar::uint32, result.data(),
              std::array<const void*, 3>{&inputs[0], &inputs[5], &inputs[10]}, 5);
  for (std::uint32_t i = 0; i < 5; ++i) {
    for (const std::uint32_t value : result[i].at) EXPECT_EQ(value, 2 * (2 * i + i + 5) + i + 10);
  }
}

TEST(OwnOperation, refuses_properties_that_make_no_sense) {
  struct Three {
    std::int32_t x, y, z;
  };
  const auto first = [](const Three& a, const Three&) { return a; };
  EXPECT_EQ(
      refusal_of([&] { static_cast<void>(make_reduce_operation<int>(Plus{}, {.name = ""})); }),
      "a reduce operation without a name");
  EXPECT_EQ(
      refusal_of([&] { static_cast<void>(make_reduce_operation<int>(Plus{}, {.name = "sum"})); }),
      "a reduce operation 'sum'; heddle's own one has this name");
  EXPECT_EQ(refusal_of([&] {
              static_cast<void>(make_reduce_operation<int>(Plus{}, {.name = "x", .exact = true}));
            }),
            "reduce operation 'x' is exact, but not commutative");
  EXPECT_EQ(
      refusal_of([&] { static_cast<void>(make_reduce_operation<Three>(first, {.name = "x"})); }),
      "reduce operation 'x': its elements of 12 bytes consist of scalars that only the program "
      "knows; name one in ReduceProperties::scalar");
  EXPECT_EQ(refusal_of([&] {
              static_cast<void>(
                  make_reduce_operation<Three>(first, {.name = "x", .scalar = Scalar::float64}));
            }),
            "reduce operation 'x': an element of 12 bytes is no whole number of float64");
}

}  // namespace heddle
