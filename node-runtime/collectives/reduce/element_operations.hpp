#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

/// What the reductions of collectives do with two elements. Files that include this are compiled
/// without fused multiply-add, so that the bits are the same on every processor.
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
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
    } else {
      return a + b;
    }
  }
  template <class Real>
  Complex<Real> operator()(Complex<Real> a, Complex<Real> b) const {
    return {a.real + b.real, a.imaginary + b.imaginary};
  }
};

struct Product {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
    } else {
      return a * b;
    }
  }
  template <class Real>
  Complex<Real> operator()(Complex<Real> a, Complex<Real> b) const {
    return {a.real * b.real - a.imaginary * b.imaginary,
            a.real * b.imaginary + a.imaginary * b.real};
  }
};

/// NaN wins, and -0 is below +0.
struct Maximum {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      return a < b ? b : a;
    } else {
      if (a != a) return a;
      if (b != b) return b;
      if (a == b) return std::signbit(a) ? b : a;
      return a < b ? b : a;
    }
  }
};

struct Minimum {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      return b < a ? b : a;
    } else {
      if (a != a) return a;
      if (b != b) return b;
      if (a == b) return std::signbit(a) ? a : b;
      return b < a ? b : a;
    }
  }
};

struct BitAnd {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a & b);
  }
};
struct BitOr {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a | b);
  }
};
struct BitXor {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a ^ b);
  }
};

struct LogicalAnd {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a != 0 && b != 0);
  }
};
struct LogicalOr {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a != 0 || b != 0);
  }
};
struct LogicalXor {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>((a != 0) != (b != 0));
  }
};

}  // namespace heddle::reduction
