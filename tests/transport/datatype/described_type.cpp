#include "tests/transport/datatype/described_type.hpp"

#include <algorithm>
#include <fmt/core.h>
#include <limits>

namespace heddle::test {
namespace {

using Kind = DescribedType::Kind;

/// Collects copies of types, by the definition of MPI's type maps.
class Collector {
 public:
  void add(const TypeMap& type, std::int64_t displacement, std::int64_t length) {
    for (std::int64_t i = 0; i < length; ++i) {
      const std::int64_t at = displacement + i * type.extent();
      for (const auto& entry : type.entries) {
        map_.entries.push_back({entry.displacement + at, entry.scalar});
        alignment_ = std::max(alignment_, alignment_of(entry.scalar));
      }
      if (type.entries.empty() && !type.bounds_are_set) continue;
      auto& lower = type.bounds_are_set ? set_lower_ : lower_;
      auto& upper = type.bounds_are_set ? set_upper_ : upper_;
      lower.push_back(at + type.lower_bound);
      upper.push_back(at + type.upper_bound);
    }
  }

  TypeMap result(bool padded) {
    map_.bounds_are_set = !set_lower_.empty();
    const auto& lower = map_.bounds_are_set ? set_lower_ : lower_;
    const auto& upper = map_.bounds_are_set ? set_upper_ : upper_;
    if (lower.empty()) return map_;
    map_.lower_bound = *std::min_element(lower.begin(), lower.end());
    map_.upper_bound = *std::max_element(upper.begin(), upper.end());
    while (padded && !map_.bounds_are_set && map_.extent() % alignment_ != 0) ++map_.upper_bound;
    return map_;
  }

