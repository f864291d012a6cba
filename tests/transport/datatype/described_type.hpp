#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "node-runtime/transport/datatype/datatype.hpp"

namespace heddle::test {

/// A datatype as its maker's arguments, from which Datatype, a naive reference and MPI's own type
/// can be made.
struct DescribedType {
  enum class Kind : std::uint8_t {
    scalar,
    contiguous,      // count
    vector,          // count, block_length, stride
    hvector,         // the same
    indexed,         // blocks
    hindexed,        // blocks
    indexed_block,   // block_length, blocks' displacements
    hindexed_block,  // the same
    structure,       // blocks, as many parts
    subarray,        // dimensions, order
    resized,         // lower_bound, extent
    triangle,        // shape, scalar
  };
  using Part = std::shared_ptr<const DescribedType>;

  Kind kind = Kind::scalar;
  Scalar scalar = Scalar::byte;
  std::int64_t count = 0;
  std::int64_t block_length = 0;
  std::int64_t stride = 0;
  std::int64_t lower_bound = 0;
  std::int64_t extent = 0;
  std::vector<Datatype::IndexedBlock> blocks;
  std::vector<Datatype::Dimension> dimensions;
  Datatype::Order order = Datatype::Order::row_major;
  Datatype::TriangleShape shape;
  std::vector<Part> parts;

  [[nodiscard]] const DescribedType& part() const { return *parts.front(); }
  [[nodiscard]] std::vector<std::int64_t> displacements() const;
};

[[nodiscard]] Datatype datatype_of(const DescribedType& described);
[[nodiscard]] std::string to_string(const DescribedType& described);

/// The definition: every scalar with its displacement, in order.
struct TypeMap {
  struct Entry {
    std::int64_t displacement;
    Scalar scalar;
  };
  std::vector<Entry> entries;
  std::int64_t lower_bound = 0;
  std::int64_t upper_bound = 0;
  bool bounds_are_set = false;

  [[nodiscard]] std::int64_t extent() const { return upper_bound - lower_bound; }
  [[nodiscard]] std::int64_t size() const;
  [[nodiscard]] std::int64_t true_lower_bound() const;
  [[nodiscard]] std::int64_t true_upper_bound() const;
};

[[nodiscard]] TypeMap type_map_of(const DescribedType& described);

}  // namespace heddle::test
