#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <span>
#include <type_traits>
#include <vector>

#include "node-runtime/collectives/reduce/reduce_operation.hpp"
#include "node-runtime/collectives/reduce/rows.hpp"

/// Every operation on every scalar, with what it must give, said in another way than heddle's.
namespace heddle::test {

/// A pair as a program sees it.
template <class T>
struct Pair {
  T value;
  T index;
};

/// An operation on elements of one type, by bytes.
struct ReduceCase {
  ReduceOperation operation;
  Scalar scalar = Scalar::byte;
  std::size_t bytes = 0;  ///< of an element
  /// to := a op b.
  std::function<void(const std::byte* a, const std::byte* b, std::byte* to)> two;
  std::function<void(std::mt19937_64& random, std::byte* to)> draw;
  /// Equal bits, but for NaNs, whose payloads are open.
  std::function<bool(const std::byte* a, const std::byte* b)> same;
};

template <class T>
bool same_value(const T& a, const T& b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) && std::isnan(b)) return true;
  }
  return std::memcmp(&a, &b, sizeof(T)) == 0;  // NOLINT(bugprone-*): bits are wanted
}
template <class Real>
bool same_value(const std::complex<Real>& a, const std::complex<Real>& b) {
  return same_value(a.real(), b.real()) && same_value(a.imag(), b.imag());
}
template <class T>
bool same_value(const Pair<T>& a, const Pair<T>& b) {
  return same_value(a.value, b.value) && same_value(a.index, b.index);
}

/// Numbers of all sizes with zeros of both signs, subnormal ones, infinities and NaNs among them.
template <class T>
T draw_scalar(std::mt19937_64& random) {
  if constexpr (std::is_integral_v<T>) {
    return random() % 4 == 0 ? T{0} : static_cast<T>(random());
  } else {
    using Limits = std::numeric_limits<T>;
    switch (random() % 32) {
      case 0:
        return T{0};
      case 1:
        return -T{0};
      case 2:
        return Limits::denorm_min() * static_cast<T>(random() % 100);
      case 3:
        return -Limits::min() / 2;
      case 4:
        return Limits::infinity();
      case 5:
        return -Limits::infinity();
      case 6:
        return Limits::quiet_NaN();
      default:
        return std::uniform_real_distribution<T>(-2, 2)(random);
    }
  }
}

template <class T>
T draw_value(std::mt19937_64& random, const T* /*type*/) {
  return draw_scalar<T>(random);
}
template <class Real>
std::complex<Real> draw_value(std::mt19937_64& random, const std::complex<Real>* /*type*/) {
  const Real real = draw_scalar<Real>(random);
  return {real, draw_scalar<Real>(random)};
}
/// Many values and indices are equal.
template <class T>
Pair<T> draw_value(std::mt19937_64& random, const Pair<T>* /*type*/) {
  T value = static_cast<T>(random() % 3);
  if (random() % 4 == 0) value = draw_scalar<T>(random);
  return {value, static_cast<T>(random() % 5)};
}

/// With the functions of T for draw and same.
template <class T, class Two>
ReduceCase case_of(const ReduceOperation& operation, Scalar scalar, const Two& two) {
  const auto read = [](const std::byte* from) {
    T value{};
    std::memcpy(&value, from, sizeof(T));
    return value;
  };
  return {operation,
          scalar,
          sizeof(T),
          [two, read](const std::byte* a, const std::byte* b, std::byte* to) {
            const T result = two(read(a), read(b));
            std::memcpy(to, &result, sizeof(T));
          },
          [](std::mt19937_64& random, std::byte* to) {
            const T value = draw_value(random, static_cast<const T*>(nullptr));
            std::memcpy(to, &value, sizeof(T));
          },
          [read](const std::byte* a, const std::byte* b) { return same_value(read(a), read(b)); }};
}

/// Rounded before it is used: never part of a fused multiply-add.
template <class Real>
Real rounded_product(Real a, Real b) {
  const volatile Real product = a * b;
  return product;
}

