#include "node-runtime/collectives/board/board.hpp"

#include <sched.h>
#include <utility>

#include "base/assert.hpp"
#include "base/error.hpp"

namespace heddle::collectives {
namespace {

constexpr std::int64_t sleep_us = 2000;

constexpr std::size_t slots_at(std::size_t members) {
  constexpr std::size_t head = sizeof(SharedDoorbell);
  return head + members * cache_line;
}

}  // namespace

std::size_t Board::bytes_for(std::int32_t members) {
  const auto count = static_cast<std::size_t>(members);
  return slots_at(count) + 2 * count * slot_bytes;
}

Board::Board(std::span<std::byte> memory, std::int32_t members, std::int32_t own, Patience patience)
    : bell_(reinterpret_cast<SharedDoorbell*>(memory.data())),
      lines_(reinterpret_cast<Member*>(memory.data() + sizeof(SharedDoorbell))),
      slots_(memory.data() + slots_at(static_cast<std::size_t>(members))),
      members_(members),
      own_(own),
      patience_(std::move(patience)) {
  static_assert(sizeof(Member) == cache_line && std::atomic<Number>::is_always_lock_free);
  HEDDLE_CHECK(members >= 1 && own >= 0 && own < members && memory.size() >= bytes_for(members) &&
                   reinterpret_cast<std::uintptr_t>(memory.data()) % cache_line == 0,
               "member {} of {} on a board of {} bytes", own, members, memory.size());
}

Board::Line& Board::line(std::int32_t member, Number number) const {
  return lines_[member].lines.at(number % 2);
}

std::byte* Board::slot(std::int32_t member, Number number) const {
  return slots_ + (2 * static_cast<std::size_t>(member) + number % 2) * slot_bytes;
}

/// A member posts its numbers in order, each in the line of its parity: the line has this one, or
/// one before, or that behind the next, which waits for this member.
void Board::wait_for(std::int32_t member, Number number) {
  const std::atomic<Number>& posted = line(member, number).number;
  // A member may post and then leave by an exception: what it has posted counts nevertheless.
  const auto look_up = [&] {
    try {
      if (patience_.now_and_then) patience_.now_and_then();
    } catch (const Error&) {
      if (posted.load(std::memory_order_acquire) < number) throw;
    }
  };
  const auto look_up_after = [&](std::int32_t tries, std::int32_t some) {
    if (tries % some == some - 1) look_up();
  };
  for (std::int32_t looks = 0; looks < patience_.looks; ++looks) {
    if (posted.load(std::memory_order_acquire) >= number) return;
    relax_cpu();
    look_up_after(looks, 1 << 16);
  }
  for (std::int32_t yields = 0; yields < patience_.yields; ++yields) {
    if (posted.load(std::memory_order_acquire) >= number) return;
    ::sched_yield();
    look_up_after(yields, 1 << 10);
  }
  for (;;) {
    const SharedDoorbell::Ticket ticket = bell_->ticket();
    if (posted.load(std::memory_order_acquire) >= number) return;
    patience_.drive ? patience_.drive() : bell_->wait(ticket, sleep_us);
    look_up();
  }
}

void Board::wait_for_room() {
  if (room_for_ == last_ + 1) return;
  if (last_ > 0) {
    for (std::int32_t member = 0; member < members_; ++member) wait_for(member, last_);
  }
  room_for_ = last_ + 1;
}

std::span<std::byte> Board::room(std::size_t bytes) {
  HEDDLE_CHECK(bytes <= slot_bytes, "{} bytes on a board with slots of {}", bytes, slot_bytes);
  wait_for_room();
  const Number next = last_ + 1;
  if (bytes <= inline_bytes) return std::span(line(own_, next).content).first(bytes);
  return {slot(own_, next), bytes};
}

void Board::post(std::uint64_t digest, std::size_t bytes) {
  wait_for_room();
  Line& own = line(own_, ++last_);
  own.digest = digest;
  own.bytes = static_cast<std::uint32_t>(bytes);
  own.number.store(last_, std::memory_order_release);
  bell_->ring_all();
}

Board::Posted Board::take(std::int32_t member) {
  wait_for(member, last_);
  const Line& posted = line(member, last_);
  const std::size_t bytes = posted.bytes;
  if (bytes <= inline_bytes) return {posted.digest, std::span(posted.content).first(bytes)};
  return {posted.digest, {slot(member, last_), bytes}};
}

bool Board::is_valid() const {
  for (std::int32_t member = 0; member < members_; ++member) {
    const Number other = std::max(lines_[member].lines[0].number.load(std::memory_order_acquire),
                                  lines_[member].lines[1].number.load(std::memory_order_acquire));
    if (other + 1 < last_ || other > last_ + 1) return false;
  }
  return true;
}

}  // namespace heddle::collectives
