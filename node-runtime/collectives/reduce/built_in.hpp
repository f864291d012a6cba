#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

#include "node-runtime/collectives/reduce/definition.hpp"
#include "node-runtime/collectives/reduce/element_operations.hpp"
#include "node-runtime/transport/datatype/scalar.hpp"

/// The operations that heddle has: for which elements they mean something, and their kernels.
namespace heddle::reduction {

enum class BuiltIn : std::uint8_t {
  sum,
  product,
  minimum,
  maximum,
  minimum_with_index,
  maximum_with_index,
  bit_and,
  bit_or,
  bit_xor,
  logical_and,
  logical_or,
  logical_xor
};
inline constexpr std::size_t built_in_count = 12;

/// Lives as long as the program.
[[nodiscard]] const Definition& built_in(BuiltIn operation);
/// The kernel for GPUs; null in a build without CUDA, and where there is none.
[[nodiscard]] CudaForm built_in_cuda_form(BuiltIn operation, Scalar scalar);

template <class Operation>
inline constexpr bool is_arithmetic =
    std::same_as<Operation, Sum> || std::same_as<Operation, Product>;
template <class Operation>
inline constexpr bool is_extremum =
    std::same_as<Operation, Minimum> || std::same_as<Operation, Maximum>;
template <class Operation>
inline constexpr bool is_with_index =
    std::same_as<Operation, MinimumWithIndex> || std::same_as<Operation, MaximumWithIndex>;
template <class Operation>
inline constexpr bool is_bitwise =
    std::same_as<Operation, BitAnd> || std::same_as<Operation, BitOr> ||
    std::same_as<Operation, BitXor>;

template <class T>
struct ElementType {
  using type = T;  // NOLINT(readability-identifier-naming)
};

/// Calls with the ElementType of an operation on a scalar; not where it has no meaning for that.
template <class Operation, class Call>
void with_element(Scalar scalar, const Call& call) {
  const auto of_integer = [&]<class T>(ElementType<T>) {
    // With the same bits for all signs: half as many kernels.
    if constexpr (is_with_index<Operation>) {
      call(ElementType<Indexed<T>>{});
    } else if constexpr (is_extremum<Operation>) {
      call(ElementType<T>{});
    } else {
      call(ElementType<std::make_unsigned_t<T>>{});
    }
  };
  const auto of_real = [&]<class T>(ElementType<T>) {
    if constexpr (is_with_index<Operation>) call(ElementType<Indexed<T>>{});
    if constexpr (is_extremum<Operation> || is_arithmetic<Operation>) call(ElementType<T>{});
  };
  const auto of_complex = [&]<class Real>(ElementType<Real>) {
    if constexpr (is_arithmetic<Operation>) call(ElementType<Complex<Real>>{});
  };
  switch (scalar) {
    case Scalar::byte:
      if constexpr (is_bitwise<Operation>) call(ElementType<std::uint8_t>{});
      return;
    case Scalar::int8:
      return of_integer(ElementType<std::int8_t>{});
    case Scalar::int16:
      return of_integer(ElementType<std::int16_t>{});
    case Scalar::int32:
      return of_integer(ElementType<std::int32_t>{});
    case Scalar::int64:
      return of_integer(ElementType<std::int64_t>{});
    case Scalar::uint8:
      return of_integer(ElementType<std::uint8_t>{});
    case Scalar::uint16:
      return of_integer(ElementType<std::uint16_t>{});
    case Scalar::uint32:
      return of_integer(ElementType<std::uint32_t>{});
    case Scalar::uint64:
      return of_integer(ElementType<std::uint64_t>{});
    case Scalar::float32:
      return of_real(ElementType<float>{});
    case Scalar::float64:
      return of_real(ElementType<double>{});
    case Scalar::complex_float32:
      return of_complex(ElementType<float>{});
    case Scalar::complex_float64:
      return of_complex(ElementType<double>{});
  }
}

}  // namespace heddle::reduction
