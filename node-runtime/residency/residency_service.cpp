// Placement of waiting requests: the part of Residency that assigns space.

#include <algorithm>
#include <fmt/core.h>
#include <utility>

#include "base/assert.hpp"
#include "base/error.hpp"
#include "base/units.hpp"
#include "node-runtime/residency/residency.hpp"

namespace heddle {

using protocol::AccessMode;

/// A frame at no cost: a gap, or discarded frames.
Residency::Extent Residency::allocate_unused(ResidentBlock id) {
  const std::uint64_t bytes = at(id).frame_bytes;
  const Extent extent = space_.allocate(bytes, id);
  const ResidentBlock discarded = lists_[static_cast<std::size_t>(ListKind::discarded)].first;
  if (extent != none || discarded == no_block) return extent;
  if (at(discarded).frame_bytes >= bytes) {
    take_frame(discarded);
    return space_.allocate(bytes, id);
  }
  const auto discarded_only = [this](ResidentBlock other) -> std::optional<FrameSpace::Cost> {
    if (at(other).list != ListKind::discarded) return std::nullopt;
    return FrameSpace::Cost{};
  };
  const FrameSpace::Window window = space_.cheapest_window(bytes, discarded_only);
  if (!window.valid()) return none;
  victims_.clear();
  space_.claim(window, id, victims_);
  for (const ResidentBlock victim : victims_) take_frame(victim);
  space_.take(window.first, bytes);
  return window.first;
}

/// Frames from unused space for the uses without one (all are held, to be overwritten); all or
/// none.
bool Residency::take_unused_frames(std::span<const Use> uses) {
  std::array<ResidentBlock, uses_max> given;
  std::size_t count = 0;
  for (const Use& use : uses) {
    if (at(use.block).extent != none) continue;
    const Extent extent = allocate_unused(use.block);
    if (extent == none) {
      while (count > 0) take_frame(given.at(--count));
      return false;
    }
    give_frame(use.block, extent);
    given.at(count++) = use.block;
  }
  return true;
}

/// A single frame that is the cheapest window, if that is obvious: no gap suffices, so any window
/// has a frame and costs at least as much as the discarded or else the least recently used clean
/// one.
ResidentBlock Residency::lone_victim(std::uint64_t bytes) const {
  const auto first_of = [this](ListKind kind) {
    return lists_[static_cast<std::size_t>(kind)].first;
  };
  ResidentBlock victim = first_of(ListKind::discarded);
  if (victim == no_block) victim = first_of(ListKind::clean);
  return victim != no_block && at(victim).frame_bytes >= bytes ? victim : no_block;
}

/// Gives a held block a frame, or a claim to one. False if there is no window.
bool Residency::provide_space(ResidentBlock id, Actions& actions) {
  const std::uint64_t bytes = at(id).frame_bytes;
  Extent extent = space_.allocate(bytes, id);
  if (extent == none) {
    if (const ResidentBlock victim = lone_victim(bytes); victim != no_block) {
      take_frame(victim);
      extent = space_.allocate(bytes, id);
    }
  }
  if (extent != none) {
    give_frame(id, extent);
    frame_arrived(id, actions);
    return true;
  }
  const auto cost_of = [this](ResidentBlock other) -> std::optional<FrameSpace::Cost> {
    const Block& b = at(other);
    if (b.pins > 0 || b.fetching) return std::nullopt;
    // Costs more than a clean frame, less than another write-back.
    if (b.writing_back) return FrameSpace::Cost{1, b.last_use};
    if (b.content == Content::invalid) return FrameSpace::Cost{};
    return FrameSpace::Cost{b.content == Content::modified ? b.frame_bytes : 0, b.last_use};
  };
  const FrameSpace::Window window = space_.cheapest_window(bytes, cost_of);
  if (!window.valid()) return false;
  victims_.clear();
  space_.claim(window, id, victims_);
  at(id).claim = window.first;
  for (const ResidentBlock victim : victims_) {
    Block& b = at(victim);
    if (b.writing_back) {
      raise(b, at(id).priority);
    } else if (b.content == Content::modified) {
      start_write_back(victim, at(id).priority, actions);
    } else {
      take_frame(victim);
    }
  }
  try_take_claim(id, actions);
  return true;
}

void Residency::frame_arrived(ResidentBlock id, Actions& actions) {
  const Block& b = at(id);
  if (b.content == Content::backed && b.held_as != AccessMode::write) start_fetch(id, actions);
}

void Residency::try_take_claim(ResidentBlock id, Actions& actions) {
  Block& b = at(id);
  if (!space_.is_complete(b.claim)) return;
  const Extent extent = std::exchange(b.claim, none);
  space_.take(extent, b.frame_bytes);
  give_frame(id, extent);
  frame_arrived(id, actions);
}

/// Holds further blocks of the request as space permits. True if it holds all.
bool Residency::place(Request& request, Actions& actions) {
  // First those that are resident, so that they are not evicted for the rest.
  for (std::size_t i = 0; i < request.count; ++i) {
    const Block& b = at(request.uses[i].block);
    if (request.holds(i) || (b.extent == none && b.claim == none) || is_claimed(b)) continue;
    hold(request.uses[i]);
    request.held |= static_cast<std::uint16_t>(1U << i);
  }
  bool complete = true;
  for (std::size_t i = 0; i < request.count; ++i) {
    if (request.holds(i)) continue;
    const Use& use = request.uses[i];
    if (is_claimed(at(use.block))) {
      complete = false;  // being evicted; it is fetched again afterwards
      continue;
    }
    hold(use);
    if (provide_space(use.block, actions)) {
      request.held |= static_cast<std::uint16_t>(1U << i);
    } else {
      let_go(use.block);
      complete = false;
    }
  }
  return complete;
}

void Residency::hand_out(Actions& actions) {
  for (std::size_t i = 0; i < placed_;) {
    const Request& request = queue_[i];
    const std::span<const Use> uses = uses_of(request);
    const bool ready = std::all_of(uses.begin(), uses.end(), [this](const Use& use) {
      return is_usable(at(use.block), use.mode);
    });
    if (!ready) {
      ++i;
      continue;
    }
    actions.ready.push_back(request.id);
    handed_out_ += request.count;
    queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(i));
    --placed_;
  }
}

