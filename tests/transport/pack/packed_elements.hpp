#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "node-runtime/transport/datatype/pack.hpp"
#include "tests/transport/datatype/described_type.hpp"
#include "tests/transport/datatype/random_type.hpp"

namespace heddle::test {

/// Some elements of a datatype with a guard around them, and where each byte of their packed stream
/// lies.
class Elements {
 public:
  static constexpr std::size_t guard = 64;
  static constexpr std::byte sentinel{0xa5};

  /// Misaligned by up to 15 bytes, or by none in half of all cases.
  Elements(const TypeMap& map, std::int64_t count, RandomType& random) {
    const std::int64_t last = count > 0 ? (count - 1) * map.extent() : 0;
    const std::int64_t low = std::min<std::int64_t>(0, last) + map.true_lower_bound();
    const std::int64_t high = std::max<std::int64_t>(0, last) + map.true_upper_bound();
    const auto shift =
        guard + static_cast<std::size_t>(random.one_in(2) ? 0 : random.number(1, 15));
    bytes_.resize(static_cast<std::size_t>(high - low) + shift + guard);
    for (std::byte& byte : bytes_) byte = static_cast<std::byte>(random.number(0, 255));
    origin_ = static_cast<std::int64_t>(shift) - low;
    for (std::int64_t e = 0; e < count; ++e) {
      for (const auto& entry : map.entries) {
        for (std::int64_t b = 0; b < size_of(entry.scalar); ++b) {
          places_.push_back(
              static_cast<std::size_t>(origin_ + e * map.extent() + entry.displacement + b));
        }
      }
    }
  }

  [[nodiscard]] std::vector<std::byte>& bytes() { return bytes_; }
  /// Of what is passed as the elements' address, in bytes().
  [[nodiscard]] std::int64_t origin() const { return origin_; }
  [[nodiscard]] std::int64_t stream_bytes() const {
    return static_cast<std::int64_t>(places_.size());
  }
  [[nodiscard]] std::size_t place(std::int64_t at) const {
    return places_[static_cast<std::size_t>(at)];
  }

  [[nodiscard]] std::vector<std::byte> packed(const StreamRange& range) const {
    std::vector<std::byte> result;
    for (std::int64_t i = 0; i < range.bytes; ++i) result.push_back(bytes_[place(range.begin + i)]);
    return result;
  }

 private:
  std::vector<std::byte> bytes_;
  std::int64_t origin_ = 0;
  std::vector<std::size_t> places_;
};

/// Cuts [0, bytes) at up to `cuts` random places, in half of all cases at multiples of 16.
inline std::vector<StreamRange> random_ranges(RandomType& random, std::int64_t bytes, int cuts) {
  const std::int64_t unit = random.one_in(2) ? 16 : 1;
  std::vector<std::int64_t> ends{0, bytes};
  for (int i = 0; i < cuts; ++i) ends.push_back(random.number(0, bytes) / unit * unit);
  std::sort(ends.begin(), ends.end());
  std::vector<StreamRange> ranges;
  for (std::size_t i = 1; i < ends.size(); ++i) {
    ranges.push_back({ends[i - 1], ends[i] - ends[i - 1]});
  }
  return ranges;
}

/// Numbers that tell the bytes of a stream apart.
inline std::vector<std::byte> counted_bytes(std::int64_t bytes) {
  std::vector<std::byte> result(static_cast<std::size_t>(bytes));
  for (std::size_t i = 0; i < result.size(); ++i) {
    result[i] = static_cast<std::byte>(i * 7 + i / 256);
  }
  return result;
}

// ---- types of the kinds that have a kernel of their own ---------------------------------------

/// Rows of a matrix stored by columns.
inline DescribedType transposed_matrix(RandomType& random) {
  DescribedType element;
  element.scalar = static_cast<Scalar>(random.number(0, 12));
  const std::int64_t rows = random.number(1, 70);
  const std::int64_t columns = random.number(1, 70);
  const std::int64_t leading = rows + random.number(0, 5);
  DescribedType row;
  row.kind = DescribedType::Kind::vector;
  row.count = columns;
  row.block_length = 1;
  row.stride = random.one_in(4) ? -leading : leading;
  row.parts = {std::make_shared<const DescribedType>(element)};
  DescribedType transposed;
  transposed.kind = DescribedType::Kind::hvector;
  transposed.count = rows;
  transposed.block_length = 1;
  transposed.stride = size_of(element.scalar);
  transposed.parts = {std::make_shared<const DescribedType>(row)};
  return transposed;
}

inline DescribedType triangular_matrix(RandomType& random) {
  DescribedType triangle;
  triangle.kind = DescribedType::Kind::triangle;
  triangle.scalar = static_cast<Scalar>(random.number(0, 12));
  triangle.shape.part = static_cast<Datatype::TriangleShape::Part>(random.number(0, 1));
  triangle.shape.diagonal = random.one_in(2);
  triangle.shape.rows = random.number(2, 60);
  triangle.shape.columns = random.one_in(2) ? triangle.shape.rows : random.number(2, 60);
  triangle.shape.leading = triangle.shape.rows + random.number(0, 4);
  return triangle;
}

/// Mostly one by the grammar.
inline DescribedType random_described(RandomType& random) {
  if (random.one_in(6)) return transposed_matrix(random);
  if (random.one_in(6)) return triangular_matrix(random);
  return random.next();
}

}  // namespace heddle::test
