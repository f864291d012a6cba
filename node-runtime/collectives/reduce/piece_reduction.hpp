#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "node-runtime/collectives/reduce/definition.hpp"
#include "node-runtime/collectives/schedule/bracket.hpp"

namespace heddle::reduction {

/// A reduction on the host, piece by piece, so that what lies between inputs and outputs stays in
/// the core's cache. An output may be one of the inputs: a piece is written when all of it was
/// read.
class PieceReduction {
 public:
  PieceReduction(PairLoop loop, const void* functor, std::size_t element_bytes,
                 std::span<const void* const> inputs, std::span<void* const> outputs)
      : loop_(loop),
        functor_(functor),
        element_bytes_(element_bytes),
        at_a_time_(static_cast<std::int64_t>(piece_bytes / element_bytes)),
        inputs_(inputs),
        outputs_(outputs) {}

  void run(std::int64_t count) {
    const collectives::Bracket bracket(static_cast<std::int32_t>(inputs_.size()));
    for (std::int64_t begin = 0; begin < count; begin += at_a_time_) {
      offset_ = static_cast<std::size_t>(begin) * element_bytes_;
      count_ = std::min(at_a_time_, count - begin);
      const std::size_t bytes = static_cast<std::size_t>(count_) * element_bytes_;
      std::byte* const first = static_cast<std::byte*>(outputs_.front()) + offset_;
      if (inputs_.size() == 1) {
        std::memmove(first, value_of(bracket.all(), nullptr, 0), bytes);
      } else {
        reduce(bracket.all(), first, 0);
      }
      for (void* const other : outputs_.subspan(1)) {
        std::memcpy(static_cast<std::byte*>(other) + offset_, first, bytes);
      }
    }
  }

 private:
  static constexpr std::size_t piece_bytes = 2048;
  static_assert(piece_bytes >= element_bytes_max);
  static constexpr std::size_t depth_max = 4;
  static_assert(std::size_t{1} << depth_max >= inputs_max);

  /// The value of a range of inputs: where it is, or made in `room`.
  const void* value_of(const collectives::RankRange& range, std::byte* room, std::size_t depth) {
    if (range.size() > 1) {
      reduce(range, room, depth);
      return room;
    }
    const void* const input = inputs_[static_cast<std::size_t>(range.begin.value())];
    return static_cast<const std::byte*>(input) + offset_;
  }

  void reduce(const collectives::RankRange& range, std::byte* to, std::size_t depth) {
    using collectives::Bracket;
    auto& [left_room, right_room] = rooms_.at(depth);
    const void* const left = value_of(Bracket::left(range), left_room.data(), depth + 1);
    const void* const right = value_of(Bracket::right(range), right_room.data(), depth + 1);
    loop_(functor_, to, left, right, count_);
  }

  struct alignas(64) Rooms {
    std::array<std::byte, piece_bytes> left;
    std::array<std::byte, piece_bytes> right;
  };
  PairLoop loop_;
  const void* functor_;
  std::size_t element_bytes_;
  std::int64_t at_a_time_;
  std::span<const void* const> inputs_;
  std::span<void* const> outputs_;
  std::size_t offset_ = 0;
  std::int64_t count_ = 0;
  std::array<Rooms, depth_max> rooms_;
};

}  // namespace heddle::reduction