void Residency::write_back_early(Actions& actions) {
  const bool pressure = backed_count_ > left_count_ || somebody_waits();
  if (!pressure) return;
  const auto dirty_max =
      static_cast<std::uint64_t>(options_.dirty_share_max * static_cast<double>(space_.bytes()));
  const List& dirty = lists_[static_cast<std::size_t>(ListKind::dirty)];
  while (write_backs_ < options_.early_writes && dirty.first != no_block &&
         dirty_bytes_ - writing_bytes_ > dirty_max) {
    start_write_back(dirty.first, least_urgent, actions);
  }
}

void Residency::drop_request(std::size_t index) {
  const Request request = queue_[index];
  for (std::size_t i = 0; i < request.count; ++i) {
    if (request.holds(i)) let_go(request.uses[i].block);
  }
  if (index < placed_) {
    --placed_;
  } else if (index == placed_) {
    overtakes_ = 0;
  }
  queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(index));
}

void Residency::refuse_head() {
  std::uint64_t largest = 0;
  for (const Block& b : blocks_) largest = b.exists ? std::max(largest, b.bytes) : largest;
  const std::size_t uses = queue_[placed_].count;
  drop_request(placed_);
  throw Error(
      ErrorCode::usage,
      fmt::format(
          "the {} tiles of a task do not fit into the device's pool of {}, which is cut up "
          "by some of them; {} suffice always; use smaller tiles",
          uses, format_bytes(space_.bytes()),
          format_bytes(minimum_bytes(largest, uses, 0, BlockSizes::mixed, options_.alignment))));
}

void Residency::serve(Actions& actions) {
  while (somebody_waits() && place(queue_[placed_], actions)) {
    ++placed_;
    overtakes_ = 0;
  }
  hand_out(actions);
  write_back_early(actions);
  HEDDLE_EXPENSIVE(is_valid());
  const bool nothing_will_happen =
      placed_ == 0 && handed_out_ == 0 && fetches_ == 0 && write_backs_ == 0;
  if (somebody_waits() && nothing_will_happen) refuse_head();
}

}  // namespace heddle
