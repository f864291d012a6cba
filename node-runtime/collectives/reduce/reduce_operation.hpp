#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "node-runtime/transport/datatype/scalar.hpp"

namespace heddle {

enum class DeviceBackend : std::uint8_t;  // node-runtime/device/device.hpp
namespace reduction {
struct Definition;
}

/// What the elements of a reduction are put together with. All of them are associative up to
/// rounding; the order of a collective's reductions says in which bracket (collectives/schedule).
/// Programs make their own ones: own_operations.hpp.
///
/// - sum, product: of integers, which wrap around, and of real and complex numbers.
/// - minimum, maximum: of integers and real numbers. A NaN wins over any number; -0 is below +0.
/// - minimum_with_index, maximum_with_index: of integers and real numbers. An element is two
///   scalars: a value and its index. Values are compared as by minimum and maximum; among equal
///   ones, and among NaNs, the lower index wins.
/// - bit_and, bit_or, bit_xor: of integers and bytes.
/// - logical_and, logical_or, logical_xor: of integers; not 0 is true, and the result is 0 or 1.
///
/// A handle: copies are the same operation. Thread: any.
class ReduceOperation {
 public:
  [[nodiscard]] static ReduceOperation sum();
  [[nodiscard]] static ReduceOperation product();
  [[nodiscard]] static ReduceOperation minimum();
  [[nodiscard]] static ReduceOperation maximum();
  [[nodiscard]] static ReduceOperation minimum_with_index();
  [[nodiscard]] static ReduceOperation maximum_with_index();
  [[nodiscard]] static ReduceOperation bit_and();
  [[nodiscard]] static ReduceOperation bit_or();
  [[nodiscard]] static ReduceOperation bit_xor();
  [[nodiscard]] static ReduceOperation logical_and();
  [[nodiscard]] static ReduceOperation logical_or();
  [[nodiscard]] static ReduceOperation logical_xor();

  explicit ReduceOperation(std::shared_ptr<const reduction::Definition> definition)
      : definition_(std::move(definition)) {}

  /// As long as the operation.
  [[nodiscard]] std::string_view name() const;
  /// Whether it has a meaning for elements of this type.
  [[nodiscard]] bool takes(Scalar scalar) const;
  /// Whether every order and bracket gives the same bits, payloads of NaNs aside.
  [[nodiscard]] bool is_exact(Scalar scalar) const;
  /// Whether a op b is b op a.
  [[nodiscard]] bool is_commutative() const;
  /// Consecutive scalars that are one element, which is reduced as a whole: 2 with an index.
  [[nodiscard]] std::int32_t scalars_per_element() const;
  [[nodiscard]] std::int64_t element_bytes(Scalar scalar) const;
  /// Whether devices of this backend reduce by it themselves. False of functions that only the host
  /// can run, and on GPUs of functors that nvcc has not compiled.
  [[nodiscard]] bool has_device_form(DeviceBackend backend) const;

  /// Inputs of one call of reduce(), at most.
  static constexpr std::size_t inputs_max = 16;

  /// output[i] := the value of inputs[0][i], inputs[1][i], ... in the Bracket over their number,
  /// for i below `count`, in elements. The output may be one of the inputs, but overlap none
  /// otherwise. Throws Error(usage) for a scalar that it does not take, and for no input or more
  /// than inputs_max.
  void reduce(Scalar scalar, void* output, std::span<const void* const> inputs,
              std::int64_t count) const;

  [[nodiscard]] const reduction::Definition& definition() const { return *definition_; }

  friend bool operator==(const ReduceOperation&, const ReduceOperation&) = default;

 private:
  std::shared_ptr<const reduction::Definition> definition_;
};

}  // namespace heddle
