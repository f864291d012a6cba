#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "node-runtime/transport/datatype/scalar.hpp"

namespace heddle {

/// The sequence of scalars that a datatype consists of, without their places: what sender and
/// receiver must agree on. An immutable value, cheap to copy.
///
/// Kept as it was described, as runs of one scalar, repetitions and sequences of these. Never
/// written out: a signature of 10^12 scalars is as small as its description.
class Signature {
 public:
  /// No scalars.
  Signature();
  explicit Signature(Scalar scalar);

  /// `count` >= 0 times this. Throws Error(usage) where the number of bytes does not fit 64 bits.
  [[nodiscard]] Signature repeated(std::int64_t count) const;
  /// One behind the other.
  [[nodiscard]] static Signature sequence(const std::vector<Signature>& parts);

  [[nodiscard]] std::int64_t bytes() const;
  /// The scalar that it consists of alone; nothing where there are several, or none.
  [[nodiscard]] std::optional<Scalar> scalar() const;
  /// A scalar ends `bytes` bytes behind the begin, or `bytes` is 0.
  [[nodiscard]] bool ends_scalar_at(std::int64_t bytes) const;

  /// A number for the scalars in the first `bytes` bytes, which must end with a whole one: equal
  /// sequences have equal numbers, however they are described, and different ones of n scalars the
  /// same with a probability of n / 2^61. For nodes that cannot see each other's descriptions.
  [[nodiscard]] std::uint64_t digest(std::int64_t bytes) const;

 private:
  struct Node;
  explicit Signature(std::shared_ptr<const Node> node) : node_(std::move(node)) {}

  std::shared_ptr<const Node> node_;
};

}  // namespace heddle
