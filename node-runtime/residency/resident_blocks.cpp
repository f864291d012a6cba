#include "node-runtime/residency/resident_blocks.hpp"

#include <utility>

#include "base/assert.hpp"

namespace heddle {

using protocol::AccessMode;
using ListKind = EvictionLists::Kind;

ResidentBlock ResidentBlocks::add(std::uint64_t bytes) {
  if (unused_.empty()) {
    unused_.emplace_back(static_cast<std::int32_t>(blocks_.size()));
    blocks_.emplace_back();
    lists_.resize(blocks_.size());
  }
  const ResidentBlock id = unused_.back();
  unused_.pop_back();
  Block& b = mutable_at(id);
  HEDDLE_CHECK(!b.exists, "block {} exists twice", id.value());
  b = {};
  b.exists = true;
  b.bytes = bytes;
  b.frame_bytes = space_.rounded(bytes);
  return id;
}

void ResidentBlocks::remove(ResidentBlock id) {
  Block& b = mutable_existing(id);
  HEDDLE_CHECK(b.pins == 0 && b.host_pins == 0 && !b.is_in_transfer(),
               "block {}: {} pins, {} on the host, fetching {}, writing {}", id.value(), b.pins,
               b.host_pins, b.fetching, b.writing_back);
  set_content(b, BlockContent::invalid);
  if (b.extent != none) take_frame(id);
  b.exists = false;
  unused_.push_back(id);
}

const ResidentBlocks::Block& ResidentBlocks::existing(ResidentBlock id) const {
  HEDDLE_CHECK(
      id.value() >= 0 && static_cast<std::size_t>(id.value()) < blocks_.size() && at(id).exists,
      "block {}", id.value());
  return at(id);
}

std::uint64_t ResidentBlocks::largest_bytes() const {
  std::uint64_t largest = 0;
  for (const Block& b : blocks_) largest = b.exists ? std::max(largest, b.bytes) : largest;
  return largest;
}

// ---- states and lists --------------------------------------------------------------------------

void ResidentBlocks::set_content(Block& b, BlockContent content) {
  if (b.content == BlockContent::modified) {
    HEDDLE_DEBUG(totals_.dirty_bytes >= b.frame_bytes, "{} bytes dirty", totals_.dirty_bytes);
    totals_.dirty_bytes -= b.frame_bytes;
    if (b.writing_back) totals_.writing_bytes -= b.frame_bytes;
  }
  if (b.content == BlockContent::backed) --totals_.backed;
  if (b.is_left) --totals_.left;
  b.is_left = false;
  b.content = content;
  if (content == BlockContent::modified) totals_.dirty_bytes += b.frame_bytes;
  if (content == BlockContent::backed) ++totals_.backed;
}

ListKind ResidentBlocks::Block::list() const {
  if (extent == none || pins > 0 || is_in_transfer()) return ListKind::off;
  switch (content) {
    case BlockContent::invalid:
      return ListKind::discarded;
    case BlockContent::shared:
      return ListKind::clean;
    case BlockContent::modified:
      return ListKind::dirty;
    case BlockContent::backed:
      break;
  }
  HEDDLE_CHECK(false, "an idle frame without the content of its block");
  return ListKind::off;
}

void ResidentBlocks::relist(ResidentBlock id) {
  lists_.move(id, at(id).list(), at(id).last_use);
}

bool ResidentBlocks::is_usable(const Block& b, AccessMode mode) const {
  if (b.extent == none || b.fetching || is_claimed(b)) return false;
  // A frame that is being written back may be read but not changed.
  return mode == AccessMode::read || !b.writing_back;
}

// ---- pins --------------------------------------------------------------------------------------

void ResidentBlocks::touch(ResidentBlock id) {
  const ListKind kind = lists_.kind(id);
  if (kind == ListKind::off || kind == ListKind::discarded) return;
  mutable_at(id).last_use = ++clock_;
  relist(id);
}

void ResidentBlocks::hold(const ResidencyUse& use) {
  Block& b = mutable_at(use.block);
  HEDDLE_CHECK(b.pins == 0 || (use.mode == AccessMode::read && b.held_as == AccessMode::read),
               "block {} is written while it is in use", use.block.value());
  HEDDLE_CHECK(!b.host_writes && (use.mode == AccessMode::read || b.host_pins == 0),
               "block {} is {} while the host {} it", use.block.value(),
               use.mode == AccessMode::read ? "read" : "written",
               b.host_writes ? "writes" : "uses");
  HEDDLE_CHECK(use.mode == AccessMode::write || b.content != BlockContent::invalid,
               "block {} is read but has no content", use.block.value());
  b.held_as = use.mode;
  b.tile = use.tile;
  if (b.pins == 0 && !b.is_in_transfer()) b.priority = use.priority;
  b.raise(use.priority);
  if (++b.pins == 1) lists_.remove(use.block);
}

void ResidentBlocks::let_go(ResidentBlock id) {
  Block& b = mutable_at(id);
  HEDDLE_CHECK(b.pins > 0, "block {} has no pins", id.value());
  if (--b.pins > 0) return;
  if (b.claim != none) {
    space_.drop(b.claim);
    b.claim = none;
  }
  if (b.extent != none && b.content == BlockContent::backed && !b.fetching) take_frame(id);
  relist(id);
}

void ResidentBlocks::release(const ResidencyUse& use) {
  Block& b = mutable_existing(use.block);
  HEDDLE_CHECK(b.pins > 0 && b.held_as == use.mode, "block {}: {} pins of mode {}, released as {}",
               use.block.value(), b.pins, static_cast<int>(b.held_as), static_cast<int>(use.mode));
  if (use.mode != AccessMode::read) {
    HEDDLE_CHECK(b.extent != none && !b.writing_back, "block {} was written without a frame",
                 use.block.value());
    set_content(b, BlockContent::modified);
  }
  b.last_use = ++clock_;
  let_go(use.block);
}

// ---- uses on the host --------------------------------------------------------------------------

bool ResidentBlocks::Block::is_usable_on_host(AccessMode mode) const {
  // A block that is being fetched is in its backing too, and a transfer must not read what the host
  // writes.
  const bool is_backed = content == BlockContent::shared || content == BlockContent::backed;
  if (mode == AccessMode::read) return is_backed;
  return !is_in_transfer() && (is_backed || mode == AccessMode::write);
}

void ResidentBlocks::prepare_on_host(const ResidencyUse& use, ResidencyActions& actions) {
  Block& b = mutable_existing(use.block);
  HEDDLE_CHECK(use.mode == AccessMode::write || b.content != BlockContent::invalid,
               "block {} is read on the host but has no content", use.block.value());
  b.tile = use.tile;
  const bool is_wanted = use.mode != AccessMode::write && b.content == BlockContent::modified;
  if (is_wanted && !b.writing_back) {
    start_write_back(use.block, use.priority, actions);
  } else {
    b.raise(use.priority);
  }
}

void ResidentBlocks::hold_on_host(const ResidencyUse& use) {
  Block& b = mutable_existing(use.block);
  HEDDLE_DEBUG(b.is_usable_on_host(use.mode), "block {}", use.block.value());
  if (use.mode != AccessMode::read) {
    HEDDLE_CHECK(b.pins == 0 && b.host_pins == 0,
                 "block {} is written on the host while it is in use", use.block.value());
    set_content(b, BlockContent::backed);
    b.is_left = true;
    ++totals_.left;
    b.host_writes = true;
    if (b.extent != none) take_frame(use.block);
  }
  ++b.host_pins;
}

void ResidentBlocks::release_on_host(const ResidencyUse& use) {
  Block& b = mutable_existing(use.block);
  HEDDLE_CHECK(b.host_pins > 0 && (use.mode == AccessMode::read || b.is_left),
               "block {}: {} uses on the host", use.block.value(), b.host_pins);
  --b.host_pins;
  if (use.mode != AccessMode::read) b.host_writes = false;
}

// ---- content -----------------------------------------------------------------------------------

void ResidentBlocks::adopt(ResidentBlock id, BlockContent content) {
  Block& b = mutable_existing(id);
  HEDDLE_CHECK(b.content == BlockContent::invalid && b.pins == 0, "block {} has {} pins",
               id.value(), b.pins);
  HEDDLE_CHECK(content == BlockContent::modified ? b.extent != none && !b.fetching
                                                 : b.extent == none || b.fetching,
               "block {} gets the content of {}", id.value(),
               content == BlockContent::modified ? "its frame" : "its backing");
  set_content(b, content);
  if (content == BlockContent::modified && b.writing_back) totals_.writing_bytes += b.frame_bytes;
  relist(id);
}

void ResidentBlocks::discard(ResidentBlock id) {
  Block& b = mutable_existing(id);
  HEDDLE_CHECK(b.pins == 0 && b.host_pins == 0,
               "block {} is discarded with {} pins, {} on the host", id.value(), b.pins,
               b.host_pins);
  set_content(b, BlockContent::invalid);
  b.last_use = ++clock_;
  relist(id);
}

// ---- frames ------------------------------------------------------------------------------------

void ResidentBlocks::give_frame(ResidentBlock id, Extent extent) {
  Block& b = mutable_at(id);
  HEDDLE_DEBUG(b.extent == none && b.claim == none, "block {} has a frame", id.value());
  b.extent = extent;
  totals_.resident_bytes += b.frame_bytes;
  HEDDLE_DEBUG(totals_.resident_bytes <= space_.bytes(), "{} bytes", totals_.resident_bytes);
  statistics_.resident_bytes_max = std::max(statistics_.resident_bytes_max, totals_.resident_bytes);
}

void ResidentBlocks::take_frame(ResidentBlock id) {
  Block& b = mutable_at(id);
  HEDDLE_DEBUG(
      b.extent != none && b.content != BlockContent::modified && !b.fetching && !b.writing_back,
      "block {}", id.value());
  if (b.content == BlockContent::shared) {
    set_content(b, BlockContent::backed);
    ++statistics_.evictions;
  }
  lists_.remove(id);
  totals_.resident_bytes -= b.frame_bytes;
  space_.release(std::exchange(b.extent, none));
}

// ---- transfers ---------------------------------------------------------------------------------

void ResidentBlocks::start_write_back(ResidentBlock id, std::int32_t priority,
                                      ResidencyActions& actions) {
  Block& b = mutable_at(id);
  HEDDLE_DEBUG(b.content == BlockContent::modified && !b.writing_back &&
                   (b.pins == 0 || b.held_as == AccessMode::read),
               "block {}", id.value());
  lists_.remove(id);
  if (b.pins == 0) b.priority = priority;
  b.raise(priority);
  b.writing_back = true;
  totals_.writing_bytes += b.frame_bytes;
  ++totals_.write_backs;
  actions.write_backs.push_back({id, space_.begin(b.extent), b.bytes, b.tile});
}

void ResidentBlocks::start_fetch(ResidentBlock id, ResidencyActions& actions) {
  Block& b = mutable_at(id);
  HEDDLE_DEBUG(b.content == BlockContent::backed && b.extent != none && !b.fetching, "block {}",
               id.value());
  b.fetching = true;
  ++totals_.fetches;
  actions.fetches.push_back({id, space_.begin(b.extent), b.bytes, b.tile});
}

void ResidentBlocks::fetch_finished(ResidentBlock id) {
  Block& b = mutable_existing(id);
  HEDDLE_CHECK(b.fetching, "block {}", id.value());
  b.fetching = false;
  --totals_.fetches;
  ++statistics_.fetches;
  statistics_.fetched_bytes += b.bytes;
  if (b.content == BlockContent::backed) set_content(b, BlockContent::shared);
  relist(id);
}

ResidentBlock ResidentBlocks::write_back_finished(ResidentBlock id) {
  Block& b = mutable_existing(id);
  HEDDLE_CHECK(b.writing_back, "block {}", id.value());
  if (b.content == BlockContent::modified) set_content(b, BlockContent::shared);
  b.writing_back = false;
  --totals_.write_backs;
  ++statistics_.write_backs;
  statistics_.written_bytes += b.bytes;
  const ResidentBlock claimant = space_.claimant(b.extent);
  if (claimant == no_block) {
    relist(id);
  } else {
    take_frame(id);
  }
  return claimant;
}

// ---- invariant ---------------------------------------------------------------------------------

bool ResidentBlocks::has_valid_state(ResidentBlock id) const {
  const Block& b = at(id);
  const bool has_frame = b.extent != none;
  if (!b.exists) {
    return !has_frame && b.claim == none && b.pins == 0 && b.host_pins == 0 &&
           !b.is_in_transfer() && b.content == BlockContent::invalid;
  }
  if (has_frame && (space_.owner(b.extent) != id || space_.bytes(b.extent) != b.frame_bytes ||
                    b.claim != none)) {
    return false;
  }
  if (b.claim != none && (space_.claimant(b.claim) != id || b.pins == 0)) return false;
  if (!has_frame && (b.content == BlockContent::modified || b.content == BlockContent::shared ||
                     b.is_in_transfer())) {
    return false;
  }
  const bool overwritten = b.pins > 0 && b.held_as == AccessMode::write;
  if (b.content == BlockContent::backed && has_frame && !b.fetching && !overwritten) return false;
  if (b.fetching && b.content != BlockContent::backed && b.content != BlockContent::invalid) {
    return false;
  }
  if (b.writing_back && b.content != BlockContent::modified && b.content != BlockContent::invalid) {
    return false;
  }
  if (is_claimed(b) && (!b.writing_back || b.pins > 0)) return false;
  if (b.is_left && b.content != BlockContent::backed) return false;
  if (b.host_writes && (!b.is_left || has_frame || b.pins > 0 || b.host_pins != 1)) return false;
  if (b.host_pins < 0 || (b.host_pins > 0 && !b.is_usable_on_host(AccessMode::read))) return false;
  if (b.pins < 0 || (b.pins > 1 && b.held_as != AccessMode::read)) return false;
  return lists_.kind(id) == b.list();
}

ResidentBlocks::Totals ResidentBlocks::summed() const {
  Totals sum;
  for (const Block& b : blocks_) {
    const bool is_dirty = b.content == BlockContent::modified;
    if (b.extent != none) sum.resident_bytes += b.frame_bytes;
    if (is_dirty) sum.dirty_bytes += b.frame_bytes;
    if (is_dirty && b.writing_back) sum.writing_bytes += b.frame_bytes;
    if (b.content == BlockContent::backed) ++sum.backed;
    if (b.is_left) ++sum.left;
    sum.fetches += b.fetching ? 1 : 0;
    sum.write_backs += b.writing_back ? 1 : 0;
  }
  return sum;
}

bool ResidentBlocks::is_valid() const {
  std::size_t frames = 0;
  std::size_t missing = 0;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    if (!has_valid_state(ResidentBlock{static_cast<std::int32_t>(i)})) return false;
    frames += blocks_[i].extent != none ? 1U : 0U;
    missing += blocks_[i].exists ? 0U : 1U;
  }
  // As many frames as blocks with one, so each frame belongs to its block.
  return frames == space_.frame_count() && missing == unused_.size() && space_.is_valid() &&
         lists_.is_valid() && summed() == totals_ &&
         totals_.resident_bytes + space_.free_bytes() + space_.claimed_gap_bytes() ==
             space_.bytes() &&
         totals_.resident_bytes <= statistics_.resident_bytes_max;
}

}  // namespace heddle
