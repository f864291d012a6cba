#include "tests/transport/datatype/random_type.hpp"

#include <algorithm>
#include <utility>

namespace heddle::test {
namespace {

using Kind = DescribedType::Kind;

}  // namespace

/// At most `room`; mostly small.
std::int64_t RandomType::count(std::int64_t room) {
  const std::int64_t least = options_.zero_sizes && one_in(12) ? 0 : 1;
  const std::int64_t most = one_in(6) ? 40 : 6;
  return number(least, std::max(least, std::min(most, room)));
}

DescribedType RandomType::scalar() {
  DescribedType described;
  described.scalar = static_cast<Scalar>(number(0, 12));
  return described;
}

DescribedType RandomType::triangle(std::int64_t entries_max) {
  DescribedType described = scalar();
  described.kind = Kind::triangle;
  auto& shape = described.shape;
  shape.part = static_cast<Datatype::TriangleShape::Part>(number(0, 1));
  shape.diagonal = one_in(2);
  const std::int64_t least = options_.zero_sizes ? 0 : 2;
  shape.rows = number(least, 12);
  shape.columns = one_in(2) ? shape.rows : number(least, 12);
  if (shape.rows * shape.columns > entries_max) shape.rows = shape.columns = 2;
  shape.leading = shape.rows + number(0, 4);
  return described;
}

DescribedType RandomType::structure(int depth, std::int64_t entries_max) {
  DescribedType described;
  described.kind = Kind::structure;
  const std::int64_t members = std::max<std::int64_t>(1, count(5));
  bool set = options_.structures_resized;
  std::int64_t at = 0;
  for (std::int64_t i = 0; i < members; ++i) {
    const bool again = i > 0 && one_in(3);
    const DescribedType::Part part =
        again ? described.parts.back()
              : std::make_shared<const DescribedType>(type(depth - 1, entries_max / members));
    const TypeMap map = type_map_of(*part);
    const auto entries = static_cast<std::int64_t>(map.entries.size());
    const std::int64_t length = count(entries_max / members / std::max<std::int64_t>(entries, 1));
    set = set || map.bounds_are_set;
    // Mostly one behind the other, sometimes anywhere.
    at = one_in(4) ? number(-300, 300) : at;
    described.blocks.push_back({at - map.true_lower_bound(), length});
    described.parts.push_back(part);
    at += length * std::abs(map.extent()) + (one_in(2) ? 0 : number(0, 20));
  }
  if (!set) return described;
  const TypeMap map = type_map_of(described);
  return resized(std::move(described), map);
}

DescribedType RandomType::resized(DescribedType part, const TypeMap& map) {
  DescribedType described;
  described.kind = Kind::resized;
  described.parts.push_back(std::make_shared<const DescribedType>(std::move(part)));
  described.lower_bound = map.lower_bound + (one_in(2) ? 0 : number(-20, 20));
  const std::int64_t true_extent = map.true_upper_bound() - map.true_lower_bound();
  const std::int64_t least = options_.negative_extents ? -50 : 0;
  described.extent = one_in(6) ? number(least, 50) : true_extent + number(0, 24);
  return described;
}

void RandomType::subarray(DescribedType& described, std::int64_t room) {
  described.order = static_cast<Datatype::Order>(number(0, 1));
  const std::int64_t dimensions = number(1, 3);
  for (std::int64_t i = 0; i < dimensions; ++i) {
    const std::int64_t subsize = count(std::min<std::int64_t>(room, 8));
    room /= std::max<std::int64_t>(subsize, 1);
    const std::int64_t start = number(0, 3);
    described.dimensions.push_back({start + subsize + number(0, 3), subsize, start});
    // An array of no size has no indices that could be counted.
    if (described.dimensions.back().size == 0) described.dimensions.back().size = 1;
  }
}

void RandomType::blocks(DescribedType& described, std::int64_t room) {
  const std::int64_t number_of_blocks = count(room);
  room /= std::max<std::int64_t>(number_of_blocks, 1);
  const bool in_bytes = described.kind == Kind::hindexed || described.kind == Kind::hindexed_block;
  const std::int64_t unit = in_bytes ? std::abs(type_map_of(described.part()).extent()) + 1 : 1;
  described.block_length = count(room);
  const bool regular = one_in(3);
  const std::int64_t distance = number(-2, 12);
  std::int64_t at = number(-5, 5);
  for (std::int64_t i = 0; i < number_of_blocks; ++i) {
    const std::int64_t length = regular ? described.block_length : count(room);
    described.blocks.push_back({at, length});
    at += regular ? distance : (one_in(4) ? number(-20, 20) : length + number(0, 3)) * unit;
  }
}

DescribedType RandomType::type(int depth, std::int64_t entries_max) {
  if (depth == 0 || entries_max < 2) return scalar();
  const auto kind = static_cast<Kind>(number(0, 11));
  if (kind == Kind::scalar) return scalar();
  if (kind == Kind::triangle) return triangle(entries_max);
  if (kind == Kind::structure) return structure(depth, entries_max);
  DescribedType part = type(depth - 1, entries_max);
  const TypeMap map = type_map_of(part);
  if (kind == Kind::resized) return resized(std::move(part), map);
  const std::int64_t room =
      entries_max / std::max<std::int64_t>(static_cast<std::int64_t>(map.entries.size()), 1);
  DescribedType described;
  described.kind = kind;
  described.parts.push_back(std::make_shared<const DescribedType>(std::move(part)));
  if (kind == Kind::subarray) {
    subarray(described, room);
  } else if (kind == Kind::contiguous) {
    described.count = count(room);
  } else if (kind == Kind::vector || kind == Kind::hvector) {
    described.count = count(room);
    described.block_length = count(room / std::max<std::int64_t>(described.count, 1));
    const std::int64_t unit = kind == Kind::vector ? 1 : std::abs(map.extent());
    described.stride = one_in(8) ? number(-12, 12)
                                 : described.block_length * unit + (one_in(2) ? 0 : number(0, 9));
  } else {
    blocks(described, room);
  }
  return described;
}

}  // namespace heddle::test
