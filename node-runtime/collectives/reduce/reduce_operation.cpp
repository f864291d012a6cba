#include "node-runtime/collectives/reduce/reduce_operation.hpp"

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstring>

#include "base/assert.hpp"
#include "base/require.hpp"
#include "node-runtime/collectives/reduce/element_operations.hpp"
#include "node-runtime/collectives/schedule/bracket.hpp"

namespace heddle {
namespace {

using collectives::Bracket;
using collectives::RankRange;

/// output[i] := a[i] op b[i]; the output may be one of the two.
using Loop = void (*)(void* output, const void* a, const void* b, std::int64_t count);

template <class Operation, class T>
[[gnu::always_inline]] inline void loop_body(void* output, const void* a, const void* b,
                                             std::int64_t count) {
  auto* const to = static_cast<T*>(output);
  const auto* const left = static_cast<const T*>(a);
  const auto* const right = static_cast<const T*>(b);
  // Where the output is an input, each element is read before it is written.
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) to[i] = Operation{}(left[i], right[i]);
}

template <class Operation, class T>
void loop_base(void* output, const void* a, const void* b, std::int64_t count) {
  loop_body<Operation, T>(output, a, b, count);
}

#if defined(__x86_64__)
template <class Operation, class T>
[[gnu::target("avx2")]] void loop_avx2(void* output, const void* a, const void* b,
                                       std::int64_t count) {
  loop_body<Operation, T>(output, a, b, count);
}
#endif

template <class Operation, class T>
Loop loop_of() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return loop_avx2<Operation, T>;
#endif
  return loop_base<Operation, T>;
}

template <class T>
concept is_integer = std::integral<T>;
template <class T>
concept is_real = std::integral<T> || std::floating_point<T>;

/// Which elements an operation means something for.
template <class Operation, class T>
constexpr bool takes_element() {
  using namespace reduction;  // NOLINT(google-build-using-namespace)
  if constexpr (std::same_as<Operation, Sum> || std::same_as<Operation, Product>) return true;
  if constexpr (std::same_as<Operation, Minimum> || std::same_as<Operation, Maximum>) {
    return is_real<T>;
  }
  return is_integer<T>;
}

template <class Operation, class T>
Loop loop_if_taken() {
  if constexpr (takes_element<Operation, T>()) {
    return loop_of<Operation, T>();
  } else {
    return nullptr;
  }
}

template <class Operation>
constexpr bool is_bitwise =
    std::same_as<Operation, reduction::BitAnd> || std::same_as<Operation, reduction::BitOr> ||
    std::same_as<Operation, reduction::BitXor>;

template <class Operation>
Loop loop_for(Scalar scalar) {
  switch (scalar) {
    case Scalar::byte:
      return is_bitwise<Operation> ? loop_if_taken<Operation, std::uint8_t>() : nullptr;
    case Scalar::int8:
      return loop_if_taken<Operation, std::int8_t>();
    case Scalar::int16:
      return loop_if_taken<Operation, std::int16_t>();
    case Scalar::int32:
      return loop_if_taken<Operation, std::int32_t>();
    case Scalar::int64:
      return loop_if_taken<Operation, std::int64_t>();
    case Scalar::uint8:
      return loop_if_taken<Operation, std::uint8_t>();
    case Scalar::uint16:
      return loop_if_taken<Operation, std::uint16_t>();
    case Scalar::uint32:
      return loop_if_taken<Operation, std::uint32_t>();
    case Scalar::uint64:
      return loop_if_taken<Operation, std::uint64_t>();
    case Scalar::float32:
      return loop_if_taken<Operation, float>();
    case Scalar::float64:
      return loop_if_taken<Operation, double>();
    case Scalar::complex_float32:
      return loop_if_taken<Operation, reduction::Complex<float>>();
    case Scalar::complex_float64:
      return loop_if_taken<Operation, reduction::Complex<double>>();
  }
  return nullptr;
}

/// Elements of some inputs, reduced piece by piece, so that what lies between stays in the core's
/// cache.
class PieceReduction {
 public:
  PieceReduction(Loop loop, std::span<const void* const> inputs, std::size_t element_bytes)
      : loop_(loop),
        inputs_(inputs),
        element_bytes_(element_bytes),
        at_a_time_(static_cast<std::int64_t>(piece_bytes / element_bytes)) {}