/// Whether pair a is chosen of two: by a key of its value, then by its index, of which NaN is the
/// last.
template <class T>
bool is_chosen(const Pair<T>& a, const Pair<T>& b, bool wants_larger) {
  // NaN first; then numbers, the wanted end first, with -0 below +0.
  const auto key = [&](T value) {
    using Wide =
        std::conditional_t<std::is_floating_point_v<T>, long double,
                           std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>;
    bool is_nan = false;
    bool is_negative = false;
    if constexpr (std::is_floating_point_v<T>) {
      is_nan = std::isnan(value);
      is_negative = std::signbit(value);
    }
    struct Key {
      bool is_nan;
      Wide value;
      bool is_negative;
    };
    return Key{is_nan, is_nan ? Wide{0} : static_cast<Wide>(value), is_negative};
  };
  const auto is_less = [](const auto& x, const auto& y) {
    if (x.is_nan || y.is_nan) return !x.is_nan && y.is_nan;  // NaN last
    if (x.value != y.value) return x.value < y.value;
    return x.is_negative && !y.is_negative;
  };
  const auto value_a = key(a.value);
  const auto value_b = key(b.value);
  if (value_a.is_nan != value_b.is_nan) return value_a.is_nan;
  if (is_less(value_a, value_b)) return !wants_larger;
  if (is_less(value_b, value_a)) return wants_larger;
  return !is_less(key(b.index), key(a.index));
}

template <class T>
void add_cases_with_index(std::vector<ReduceCase>& all, Scalar scalar) {
  all.push_back(case_of<Pair<T>>(
      ReduceOperation::minimum_with_index(), scalar,
      [](const Pair<T>& a, const Pair<T>& b) { return is_chosen(a, b, false) ? a : b; }));
  all.push_back(case_of<Pair<T>>(
      ReduceOperation::maximum_with_index(), scalar,
      [](const Pair<T>& a, const Pair<T>& b) { return is_chosen(a, b, true) ? a : b; }));
}

template <class T>
void add_bitwise(std::vector<ReduceCase>& all, Scalar scalar) {
  const auto add = [&](const ReduceOperation& operation, auto two) {
    all.push_back(case_of<T>(operation, scalar, two));
  };
  add(ReduceOperation::bit_and(), [](T a, T b) { return static_cast<T>(a & b); });
  add(ReduceOperation::bit_or(), [](T a, T b) { return static_cast<T>(a | b); });
  add(ReduceOperation::bit_xor(), [](T a, T b) { return static_cast<T>(a ^ b); });
}

template <class T>
void add_integers(std::vector<ReduceCase>& all, Scalar scalar) {
  using Wide = std::uint64_t;
  const auto add = [&](const ReduceOperation& operation, auto two) {
    all.push_back(case_of<T>(operation, scalar, two));
  };
  add(ReduceOperation::sum(),
      [](T a, T b) { return static_cast<T>(static_cast<Wide>(a) + static_cast<Wide>(b)); });
  add(ReduceOperation::product(),
      [](T a, T b) { return static_cast<T>(static_cast<Wide>(a) * static_cast<Wide>(b)); });
  add(ReduceOperation::minimum(), [](T a, T b) { return std::min(a, b); });
  add(ReduceOperation::maximum(), [](T a, T b) { return std::max(a, b); });
  add(ReduceOperation::logical_and(),
      [](T a, T b) { return static_cast<T>(static_cast<bool>(a) && static_cast<bool>(b)); });
  add(ReduceOperation::logical_or(),
      [](T a, T b) { return static_cast<T>(static_cast<bool>(a) || static_cast<bool>(b)); });
  add(ReduceOperation::logical_xor(),
      [](T a, T b) { return static_cast<T>(static_cast<bool>(a) != static_cast<bool>(b)); });
  add_bitwise<T>(all, scalar);
  add_cases_with_index<T>(all, scalar);
}

template <class T>
void add_reals(std::vector<ReduceCase>& all, Scalar scalar) {
  const auto add = [&](const ReduceOperation& operation, auto two) {
    all.push_back(case_of<T>(operation, scalar, two));
  };
  add(ReduceOperation::sum(), [](T a, T b) { return a + b; });
  add(ReduceOperation::product(), [](T a, T b) { return a * b; });
  // fmin and fmax leave it open which zero they choose, and let numbers win over NaN.
  add(ReduceOperation::minimum(), [](T a, T b) {
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
    return a != b ? std::fmin(a, b) : std::signbit(b) ? b : a;
  });
  add(ReduceOperation::maximum(), [](T a, T b) {
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
    return a != b ? std::fmax(a, b) : std::signbit(a) ? b : a;
  });
  add_cases_with_index<T>(all, scalar);
}

