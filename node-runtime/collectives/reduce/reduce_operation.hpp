#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "node-runtime/transport/datatype/scalar.hpp"

namespace heddle {

/// What the elements of a reduction are put together with. All of them are associative up to
/// rounding; the order of a collective's reductions says in which bracket (collectives/schedule).
///
/// - sum, product: of integers, which wrap around, and of real and complex numbers.
/// - minimum, maximum: of integers and real numbers. A NaN wins over any number; -0 is below +0.
/// - bit_and, bit_or, bit_xor: of integers and bytes.
/// - logical_and, logical_or, logical_xor: of integers; not 0 is true, and the result is 0 or 1.
class ReduceOperation {
 public:
  [[nodiscard]] static ReduceOperation sum() { return ReduceOperation(Kind::sum); }
  [[nodiscard]] static ReduceOperation product() { return ReduceOperation(Kind::product); }
  [[nodiscard]] static ReduceOperation minimum() { return ReduceOperation(Kind::minimum); }
  [[nodiscard]] static ReduceOperation maximum() { return ReduceOperation(Kind::maximum); }
  [[nodiscard]] static ReduceOperation bit_and() { return ReduceOperation(Kind::bit_and); }
  [[nodiscard]] static ReduceOperation bit_or() { return ReduceOperation(Kind::bit_or); }
  [[nodiscard]] static ReduceOperation bit_xor() { return ReduceOperation(Kind::bit_xor); }
  [[nodiscard]] static ReduceOperation logical_and() { return ReduceOperation(Kind::logical_and); }
  [[nodiscard]] static ReduceOperation logical_or() { return ReduceOperation(Kind::logical_or); }
  [[nodiscard]] static ReduceOperation logical_xor() { return ReduceOperation(Kind::logical_xor); }

  [[nodiscard]] std::string_view name() const;
  /// Whether it has a meaning for elements of this type.
  [[nodiscard]] bool takes(Scalar scalar) const;
  /// Whether every order and bracket gives the same bits.
  [[nodiscard]] bool is_exact(Scalar scalar) const;

  /// Inputs of one call of reduce(), at most.
  static constexpr std::size_t inputs_max = 16;

  /// output[i] := the value of inputs[0][i], inputs[1][i], ... in the Bracket over their number,
  /// for i below `count`. The output may be one of the inputs, but overlap none otherwise; all are
  /// aligned for the scalar. Throws Error(usage) for a scalar that it does not take, and for no
  /// input or more than inputs_max. Any thread.
  void reduce(Scalar scalar, void* output, std::span<const void* const> inputs,
              std::int64_t count) const;

  friend bool operator==(const ReduceOperation&, const ReduceOperation&) = default;

 private:
  enum class Kind : std::uint8_t {
    sum,
    product,
    minimum,
    maximum,
    bit_and,
    bit_or,
    bit_xor,
    logical_and,
    logical_or,
    logical_xor
  };
  using Loop = void (*)(void* output, const void* a, const void* b, std::int64_t count);
  explicit ReduceOperation(Kind kind) : kind_(kind) {}
  [[nodiscard]] Loop loop(Scalar scalar) const;  ///< null: it does not take it

  Kind kind_;
};

}  // namespace heddle
