#include "node-runtime/residency/residency.hpp"

#include <algorithm>
#include <fmt/core.h>
#include <utility>

#include "base/assert.hpp"
#include "base/error.hpp"
#include "base/units.hpp"

namespace heddle {

using protocol::AccessMode;

std::uint64_t Residency::minimum_bytes(std::uint64_t largest_block_bytes, std::size_t uses,
                                       std::size_t others_pinned, BlockSizes sizes,
                                       std::size_t alignment) {
  HEDDLE_CHECK(uses > 0 && alignment > 0, "{} uses, alignment {}", uses, alignment);
  const std::uint64_t pinned = uses - 1 + others_pinned;
  const std::uint64_t largest = frame_bytes(largest_block_bytes, alignment);
  return (sizes == BlockSizes::equal ? pinned + 1 : 2 * pinned + 1) * largest;
}

Residency::Residency(const Options& options)
    : options_(options), space_(options.bytes, options.alignment) {
  HEDDLE_CHECK(options.dirty_share_max >= 0 && options.dirty_share_max <= 1, "{}",
               options.dirty_share_max);
}

ResidentBlock Residency::add_block(std::uint64_t bytes) {
  if (unused_.empty()) {
    unused_.emplace_back(static_cast<std::int32_t>(blocks_.size()));
    blocks_.emplace_back();
  }
  const ResidentBlock id = unused_.back();
  unused_.pop_back();
  Block& b = at(id);
  b = {};
  b.exists = true;
  b.bytes = bytes;
  b.frame_bytes = space_.rounded(bytes);
  return id;
}

void Residency::remove_block(ResidentBlock id) {
  Block& b = existing(id);
  HEDDLE_CHECK(b.pins == 0 && b.host_pins == 0 && !is_in_transfer(id),
               "block {}: {} pins, {} on the host, fetching {}, writing {}", id.value(), b.pins,
               b.host_pins, b.fetching, b.writing_back);
  set_content(b, Content::invalid);
  if (b.extent != none) take_frame(id);
  b.exists = false;
  unused_.push_back(id);
}

Residency::Block& Residency::existing(ResidentBlock id) {
  HEDDLE_CHECK(
      id.value() >= 0 && static_cast<std::size_t>(id.value()) < blocks_.size() && at(id).exists,
      "block {}", id.value());
  return at(id);
}

std::uint64_t Residency::offset_of(ResidentBlock id) const {
  HEDDLE_CHECK(is_resident(id), "block {} is not resident", id.value());
  return space_.begin(at(id).extent);
}

bool Residency::is_in_transfer(ResidentBlock id) const {
  return at(id).fetching || at(id).writing_back;
}

// States and lists

void Residency::set_content(Block& b, Content content) {
  if (b.content == Content::modified) {
    dirty_bytes_ -= b.frame_bytes;
    if (b.writing_back) writing_bytes_ -= b.frame_bytes;
  }
  if (b.content == Content::backed) --backed_count_;
  if (b.is_left) --left_count_;
  b.is_left = false;
  b.content = content;
  if (content == Content::modified) dirty_bytes_ += b.frame_bytes;
  if (content == Content::backed) ++backed_count_;
}

bool Residency::is_usable(const Block& b, AccessMode mode) const {
  if (b.extent == none || b.fetching || is_claimed(b)) return false;
  // A frame being written back may be read but not changed.
  return mode == AccessMode::read || !b.writing_back;
}

Residency::ListKind Residency::list_for(const Block& b) {
  if (b.extent == none || b.pins > 0 || b.fetching || b.writing_back) return ListKind::off;
  switch (b.content) {
    case Content::invalid:
      return ListKind::discarded;
    case Content::shared:
      return ListKind::clean;
    case Content::modified:
      return ListKind::dirty;
    case Content::backed:
      break;
  }
  HEDDLE_CHECK(false, "an idle frame without the content of its block");
  return ListKind::off;
}

void Residency::unlink(ResidentBlock id) {
  Block& b = at(id);
  if (b.list == ListKind::off) return;
  List& list = lists_.at(static_cast<std::size_t>(b.list));
  (b.before == no_block ? list.first : at(b.before).after) = b.after;
  (b.after == no_block ? list.last : at(b.after).before) = b.before;
  b.before = b.after = no_block;
  b.list = ListKind::off;
}

void Residency::link(ResidentBlock id) {
  Block& b = at(id);
  List& list = lists_.at(static_cast<std::size_t>(b.list));
  // Usually appended; an early write-back inserts near the front.
  ResidentBlock after = no_block;
  if (list.last != no_block && at(list.last).last_use > b.last_use) {
    after = list.first;
    while (at(after).last_use < b.last_use) after = at(after).after;
  }
  b.after = after;
  b.before = after == no_block ? list.last : at(after).before;
  (b.before == no_block ? list.first : at(b.before).after) = id;
  (after == no_block ? list.last : at(after).before) = id;
}

void Residency::relist(ResidentBlock id) {
  const ListKind kind = list_for(at(id));
  unlink(id);
  at(id).list = kind;
  if (kind != ListKind::off) link(id);
}

// Pins and frames

void Residency::hold(const Use& use) {
  Block& b = at(use.block);
  HEDDLE_CHECK(b.pins == 0 || (use.mode == AccessMode::read && b.held_as == AccessMode::read),
               "block {} is written while it is in use", use.block.value());
  HEDDLE_CHECK(!b.host_writes && (use.mode == AccessMode::read || b.host_pins == 0),
               "block {} is {} while the host {} it", use.block.value(),
               use.mode == AccessMode::read ? "read" : "written",
               b.host_writes ? "writes" : "uses");
  HEDDLE_CHECK(use.mode == AccessMode::write || b.content != Content::invalid,
               "block {} is read but has no content", use.block.value());
  b.held_as = use.mode;
  b.tile = use.tile;
  if (b.pins == 0 && !is_in_transfer(use.block)) b.priority = use.priority;
  raise(b, use.priority);
  if (++b.pins == 1) unlink(use.block);
}

/// Undoes hold(): the frame will not be used for this purpose.
void Residency::let_go(ResidentBlock id) {
  Block& b = at(id);
  if (--b.pins > 0) return;
  if (b.claim != none) {
    space_.drop(b.claim);
    b.claim = none;
  }
  if (b.extent != none && b.content == Content::backed && !b.fetching) take_frame(id);
  relist(id);
}

void Residency::give_frame(ResidentBlock id, Extent extent) {
  Block& b = at(id);
  HEDDLE_DEBUG(b.extent == none);
  b.extent = extent;
  resident_bytes_ += b.frame_bytes;
  statistics_.resident_bytes_max = std::max(statistics_.resident_bytes_max, resident_bytes_);
}

/// Frees the frame; its content is lost unless the backing has it.
void Residency::take_frame(ResidentBlock id) {
  Block& b = at(id);
  HEDDLE_DEBUG(b.content != Content::modified && !b.fetching && !b.writing_back);
  if (b.content == Content::shared) {
    set_content(b, Content::backed);
    ++statistics_.evictions;
  }
  unlink(id);
  resident_bytes_ -= b.frame_bytes;
  space_.release(std::exchange(b.extent, none));
}

void Residency::start_fetch(ResidentBlock id, Actions& actions) {
  Block& b = at(id);
  b.fetching = true;
  ++fetches_;
  actions.fetches.push_back({id, space_.begin(b.extent), b.bytes, b.tile});
}

void Residency::start_write_back(ResidentBlock id, std::int32_t priority, Actions& actions) {
  Block& b = at(id);
  HEDDLE_DEBUG(b.content == Content::modified && (b.pins == 0 || b.held_as == AccessMode::read));
  unlink(id);
  if (b.pins == 0) b.priority = priority;
  raise(b, priority);
  b.writing_back = true;
  writing_bytes_ += b.frame_bytes;
  ++write_backs_;
  actions.write_backs.push_back({id, space_.begin(b.extent), b.bytes, b.tile});
}

// Events

bool Residency::try_acquire(std::span<const Use> uses, Overtaking overtaking) {
  HEDDLE_CHECK(uses.size() <= uses_max, "{} uses", uses.size());
  const bool is_limited = overtaking == Overtaking::limited;
  if (somebody_waits() && is_limited && overtakes_ >= options_.overtakes_max) return false;
  bool frames_wanted = false;
  for (const Use& use : uses) {
    const Block& b = existing(use.block);
    if (is_usable(b, use.mode)) continue;
    const bool needs_only_space =
        use.mode == AccessMode::write && b.extent == none && b.claim == none;
    if (!needs_only_space || somebody_waits()) return false;
    frames_wanted = true;
  }
  for (const Use& use : uses) hold(use);
  if (frames_wanted && !take_unused_frames(uses)) {
    for (const Use& use : uses) let_go(use.block);
    return false;
  }
  handed_out_ += static_cast<std::int64_t>(uses.size());
  if (somebody_waits() && is_limited) ++overtakes_;
  HEDDLE_EXPENSIVE(is_valid());
  return true;
}

Residency::Request Residency::new_request(std::span<const Use> uses) {
  HEDDLE_CHECK(uses.size() <= uses_max, "{} uses", uses.size());
  Request request;
  request.id = next_ticket_;
  ++next_ticket_;
  request.count = static_cast<std::uint8_t>(uses.size());
  std::copy(uses.begin(), uses.end(), request.uses.begin());
  return request;
}

Residency::TicketId Residency::request(std::span<const Use> uses, Actions& actions) {
  const Request request = new_request(uses);
  std::uint64_t bytes = 0;
  for (const Use& use : uses) {
    const Block& b = existing(use.block);
    bytes += b.frame_bytes;
    HEDDLE_DEBUG(std::count_if(uses.begin(), uses.end(),
                               [&](const Use& other) { return other.block == use.block; }) == 1,
                 "block {} is used twice", use.block.value());
    if (b.list == ListKind::off || b.list == ListKind::discarded) continue;
    // About to be used: others should be evicted first while the request waits.
    at(use.block).last_use = ++clock_;
    relist(use.block);
  }
  if (bytes > space_.bytes()) {
    throw Error(ErrorCode::usage,
                fmt::format("the {} tiles of a task take {} of device memory, but the device's "
                            "pool has {}; use smaller tiles",
                            uses.size(), format_bytes(bytes), format_bytes(space_.bytes())));
  }
  queue_.push_back(request);
  serve(actions);
  return request.id;
}

bool Residency::cancel(TicketId ticket, Actions& actions) {
  const auto found =
      std::find_if(queue_.begin(), queue_.end(), [&](const Request& r) { return r.id == ticket; });
  if (found == queue_.end()) return false;
  drop_request(static_cast<std::size_t>(found - queue_.begin()));
  serve(actions);
  return true;
}

void Residency::release(std::span<const Use> uses, Actions& actions) {
  for (const Use& use : uses) {
    Block& b = existing(use.block);
    HEDDLE_CHECK(b.pins > 0 && b.held_as == use.mode,
                 "block {}: {} pins of mode {}, released as {}", use.block.value(), b.pins,
                 static_cast<int>(b.held_as), static_cast<int>(use.mode));
    if (use.mode != AccessMode::read) set_content(b, Content::modified);
    b.last_use = ++clock_;
    let_go(use.block);
  }
  handed_out_ -= static_cast<std::int64_t>(uses.size());
  HEDDLE_CHECK(handed_out_ >= 0);
  serve(actions);
}

bool Residency::adopt_frame(ResidentBlock id) {
  Block& b = existing(id);
  HEDDLE_CHECK(b.content == Content::invalid && b.pins == 0, "block {} has {} pins", id.value(),
               b.pins);
  if (b.fetching) return false;
  if (b.extent == none) {
    const Extent extent = somebody_waits() ? none : allocate_unused(id);
    if (extent == none) return false;
    give_frame(id, extent);
  }
  set_content(b, Content::modified);
  if (b.writing_back) writing_bytes_ += b.frame_bytes;
  relist(id);
  return true;
}

void Residency::adopt_backing(ResidentBlock id) {
  Block& b = existing(id);
  HEDDLE_CHECK(b.content == Content::invalid && b.pins == 0 && (b.extent == none || b.fetching),
               "block {} has {} pins", id.value(), b.pins);
  set_content(b, Content::backed);
  relist(id);
}

void Residency::discard(ResidentBlock id, Actions& actions) {
  Block& b = existing(id);
  HEDDLE_CHECK(b.pins == 0 && b.host_pins == 0,
               "block {} is discarded with {} pins, {} on the host", id.value(), b.pins,
               b.host_pins);
  set_content(b, Content::invalid);
  b.last_use = ++clock_;
  relist(id);
  serve(actions);
}

void Residency::fetch_finished(ResidentBlock id, Actions& actions) {
  Block& b = existing(id);
  HEDDLE_CHECK(b.fetching, "block {}", id.value());
  b.fetching = false;
  --fetches_;
  ++statistics_.fetches;
  statistics_.fetched_bytes += b.bytes;
  if (b.content == Content::backed) set_content(b, Content::shared);
  relist(id);
  serve_host(actions);
  serve(actions);
}

void Residency::write_back_finished(ResidentBlock id, Actions& actions) {
  Block& b = existing(id);
  HEDDLE_CHECK(b.writing_back, "block {}", id.value());
  if (b.content == Content::modified) set_content(b, Content::shared);
  b.writing_back = false;
  --write_backs_;
  ++statistics_.write_backs;
  statistics_.written_bytes += b.bytes;
  const ResidentBlock claimant = space_.claimant(b.extent);
  if (claimant == no_block) {
    relist(id);
  } else {
    take_frame(id);
    try_take_claim(claimant, actions);
  }
  serve_host(actions);
  serve(actions);
}

}  // namespace heddle