  void run(void* output, std::int64_t count) {
    const Bracket bracket(static_cast<std::int32_t>(inputs_.size()));
    for (std::int64_t begin = 0; begin < count; begin += at_a_time_) {
      offset_ = static_cast<std::size_t>(begin) * element_bytes_;
      count_ = std::min(at_a_time_, count - begin);
      reduce(bracket.all(), static_cast<std::byte*>(output) + offset_, 0);
    }
  }

 private:
  static constexpr std::size_t piece_bytes = 2048;
  static constexpr std::size_t depth_max = 4;
  static_assert(std::size_t{1} << depth_max >= ReduceOperation::inputs_max);

  /// The value of a range of inputs: where it is, or made in `room`.
  const void* value_of(const RankRange& range, std::byte* room, std::size_t depth) {
    if (range.size() > 1) {
      reduce(range, room, depth);
      return room;
    }
    const void* const input = inputs_[static_cast<std::size_t>(range.begin.value())];
    return static_cast<const std::byte*>(input) + offset_;
  }

  /// The output may be one of the inputs: it is written when all of the piece was read.
  void reduce(const RankRange& range, std::byte* to, std::size_t depth) {
    auto& [left_room, right_room] = rooms_.at(depth);
    const void* const left = value_of(Bracket::left(range), left_room.data(), depth + 1);
    const void* const right = value_of(Bracket::right(range), right_room.data(), depth + 1);
    loop_(to, left, right, count_);
  }

  struct alignas(64) Rooms {
    std::array<std::byte, piece_bytes> left;
    std::array<std::byte, piece_bytes> right;
  };
  Loop loop_;
  std::span<const void* const> inputs_;
  std::size_t element_bytes_;
  std::int64_t at_a_time_;
  std::size_t offset_ = 0;
  std::int64_t count_ = 0;
  std::array<Rooms, depth_max> rooms_;
};

constexpr std::array<std::string_view, 10> names{
    "sum",    "product", "minimum",     "maximum",    "bit_and",
    "bit_or", "bit_xor", "logical_and", "logical_or", "logical_xor"};

}  // namespace

std::string_view ReduceOperation::name() const {
  return names.at(static_cast<std::size_t>(kind_));
}

bool ReduceOperation::takes(Scalar scalar) const {
  return loop(scalar) != nullptr;
}

bool ReduceOperation::is_exact(Scalar scalar) const {
  const bool rounds = kind_ == Kind::sum || kind_ == Kind::product;
  const bool is_integer = scalar != Scalar::float32 && scalar != Scalar::float64 &&
                          scalar != Scalar::complex_float32 && scalar != Scalar::complex_float64;
  return !rounds || is_integer;
}

ReduceOperation::Loop ReduceOperation::loop(Scalar scalar) const {
  switch (kind_) {
    case Kind::sum:
      return loop_for<reduction::Sum>(scalar);
    case Kind::product:
      return loop_for<reduction::Product>(scalar);
    case Kind::minimum:
      return loop_for<reduction::Minimum>(scalar);
    case Kind::maximum:
      return loop_for<reduction::Maximum>(scalar);
    case Kind::bit_and:
      return loop_for<reduction::BitAnd>(scalar);
    case Kind::bit_or:
      return loop_for<reduction::BitOr>(scalar);
    case Kind::bit_xor:
      return loop_for<reduction::BitXor>(scalar);
    case Kind::logical_and:
      return loop_for<reduction::LogicalAnd>(scalar);
    case Kind::logical_or:
      return loop_for<reduction::LogicalOr>(scalar);
    case Kind::logical_xor:
      return loop_for<reduction::LogicalXor>(scalar);
  }
  return nullptr;
}

void ReduceOperation::reduce(Scalar scalar, void* output, std::span<const void* const> inputs,
                             std::int64_t count) const {
  const Loop two = loop(scalar);
  require(two != nullptr, "a reduction by {} of {} elements; it takes none of these", name(),
          name_of(scalar));
  require(!inputs.empty() && inputs.size() <= inputs_max && count >= 0,
          "a reduction of {} elements of {} inputs; 1 to {} inputs can be reduced", count,
          inputs.size(), inputs_max);
  const auto bytes = static_cast<std::size_t>(size_of(scalar));
  if (inputs.size() == 1) {
    if (count > 0) std::memmove(output, inputs[0], static_cast<std::size_t>(count) * bytes);
    return;
  }
  if (inputs.size() == 2) return two(output, inputs[0], inputs[1], count);
  PieceReduction(two, inputs, bytes).run(output, count);
}

}  // namespace heddle