template <class Real>
void add_complex(std::vector<ReduceCase>& all, Scalar scalar) {
  using T = std::complex<Real>;
  all.push_back(case_of<T>(ReduceOperation::sum(), scalar, [](const T& a, const T& b) {
    return T(a.real() + b.real(), a.imag() + b.imag());
  }));
  all.push_back(case_of<T>(ReduceOperation::product(), scalar, [](const T& a, const T& b) {
    return T(rounded_product(a.real(), b.real()) - rounded_product(a.imag(), b.imag()),
             rounded_product(a.real(), b.imag()) + rounded_product(a.imag(), b.real()));
  }));
}

/// All that heddle's own operations take.
inline std::vector<ReduceCase> built_in_cases() {
  std::vector<ReduceCase> all;
  add_bitwise<std::uint8_t>(all, Scalar::byte);
  add_integers<std::int8_t>(all, Scalar::int8);
  add_integers<std::int16_t>(all, Scalar::int16);
  add_integers<std::int32_t>(all, Scalar::int32);
  add_integers<std::int64_t>(all, Scalar::int64);
  add_integers<std::uint8_t>(all, Scalar::uint8);
  add_integers<std::uint16_t>(all, Scalar::uint16);
  add_integers<std::uint32_t>(all, Scalar::uint32);
  add_integers<std::uint64_t>(all, Scalar::uint64);
  add_reals<float>(all, Scalar::float32);
  add_reals<double>(all, Scalar::float64);
  add_complex<float>(all, Scalar::complex_float32);
  add_complex<double>(all, Scalar::complex_float64);
  return all;
}

/// The value of inputs [begin, end) at an element, in the bracket by its definition.
inline std::vector<std::byte> bracketed(const ReduceCase& what,
                                        std::span<const std::byte* const> inputs) {
  if (inputs.size() == 1) return {inputs[0], inputs[0] + what.bytes};
  std::size_t left = 1;
  while (2 * left < inputs.size()) left *= 2;
  const std::vector<std::byte> a = bracketed(what, inputs.first(left));
  const std::vector<std::byte> b = bracketed(what, inputs.subspan(left));
  std::vector<std::byte> result(what.bytes);
  what.two(a.data(), b.data(), result.data());
  return result;
}

/// Where a byte of the taken elements lies, row by row.
inline std::size_t walked_place(const reduction::Arrangement& side, std::size_t byte) {
  std::int64_t left = side.first + static_cast<std::int64_t>(byte);
  if (side.rows.bytes == 0) return static_cast<std::size_t>(left);
  std::int64_t row = 0;
  for (std::int64_t length = side.rows.bytes; left >= length; length += side.rows.step) {
    left -= length;
    ++row;
  }
  return static_cast<std::size_t>(row * side.rows.stride + left);
}

/// All elements in a row, rows of one length, or rows that grow or shrink, with gaps.
inline reduction::Arrangement drawn_arrangement(std::mt19937_64& random, std::int64_t element_bytes,
                                                std::int64_t count) {
  const auto below = [&](std::uint64_t end) { return static_cast<std::int64_t>(random() % end); };
  reduction::Arrangement side;
  const std::int64_t kind = below(4);
  const std::int64_t first = below(6);
  if (kind == 0) {
    side.first = first * element_bytes;
    return side;
  }
  const std::int64_t step = kind == 1 ? 0 : 1 + below(2);
  std::int64_t shortest = 1 + below(kind == 1 ? 20 : 3);
  std::int64_t longest = shortest;
  for (std::int64_t have = longest; step > 0 && have < first + count; have += longest) {
    longest += step;
  }
  // Shrinking rows end with the shortest one.
  side.rows.bytes = (kind == 3 ? longest : shortest) * element_bytes;
  side.rows.step = (kind == 3 ? -step : step) * element_bytes;
  const std::int64_t gaps[] = {0, 1, 8, 16, 32};  // NOLINT(*-avoid-c-arrays)
  side.rows.stride = longest * element_bytes + gaps[below(5)];
  side.first = first * element_bytes;
  return side;
}

}  // namespace heddle::test