 private:
  TypeMap map_;
  std::int64_t alignment_ = 1;
  std::vector<std::int64_t> lower_;
  std::vector<std::int64_t> upper_;
  std::vector<std::int64_t> set_lower_;
  std::vector<std::int64_t> set_upper_;
};

TypeMap subarray_map(const DescribedType& d) {
  const TypeMap part = type_map_of(d.part());
  std::int64_t elements = 1;
  for (const auto& dimension : d.dimensions) elements *= dimension.size;
  Collector collector;
  for (std::int64_t index = 0; index < elements; ++index) {
    std::int64_t rest = index;
    bool inside = true;
    for (std::size_t i = 0; i < d.dimensions.size(); ++i) {
      const bool first_is_fastest = d.order == Datatype::Order::column_major;
      const auto& dimension = d.dimensions[first_is_fastest ? i : d.dimensions.size() - 1 - i];
      const std::int64_t digit = rest % dimension.size;
      rest /= dimension.size;
      inside = inside && digit >= dimension.start && digit < dimension.start + dimension.subsize;
    }
    if (inside) collector.add(part, index * part.extent(), 1);
  }
  TypeMap map = collector.result(false);
  map.lower_bound = 0;
  map.upper_bound = elements * part.extent();
  map.bounds_are_set = true;
  return map;
}

TypeMap triangle_map(const DescribedType& d) {
  const std::int64_t size = size_of(d.scalar);
  const TypeMap element{{{0, d.scalar}}, 0, size, false};
  Collector collector;
  for (std::int64_t j = 0; j < d.shape.columns; ++j) {
    for (std::int64_t i = 0; i < d.shape.rows; ++i) {
      const bool lower = d.shape.part == Datatype::TriangleShape::Part::lower;
      const bool inside = i == j ? d.shape.diagonal : (lower ? i > j : i < j);
      if (inside) collector.add(element, (j * d.shape.leading + i) * size, 1);
    }
  }
  return collector.result(false);
}

void collect(Collector& collector, const DescribedType& d, const TypeMap& part) {
  const bool in_bytes =
      d.kind == Kind::hvector || d.kind == Kind::hindexed || d.kind == Kind::hindexed_block;
  const std::int64_t unit = in_bytes ? 1 : part.extent();
  switch (d.kind) {
    case Kind::contiguous:
      return collector.add(part, 0, d.count);
    case Kind::vector:
    case Kind::hvector:
      for (std::int64_t i = 0; i < d.count; ++i) {
        collector.add(part, i * d.stride * unit, d.block_length);
      }
      return;
    case Kind::indexed:
    case Kind::hindexed:
      for (const auto& b : d.blocks) collector.add(part, b.displacement * unit, b.length);
      return;
    default:
      for (const auto& b : d.blocks) collector.add(part, b.displacement * unit, d.block_length);
  }
}

}  // namespace

std::vector<std::int64_t> DescribedType::displacements() const {
  std::vector<std::int64_t> result;
  result.reserve(blocks.size());
  for (const auto& block : blocks) result.push_back(block.displacement);
  return result;
}

std::int64_t TypeMap::size() const {
  std::int64_t bytes = 0;
  for (const Entry& entry : entries) bytes += size_of(entry.scalar);
  return bytes;
}

std::int64_t TypeMap::true_lower_bound() const {
  if (entries.empty()) return 0;
  std::int64_t bound = std::numeric_limits<std::int64_t>::max();
  for (const Entry& entry : entries) bound = std::min(bound, entry.displacement);
  return bound;
}

std::int64_t TypeMap::true_upper_bound() const {
  if (entries.empty()) return 0;
  std::int64_t bound = std::numeric_limits<std::int64_t>::min();
  for (const Entry& entry : entries) {
    bound = std::max(bound, entry.displacement + size_of(entry.scalar));
  }
  return bound;
}

TypeMap type_map_of(const DescribedType& d) {
  Collector collector;
  switch (d.kind) {
    case Kind::scalar:
      return {{{0, d.scalar}}, 0, size_of(d.scalar), false};
    case Kind::triangle:
      return triangle_map(d);
    case Kind::subarray:
      return subarray_map(d);
    case Kind::resized: {
      TypeMap map = type_map_of(d.part());
      map.lower_bound = d.lower_bound;
      map.upper_bound = d.lower_bound + d.extent;
      map.bounds_are_set = true;
      return map;
    }
    case Kind::structure:
      for (std::size_t i = 0; i < d.parts.size(); ++i) {
        collector.add(type_map_of(*d.parts[i]), d.blocks[i].displacement, d.blocks[i].length);
      }
      return collector.result(true);
    default:
      collect(collector, d, type_map_of(d.part()));
      return collector.result(false);
  }
}

Datatype datatype_of(const DescribedType& d) {
  switch (d.kind) {
    case Kind::scalar:
      return d.scalar;
    case Kind::contiguous:
      return Datatype::contiguous(d.count, datatype_of(d.part()));
    case Kind::vector:
      return Datatype::vector(d.count, d.block_length, d.stride, datatype_of(d.part()));
    case Kind::hvector:
      return Datatype::hvector(d.count, d.block_length, d.stride, datatype_of(d.part()));
    case Kind::indexed:
      return Datatype::indexed(d.blocks, datatype_of(d.part()));
    case Kind::hindexed:
      return Datatype::hindexed(d.blocks, datatype_of(d.part()));
    case Kind::indexed_block:
      return Datatype::indexed_block(d.block_length, d.displacements(), datatype_of(d.part()));
    case Kind::hindexed_block:
      return Datatype::hindexed_block(d.block_length, d.displacements(), datatype_of(d.part()));
    case Kind::structure: {
      std::vector<Datatype::Member> members;
      for (std::size_t i = 0; i < d.parts.size(); ++i) {
        members.push_back({d.blocks[i].displacement, d.blocks[i].length, datatype_of(*d.parts[i])});
      }
      return Datatype::structure(members);
    }
    case Kind::subarray:
      return Datatype::subarray(d.dimensions, d.order, datatype_of(d.part()));
    case Kind::resized:
      return Datatype::resized(datatype_of(d.part()), d.lower_bound, d.extent);
    case Kind::triangle:
      return Datatype::triangle(d.shape, d.scalar);
  }
  return d.scalar;
}

std::string to_string(const DescribedType& d) {
  std::string text;
  switch (d.kind) {
    case Kind::scalar:
      return std::string(name_of(d.scalar));
    case Kind::triangle:
      return fmt::format("{}{}({} x {}, leading {}, {})",
                         d.shape.part == Datatype::TriangleShape::Part::lower ? "lower" : "upper",
                         d.shape.diagonal ? "" : " without diagonal", d.shape.rows, d.shape.columns,
                         d.shape.leading, name_of(d.scalar));
    case Kind::contiguous:
      return fmt::format("contiguous({}, {})", d.count, to_string(d.part()));
    case Kind::vector:
    case Kind::hvector:
      return fmt::format("{}({}, {}, {}, {})", d.kind == Kind::vector ? "vector" : "hvector",
                         d.count, d.block_length, d.stride, to_string(d.part()));
    case Kind::resized:
      return fmt::format("resized({}, {}, {})", to_string(d.part()), d.lower_bound, d.extent);
    case Kind::subarray:
      text = d.order == Datatype::Order::row_major ? "subarray by rows(" : "subarray by columns(";
      for (const auto& i : d.dimensions)
        text += fmt::format("{}+{}/{} ", i.start, i.subsize, i.size);
      return text + to_string(d.part()) + ")";
    default:
      text =
          fmt::format("blocks of kind {} (length {}: ", static_cast<int>(d.kind), d.block_length);
      for (std::size_t i = 0; i < d.blocks.size(); ++i) {
        text += fmt::format("{} at {}", d.blocks[i].length, d.blocks[i].displacement);
        if (i < d.parts.size()) text += " of " + to_string(*d.parts[i]);
        text += ", ";
      }
      return text + ")";
  }
}

}  // namespace heddle::test
