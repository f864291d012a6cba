#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "base/futex.hpp"

namespace heddle::collectives {

/// Memory that a group's members on one host share: each has a line for the operation under way and
/// the one before, and a slot behind each for what does not fit there. Members number their
/// operations 1, 2, ... alike.
///
/// A member posts each operation: that it has come, what it calls, and perhaps some bytes for the
/// others. Who posts operation k has taken all that it wants of those before k: posting waits until
/// all members have posted k - 1, and so taken what they want of k - 2, whose lines and slots k
/// has.
///
/// No deadlock: posting k waits for posts of k - 1 alone, taking from k for posts of k.
///
/// Memory orders: a line's contents and slot are written before its number (release) and read
/// behind it (acquire); nobody writes them again before all have posted behind reading (the same
/// pair of the number, the other way round).
///
/// Thread: one at a time of each member.
class Board {
 public:
  static constexpr std::size_t inline_bytes = 40;
  static constexpr std::size_t slot_bytes = 32768;
  using Number = std::uint64_t;

  /// What a board of that many members takes.
  [[nodiscard]] static std::size_t bytes_for(std::int32_t members);

  /// How long a member that waits looks (relax_cpu between looks, 20 to 50 ns), and then lets
  /// other threads of its core run between looks (sched_yield), before it sleeps.
  struct Patience {
    std::int32_t looks = 4000;
    std::int32_t yields = 1000;
    /// Called now and then, some milliseconds apart; what it throws leaves post() and take().
    std::function<void()> now_and_then;
    /// What a member does instead of sleeping; null: it sleeps.
    std::function<void()> drive{};
  };

  /// `memory`: of bytes_for(members), zeros when the first member comes, aligned to 128 bytes; it
  /// outlives the board. `own`: this member.
  Board(std::span<std::byte> memory, std::int32_t members, std::int32_t own, Patience patience);

  [[nodiscard]] std::int32_t members() const { return members_; }
  [[nodiscard]] std::int32_t own() const { return own_; }
  /// The number of the last operation that this member has posted.
  [[nodiscard]] Number last() const { return last_; }

  /// Room for what the next post gives, at most slot_bytes: when it returns nobody reads it any
  /// more. Write into it, then post(bytes). At most inline_bytes travel with the line itself.
  [[nodiscard]] std::span<std::byte> room(std::size_t bytes);
  /// This member has come to its next operation. `digest`: the same for calls that fit together.
  /// `bytes`: of the room, which were written.
  void post(std::uint64_t digest, std::size_t bytes = 0);

  /// What a member has posted in this member's last operation.
  struct Posted {
    std::uint64_t digest = 0;
    std::span<const std::byte> bytes;  ///< until this member posts again
  };
  /// Waits for that member to post.
  [[nodiscard]] Posted take(std::int32_t member);

  /// Numbers ascend by at most 1 between members that have posted.
  [[nodiscard]] bool is_valid() const;

 private:
  struct alignas(64) Line {
    std::atomic<Number> number{0};
    std::uint64_t digest = 0;
    std::uint32_t bytes = 0;
    std::array<std::byte, inline_bytes> content{};
  };
  static_assert(sizeof(Line) == 64);
  /// Two lines: an operation with an odd number, and one with an even.
  struct alignas(cache_line) Member {
    std::array<Line, 2> lines;
  };

  [[nodiscard]] Line& line(std::int32_t member, Number number) const;
  [[nodiscard]] std::byte* slot(std::int32_t member, Number number) const;
  void wait_for(std::int32_t member, Number number);
  void wait_for_room();

  SharedDoorbell* bell_;
  Member* lines_;
  std::byte* slots_;
  std::int32_t members_;
  std::int32_t own_;
  Patience patience_;
  Number last_ = 0;
  Number room_for_ = 0;  ///< the number that all have made room for
};

}  // namespace heddle::collectives
