#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "node-runtime/collectives/reduce/host_device.hpp"

/// What the reductions of collectives do with two elements, on hosts and GPUs. Files that include
/// this are compiled without fused multiply-add, so that the bits are the same on every processor.
namespace heddle::reduction {

template <class Real>
struct Complex {
  Real real;
  Real imaginary;
};

/// Integers wrap around as unsigned ones do, not narrower than an int, to which they would grow.
template <class T>
using Wrapping =
    std::conditional_t<sizeof(T) < sizeof(unsigned), unsigned, std::make_unsigned_t<T>>;

struct Sum {
  template <class T>
  HEDDLE_HOST_DEVICE T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
    } else {
      return a + b;
    }
  }
  template <class Real>
  HEDDLE_HOST_DEVICE Complex<Real> operator()(Complex<Real> a, Complex<Real> b) const {
    return {a.real + b.real, a.imaginary + b.imaginary};
  }
};

struct Product {
  template <class T>
  HEDDLE_HOST_DEVICE T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
    } else {
      return a * b;
    }
  }
  template <class Real>
  HEDDLE_HOST_DEVICE Complex<Real> operator()(Complex<Real> a, Complex<Real> b) const {
    return {a.real * b.real - a.imaginary * b.imaginary,
            a.real * b.imaginary + a.imaginary * b.real};
  }
};

/// A value and where it comes from, both of the same scalar.
template <class T>
struct Indexed {
  T value;
  T index;
};

template <class T>
HEDDLE_HOST_DEVICE bool is_nan(T a) {
  return a != a;  // NOLINT(misc-redundant-expression)
}

template <class Real>
using BitsOf = std::conditional_t<sizeof(Real) == 4, std::uint32_t, std::uint64_t>;

template <class Real>
HEDDLE_HOST_DEVICE BitsOf<Real> bits_of(Real real) {
  BitsOf<Real> bits;
  std::memcpy(&bits, &real, sizeof(Real));
  return bits;
}
template <class Real>
HEDDLE_HOST_DEVICE Real real_of(BitsOf<Real> bits) {
  Real real;
  std::memcpy(&real, &bits, sizeof(Real));
  return real;
}

/// The order of all values: -0 comes before +0, and NaN after all numbers.
template <class T>
HEDDLE_HOST_DEVICE bool comes_before(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return a < b;
  } else {
    if (is_nan(a) || is_nan(b)) return !is_nan(a) && is_nan(b);
    if (a == b) return std::signbit(a) && !std::signbit(b);
    return a < b;
  }
}

/// NaN wins, and -0 is below +0. Equal values have equal bits, but for the zeros: of these `and`
/// makes the upper one and `or` the lower one. Choices without jumps are vectorised.
struct Maximum {
  template <class T>
  HEDDLE_HOST_DEVICE T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      return a < b ? b : a;
    } else {
      BitsOf<T> chosen = a < b ? bits_of(b) : bits_of(a);
      chosen = a == b ? bits_of(a) & bits_of(b) : chosen;
      chosen = is_nan(b) ? bits_of(b) : chosen;
      return real_of<T>(is_nan(a) ? bits_of(a) : chosen);
    }
  }
};

struct Minimum {
  template <class T>
  HEDDLE_HOST_DEVICE T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      return b < a ? b : a;
    } else {
      BitsOf<T> chosen = b < a ? bits_of(b) : bits_of(a);
      chosen = a == b ? bits_of(a) | bits_of(b) : chosen;
      chosen = is_nan(b) ? bits_of(b) : chosen;
      return real_of<T>(is_nan(a) ? bits_of(a) : chosen);
    }
  }
};

/// The larger value wins, a NaN over all numbers; among equal values the lower index. As this is
/// one order of all pairs, of any number of pairs the same one wins in any order.
struct MaximumWithIndex {
  template <class T>
  HEDDLE_HOST_DEVICE Indexed<T> operator()(Indexed<T> a, Indexed<T> b) const {
    if (comes_before(b.value, a.value)) return a;
    if (comes_before(a.value, b.value)) return b;
    return comes_before(b.index, a.index) ? b : a;
  }
};

struct MinimumWithIndex {
  template <class T>
  HEDDLE_HOST_DEVICE Indexed<T> operator()(Indexed<T> a, Indexed<T> b) const {
    const bool is_a_nan = is_nan(a.value);
    const bool is_b_nan = is_nan(b.value);
    if (is_a_nan != is_b_nan) return is_a_nan ? a : b;
    if (comes_before(a.value, b.value)) return a;
    if (comes_before(b.value, a.value)) return b;
    return comes_before(b.index, a.index) ? b : a;
  }
};

struct BitAnd {
  template <class T>
  HEDDLE_HOST_DEVICE T operator()(T a, T b) const {
    return static_cast<T>(a & b);
  }
};
struct BitOr {
  template <class T>
  HEDDLE_HOST_DEVICE T operator()(T a, T b) const {
    return static_cast<T>(a | b);
  }
};
struct BitXor {
  template <class T>
  HEDDLE_HOST_DEVICE T operator()(T a, T b) const {
    return static_cast<T>(a ^ b);
  }
};

struct LogicalAnd {
  template <class T>
  HEDDLE_HOST_DEVICE T operator()(T a, T b) const {
    return static_cast<T>(a != 0 && b != 0);
  }
};
struct LogicalOr {
  template <class T>
  HEDDLE_HOST_DEVICE T operator()(T a, T b) const {
    return static_cast<T>(a != 0 || b != 0);
  }
};
struct LogicalXor {
  template <class T>
  HEDDLE_HOST_DEVICE T operator()(T a, T b) const {
    return static_cast<T>((a != 0) != (b != 0));
  }
};

}  // namespace heddle::reduction
