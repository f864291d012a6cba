#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "node-runtime/transport/datatype/datatype.hpp"
#include "node-runtime/transport/datatype/pack.hpp"

/// Messages of int32 whose two sides have different shapes.
namespace heddle::p2p {

inline constexpr std::byte sentinel{0xA5};

/// Memory in which `count` elements of a type lie, gaps and a rim around them.
struct Place {
  Place(Datatype of, std::int64_t elements)
      : type(std::move(of)),
        count(elements),
        bytes(rim +
                  static_cast<std::size_t>(std::max<std::int64_t>(
                      0, (count - 1) * type.extent() + type.true_upper_bound())) +
                  rim,
              sentinel) {}
  void fill(std::mt19937_64& random) {
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  }
  [[nodiscard]] std::byte* address() { return bytes.data() + rim; }

  static constexpr std::size_t rim = 16;
  Datatype type;
  std::int64_t count;
  std::vector<std::byte> bytes;
};

/// Room for at least `scalars` int32 in some shape.
inline Place random_place(std::int64_t scalars, std::mt19937_64& random) {
  const auto below = [&](std::int64_t bound) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(bound));
  };
  switch (random() % 4) {
    case 0:
      return {Datatype(Scalar::int32), scalars};
    case 1: {  // columns with gaps
      const std::int64_t rows = 1 + below(40);
      return {Datatype::vector((scalars + rows - 1) / rows, rows, rows + below(7), Scalar::int32),
              1};
    }
    case 2: {  // every other element, element by element
      const Datatype sparse = Datatype::resized(Scalar::int32, 0, 4 * (1 + below(3)));
      return {sparse, scalars};
    }
    default: {  // blocks of any length
      std::vector<Datatype::IndexedBlock> blocks;
      std::int64_t at = 0;
      for (std::int64_t left = scalars; left > 0;) {
        const std::int64_t length = 1 + below(std::min<std::int64_t>(left, 30));
        at += below(4);
        blocks.push_back({at, length});
        at += length;
        left -= length;
      }
      return {Datatype::indexed(blocks, Scalar::int32), 1};
    }
  }
}

inline std::int64_t scalars_in(const Place& place) {
  return place.type.size() / 4 * place.count;
}

/// What a place must hold after it has received what the other one held.
inline std::vector<std::byte> expected_after(const Place& to, Place& from) {
  Place expected = to;
  const PackPlan out = make_plan(from.type);
  const PackPlan in = make_plan(to.type);
  const std::int64_t bytes = out.stream_bytes(from.count);
  std::vector<std::byte> stream(static_cast<std::size_t>(bytes));
  pack(out, from.count, from.address(), {0, bytes}, stream.data());
  unpack(in, to.count, {0, bytes}, stream.data(), expected.address());
  return expected.bytes;
}

/// A message between any two of some nodes, up to `scalars_max` long or a little more. The same for
/// the same state of `random`.
struct RandomMessage {
  RandomMessage(std::int32_t nodes, std::uint64_t scalars_max, std::mt19937_64& random)
      : from(static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(nodes))),
        to(static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(nodes))),
        tag(static_cast<std::int32_t>(random() % 3)),
        source(random_place(
            static_cast<std::int64_t>(random() % 3 == 0 ? random() % 30 : random() % scalars_max),
            random)),
        target(random_place(scalars_in(source) + static_cast<std::int64_t>(random() % 3), random)) {
    source.fill(random);
    expected = expected_after(target, source);
  }

  std::int32_t from;
  std::int32_t to;
  std::int32_t tag;
  Place source;
  Place target;
  std::vector<std::byte> expected;
};

}  // namespace heddle::p2p
