#pragma once

#include <cstdint>
#include <random>

#include "tests/transport/datatype/described_type.hpp"

namespace heddle::test {

/// Datatypes by a grammar, the same for the same seed: every maker, nested up to `depth` times,
/// with negative strides and displacements, elements that overlap, and bounds that were set.
class RandomType {
 public:
  struct Options {
    int depth = 3;
    std::int64_t entries_max = 2000;
    /// Counts, lengths and sizes may be 0.
    bool zero_sizes = true;
    /// Bounds are set for structures whose members' bounds were set, so that they do not mix with
    /// others, or for all.
    bool structures_resized = false;
    bool negative_extents = true;
  };

  explicit RandomType(std::uint64_t seed) : RandomType(seed, Options{}) {}
  RandomType(std::uint64_t seed, const Options& options) : random_(seed), options_(options) {}

  [[nodiscard]] DescribedType next() { return type(options_.depth, options_.entries_max); }
  /// From `low` to `high`, both included.
  [[nodiscard]] std::int64_t number(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
  }
  [[nodiscard]] bool one_in(std::int64_t n) { return number(1, n) == 1; }

 private:
  /// At most `entries_max` scalars.
  DescribedType type(int depth, std::int64_t entries_max);
  DescribedType scalar();
  DescribedType triangle(std::int64_t entries_max);
  DescribedType structure(int depth, std::int64_t entries_max);
  void subarray(DescribedType& described, std::int64_t room);
  void blocks(DescribedType& described, std::int64_t room);
  DescribedType resized(DescribedType part, const TypeMap& map);
  std::int64_t count(std::int64_t room);

  std::mt19937_64 random_;
  Options options_;
};

}  // namespace heddle::test
