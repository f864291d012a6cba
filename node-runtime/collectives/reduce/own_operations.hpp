#pragma once

#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "node-runtime/collectives/reduce/definition.hpp"
#include "node-runtime/collectives/reduce/host_device.hpp"
#include "node-runtime/collectives/reduce/pair_loop.hpp"
#include "node-runtime/collectives/reduce/reduce_operation.hpp"
#include "node-runtime/transport/datatype/scalar.hpp"
#ifdef __CUDACC__
#include "node-runtime/collectives/reduce/cuda_form.hpp"
#endif

/// Reduce operations of a program's own. A functor takes two elements and returns the third:
///
///   struct Affine { double factor, addend; };
///   struct Then {
///     HEDDLE_HOST_DEVICE Affine operator()(const Affine& f, const Affine& g) const {
///       return {g.factor * f.factor, g.factor * f.addend + g.addend};
///     }
///   };
///   const ReduceOperation then = make_reduce_operation<Affine>(
///       Then{}, {.name = "then", .scalar = Scalar::float64});
///   group.scan({maps, 2 * n, Scalar::float64}, then);
namespace heddle {

struct ReduceProperties {
  /// In messages; the same on all ranks, and no operation of heddle's. Calls whose names or
  /// elements differ are found; functors that differ behind one name are not.
  std::string name;
  bool commutative = false;  ///< a op b is b op a. Not needed for Order::ranks.
  /// Every order and bracket gives the same bits, as of integers; only with `commutative`.
  bool exact = false;
  /// What an element consists of: that of arithmetic types and complex numbers is known, others
  /// name it. Elements of different scalars are reduced as bytes: Scalar::byte.
  std::optional<Scalar> scalar{};
};

namespace reduction {

template <class T>
constexpr std::optional<Scalar> scalar_of_type() {
  if (std::same_as<T, std::complex<float>>) return Scalar::complex_float32;
  if (std::same_as<T, std::complex<double>>) return Scalar::complex_float64;
  if (std::same_as<T, std::byte>) return Scalar::byte;
  if (std::same_as<T, float>) return Scalar::float32;
  if (std::same_as<T, double>) return Scalar::float64;
  if (!std::is_integral_v<T> || std::same_as<T, bool>) return std::nullopt;
  switch (sizeof(T)) {
    case 1:
      return std::is_signed_v<T> ? Scalar::int8 : Scalar::uint8;
    case 2:
      return std::is_signed_v<T> ? Scalar::int16 : Scalar::uint16;
    case 4:
      return std::is_signed_v<T> ? Scalar::int32 : Scalar::uint32;
    case 8:
      return std::is_signed_v<T> ? Scalar::int64 : Scalar::uint64;
    default:
      return std::nullopt;
  }
}

/// Without loops. Throws Error(usage) for properties that make no sense.
[[nodiscard]] Definition define(const ReduceProperties& properties, std::optional<Scalar> known,
                                std::size_t element_bytes, const ScalarForm& form);

template <class T, class Functor>
void own_loop(const void* functor, void* output, const void* a, const void* b, std::int64_t count) {
  loop_over_pairs<T>(*static_cast<const Functor*>(functor), output, a, b, count);
}

// One functor may be in sources of both compilers: each has functions of its own.
struct ByHostCompiler {
  template <class T, class Functor>
  static CudaForm cuda_form() {
    return nullptr;
  }
};
#ifdef __CUDACC__
struct ByNvcc {
  template <class T, class Functor>
  static CudaForm cuda_form() {
    return launch_reduction<T, Functor>;
  }
};
using ThisCompiler = ByNvcc;
#else
using ThisCompiler = ByHostCompiler;
#endif

template <class T>
inline constexpr bool is_element =
    std::is_trivially_copyable_v<T>&& std::is_default_constructible_v<T>;

}  // namespace reduction

/// An operation on elements T from a functor T(const T&, const T&), which must be associative (up
/// to rounding) and need not be commutative. The host and emulated devices run it; GPUs, too, in a
/// source that nvcc compiles, with operator() a HEDDLE_HOST_DEVICE function. Without -fmad=false a
/// GPU's bits may differ from the host's.
///
/// T: trivially copyable, at most 128 bytes, consecutive in memory, at any alignment. The functor
/// is copied bit by bit: trivially copyable, at most 64 bytes, no pointers to what ends before the
/// operation. An element that spans several scalars (T = two doubles) is never cut; counts of calls
/// are then multiples. Throws Error(usage) for an empty name, for heddle's own names, for a type
/// whose scalar is not known, and for one that is no whole number of scalars.
template <class T, class Functor, class Compiler = reduction::ThisCompiler>
[[nodiscard]] ReduceOperation make_reduce_operation(const Functor& functor,
                                                    const ReduceProperties& properties) {
  static_assert(reduction::is_element<T>, "elements are copied bit by bit");
  static_assert(sizeof(T) <= reduction::device_element_bytes_max,
                "larger elements are for make_host_reduce_operation");
  static_assert(reduction::FunctorBytes::fits<Functor>,
                "such functors are for make_host_reduce_operation");
  static_assert(std::is_invocable_r_v<T, const Functor&, const T&, const T&>);
  auto made = std::make_shared<reduction::Definition>(
      reduction::define(properties, reduction::scalar_of_type<T>(), sizeof(T),
                        {reduction::own_loop<T, Functor>,
                         Compiler::template cuda_form<T, Functor>(), properties.exact}));
  made->functor = reduction::FunctorBytes::of(functor);
  return ReduceOperation(std::move(made));
}

/// As make_reduce_operation, of any callable, of elements of up to 1024 bytes, and only on the
/// host: elements of devices are brought there. It may be called by several threads at a time.
template <class T, class Function>
[[nodiscard]] ReduceOperation make_host_reduce_operation(Function function,
                                                         const ReduceProperties& properties) {
  static_assert(reduction::is_element<T>, "elements are copied bit by bit");
  static_assert(sizeof(T) <= reduction::element_bytes_max);
  static_assert(std::is_invocable_r_v<T, const Function&, const T&, const T&>);
  auto made = std::make_shared<reduction::Definition>(
      reduction::define(properties, reduction::scalar_of_type<T>(), sizeof(T),
                        {reduction::own_loop<T, Function>, nullptr, properties.exact}));
  made->is_for_devices = false;
  made->host_functor = std::make_shared<const Function>(std::move(function));
  return ReduceOperation(std::move(made));
}

}  // namespace heddle
