#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fmt/core.h>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "node-runtime/collectives/options.hpp"

namespace heddle::testing {

/// A type of scalars, with where each of them is, written down apart from it.
struct CellShape {
  Datatype type = Scalar::float64;
  std::vector<std::int64_t> places{0};  ///< of its scalars, in their order, in scalars
  std::int64_t extent = 1;              ///< in scalars
};

/// All shapes have a number of scalars that divides this.
inline constexpr std::int64_t cells_unit = 60;

inline CellShape cell_shape(Scalar scalar, std::uint64_t number) {
  constexpr auto lower = Datatype::TriangleShape::Part::lower;
  const std::int64_t bytes = size_of(scalar);
  switch (number % 5) {
    case 0:
      return {scalar, {0}, 1};
    case 1:
      return {Datatype::vector(3, 2, 4, scalar), {0, 1, 4, 5, 8, 9}, 10};
    case 2:
      return {Datatype::triangle({.part = lower, .rows = 4, .columns = 4, .leading = 6}, scalar),
              {0, 1, 2, 3, 7, 8, 9, 14, 15, 21},
              22};
    case 3:
      // Backwards.
      return {Datatype::hvector(4, 1, -bytes, scalar), {0, -1, -2, -3}, 4};
    default:
      return {Datatype::resized(scalar, 0, 3 * bytes), {0}, 3};
  }
}

template <class T>
struct ScalarOf;
template <>
struct ScalarOf<double> {
  static constexpr Scalar value = Scalar::float64;
};
template <>
struct ScalarOf<float> {
  static constexpr Scalar value = Scalar::float32;
};
template <>
struct ScalarOf<std::int32_t> {
  static constexpr Scalar value = Scalar::int32;
};
template <>
struct ScalarOf<std::uint8_t> {
  static constexpr Scalar value = Scalar::uint8;
};

/// Memory with some elements of a shape, and sentinels wherever none of its scalars is.
template <class T>
class Cells {
 public:
  /// Gives memory of a device, which outlives the cells; null: they have memory of the host.
  using Allocate = std::function<std::byte*(std::size_t bytes)>;

  /// `cells`: scalars of all elements, a multiple of cells_unit.
  Cells(std::uint64_t shape, std::int64_t cells, const Allocate& allocate = nullptr)
      : shape_(cell_shape(ScalarOf<T>::value, shape)),
        per_element_(static_cast<std::int64_t>(shape_.places.size())),
        cells_(cells) {
    const std::size_t count =
        static_cast<std::size_t>(cells / per_element_ * shape_.extent) + 2 * margin;
    std::byte* const device = allocate ? allocate(count * sizeof(T)) : nullptr;
    if (device == nullptr) host_.resize(count);
    memory_ = {device == nullptr ? host_.data() : reinterpret_cast<T*>(device), count};
    std::ranges::fill(memory_, sentinel());
  }

  [[nodiscard]] std::int64_t cells() const { return cells_; }
  /// As one block, or as blocks for each of `ranks`.
  [[nodiscard]] Outgoing out(std::int32_t ranks = 1) const {
    return {memory_.data() + margin, cells_ / per_element_ / ranks, shape_.type};
  }
  [[nodiscard]] Incoming in(std::int32_t ranks = 1) const {
    return {memory_.data() + margin, cells_ / per_element_ / ranks, shape_.type};
  }
  void set(std::int64_t i, T value) { memory_[place(i)] = value; }

  /// What differs from `value(i)` in [from, to), and from sentinels elsewhere; empty: nothing.
  template <class Value>
  [[nodiscard]] std::string difference(std::int64_t from, std::int64_t to,
                                       const Value& value) const {
    std::vector<T> expected(memory_.size(), sentinel());
    for (std::int64_t i = from; i < to; ++i) expected[place(i)] = value(i);
    if (std::memcmp(expected.data(), memory_.data(), memory_.size_bytes()) == 0) return "";
    for (std::size_t k = 0; k < memory_.size(); ++k) {
      if (std::memcmp(&expected[k], &memory_[k], sizeof(T)) == 0) continue;
      return fmt::format("scalar {} of the memory is {}, not {}", k, memory_[k], expected[k]);
    }
    return "";
  }

 private:
  static constexpr std::size_t margin = 8;
  static T sentinel() {
    T value;
    std::memset(&value, 0xA7, sizeof value);
    return value;
  }
  [[nodiscard]] std::size_t place(std::int64_t i) const {
    return static_cast<std::size_t>(static_cast<std::int64_t>(margin) +
                                    i / per_element_ * shape_.extent +
                                    shape_.places[static_cast<std::size_t>(i % per_element_)]);
  }

  CellShape shape_;
  std::int64_t per_element_;
  std::int64_t cells_;
  std::vector<T> host_;  ///< empty: the memory is a device's
  std::span<T> memory_;
};

}  // namespace heddle::testing
