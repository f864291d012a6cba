#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "node-runtime/transport/datatype/datatype.hpp"
#include "node-runtime/transport/datatype/pack.hpp"
#include "node-runtime/transport/datatype/pack_plan.hpp"
#include "tests/transport/datatype/random_type.hpp"

namespace heddle::test {

/// Two types of the same bytes under loops, one to be sent and one to be received into.
struct ShapePair {
  Datatype from;
  Datatype to;
};

/// Elements in `counts` nested loops, the innermost last, which lie in memory in any order and with
/// gaps.
inline Datatype looped(RandomType& random, const std::array<std::int64_t, 3>& counts,
                       Scalar scalar) {
  std::array<std::size_t, 3> order{0, 1, 2};
  if (random.one_in(2)) {
    for (std::size_t i = 2; i > 0; --i) {
      std::swap(order[i],
                order[static_cast<std::size_t>(random.number(0, static_cast<std::int64_t>(i)))]);
    }
  } else {
    std::swap(order[0], order[2]);  // as they travel
  }
  std::array<std::int64_t, 3> strides{};
  std::int64_t stride = size_of(scalar);
  for (const std::size_t loop : order) {
    strides[loop] = stride;
    if (random.one_in(2)) strides[loop] += size_of(scalar) * random.number(0, 3);
    stride = strides[loop] * counts[loop];
  }
  Datatype type = scalar;
  for (std::size_t loop = 3; loop-- > 0;) {
    type = Datatype::hvector(counts[loop], 1, strides[loop], type);
  }
  return type;
}

inline ShapePair random_pair(RandomType& random) {
  constexpr std::array scalars{Scalar::byte, Scalar::float32, Scalar::float64,
                               Scalar::complex_float64};
  const Scalar scalar = scalars.at(static_cast<std::size_t>(random.number(0, 3)));
  if (random.one_in(3)) {
    Datatype::TriangleShape shape;
    shape.part = random.one_in(2) ? Datatype::TriangleShape::Part::lower
                                  : Datatype::TriangleShape::Part::upper;
    shape.diagonal = random.one_in(2);
    shape.rows = random.number(3, 40);
    shape.columns = random.number(3, 40);
    shape.leading = shape.rows + random.number(0, 5);
    const Datatype from = Datatype::triangle(shape, scalar);
    shape.leading = shape.rows + random.number(0, 5);
    return {from, Datatype::triangle(shape, scalar)};
  }
  const std::int64_t a = random.number(1, 6);
  const std::int64_t b = random.number(1, 6);
  const std::int64_t c = random.number(1, 20);
  const std::array<std::array<std::int64_t, 3>, 4> cuts{
      {{a, b, c}, {b, a, c}, {1, a, b * c}, {a * b, 1, c}}};
  const auto one_of = [&] { return cuts.at(static_cast<std::size_t>(random.number(0, 3))); };
  return {looped(random, one_of(), scalar), looped(random, one_of(), scalar)};
}

/// What is to be in `memory` when all of `source` has come.
inline void move_by_host(const PackPlan& from, const std::byte* source, const PackPlan& to,
                         std::byte* memory) {
  std::vector<std::byte> stream(static_cast<std::size_t>(from.size));
  pack(from, 1, source, {0, from.size}, stream.data());
  unpack(to, 1, {0, to.size}, stream.data(), memory);
}

}  // namespace heddle::test
