#include "node-runtime/transport/datatype/signature.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "node-runtime/transport/datatype/checked.hpp"

namespace heddle {

namespace {

/// A sequence as a polynomial at a point, modulo the prime 2^61 - 1 (Karp and Rabin, 1987): of the
/// scalars s_1 .. s_n the sum of s_i x^(n-i), and x^n, which is what it takes to append another
/// one.
struct Polynomial {
  std::uint64_t value = 0;
  std::uint64_t power = 1;
};

__extension__ using Wide = unsigned __int128;
constexpr std::uint64_t prime = (std::uint64_t{1} << 61U) - 1;
constexpr std::uint64_t point = 0x1A2F3C5D7E901B47;  // any other would do

std::uint64_t product(std::uint64_t a, std::uint64_t b) {
  const Wide wide = static_cast<Wide>(a) * b;
  const std::uint64_t folded =
      static_cast<std::uint64_t>(wide & prime) + static_cast<std::uint64_t>(wide >> 61U);
  return folded >= prime ? folded - prime : folded;
}

Polynomial followed_by(const Polynomial& first, const Polynomial& second) {
  std::uint64_t value = product(first.value, second.power) + second.value;
  if (value >= prime) value -= prime;
  return {value, product(first.power, second.power)};
}

Polynomial power_of(Polynomial body, std::int64_t count) {
  Polynomial all;
  for (; count > 0; count /= 2) {
    if (count % 2 != 0) all = followed_by(body, all);  // all parts are alike, so any order will do
    body = followed_by(body, body);
  }
  return all;
}

Polynomial polynomial_of(Scalar scalar) {
  return {product(static_cast<std::uint64_t>(scalar) + 1, 0x0F1E2D3C4B5A6978), point};
}

}  // namespace

/// A run of one scalar (no parts), a repetition (one part) or a sequence (several).
struct Signature::Node {
  std::int64_t bytes = 0;
  Scalar scalar = Scalar::byte;                    ///< of a run
  std::vector<std::shared_ptr<const Node>> parts;  ///< none of them empty
  Polynomial polynomial;

  [[nodiscard]] bool is_run() const { return parts.empty(); }
  [[nodiscard]] bool is_repetition() const { return parts.size() == 1; }

  /// The polynomial of the scalars in the first `prefix_bytes` bytes.
  [[nodiscard]] Polynomial prefix(std::int64_t prefix_bytes) const {
    if (prefix_bytes == bytes) return polynomial;
    if (is_run()) return power_of(polynomial_of(scalar), prefix_bytes / size_of(scalar));
    if (is_repetition()) {
      const Node& body = *parts.front();
      return followed_by(power_of(body.polynomial, prefix_bytes / body.bytes),
                         body.prefix(prefix_bytes % body.bytes));
    }
    Polynomial all;
    for (const auto& part : parts) {
      const std::int64_t here = std::min(prefix_bytes, part->bytes);
      all = followed_by(all, part->prefix(here));
      prefix_bytes -= here;
      if (prefix_bytes == 0) break;
    }
    return all;
  }
};

Signature::Signature() : node_(std::make_shared<Node>()) {}

Signature::Signature(Scalar scalar) {
  Node run;
  run.bytes = size_of(scalar);
  run.scalar = scalar;
  run.polynomial = polynomial_of(scalar);
  node_ = std::make_shared<Node>(std::move(run));
}

std::int64_t Signature::bytes() const {
  return node_->bytes;
}

std::optional<Scalar> Signature::scalar() const {
  if (bytes() == 0) return std::nullopt;
  const Node* node = node_.get();
  while (node->is_repetition()) node = node->parts.front().get();
  if (node->is_run()) return node->scalar;
  for (std::size_t s = 0; s < scalar_count; ++s) {
    const auto scalar = static_cast<Scalar>(s);
    if (bytes() % size_of(scalar) != 0) continue;
    if (power_of(polynomial_of(scalar), bytes() / size_of(scalar)).value == digest(bytes())) {
      return scalar;
    }
  }
  return std::nullopt;
}

bool Signature::ends_scalar_at(std::int64_t bytes) const {
  if (bytes < 0 || bytes > node_->bytes) return false;
  const Node* node = node_.get();
  while (!node->is_run()) {
    std::size_t part = 0;
    if (node->is_repetition()) {
      bytes %= node->parts.front()->bytes;
    } else {
      while (bytes > node->parts[part]->bytes) bytes -= node->parts[part++]->bytes;
    }
    node = node->parts[part].get();
  }
  return node->bytes == 0 || bytes % size_of(node->scalar) == 0;
}

std::uint64_t Signature::digest(std::int64_t bytes) const {
  HEDDLE_CHECK(ends_scalar_at(bytes), "{} bytes end within a scalar, or beyond {}", bytes,
               node_->bytes);
  return node_->prefix(bytes).value;
}

Signature Signature::repeated(std::int64_t count) const {
  HEDDLE_CHECK(count >= 0, "{} times a signature", count);
  if (count == 0 || bytes() == 0) return {};
  if (count == 1) return *this;
  Node node;
  node.bytes = datatype::checked_product(count, bytes());
  node.scalar = node_->scalar;
  node.polynomial = power_of(node_->polynomial, count);
  if (node_->is_repetition()) {
    node.parts = node_->parts;
  } else if (!node_->is_run()) {
    node.parts = {node_};
  }
  return Signature(std::make_shared<Node>(std::move(node)));
}

Signature Signature::sequence(const std::vector<Signature>& parts) {
  Node node;
  bool one_run = true;
  for (const Signature& part : parts) {
    if (part.bytes() == 0) continue;
    const Node& added = *part.node_;
    if (node.parts.empty()) node.scalar = added.scalar;
    one_run = one_run && added.is_run() && added.scalar == node.scalar;
    node.bytes = datatype::checked_sum(node.bytes, added.bytes);
    node.polynomial = followed_by(node.polynomial, added.polynomial);
    node.parts.push_back(part.node_);
  }
  if (node.parts.size() == 1) return Signature(std::move(node.parts.front()));
  if (one_run) node.parts.clear();
  return Signature(std::make_shared<Node>(std::move(node)));
}

}  // namespace heddle
