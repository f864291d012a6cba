// Residency's invariant, as stated at the class.

#include <algorithm>

#include "node-runtime/residency/residency.hpp"

namespace heddle {

using protocol::AccessMode;

bool Residency::blocks_are_valid() const {
  std::size_t frames = 0;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const ResidentBlock id{static_cast<std::int32_t>(i)};
    const Block& b = blocks_[i];
    const bool has_frame = b.extent != none;
    if (!b.exists && (has_frame || b.claim != none || b.pins > 0 || is_in_transfer(id) ||
                      b.content != Content::invalid)) {
      return false;
    }
    if (has_frame && (space_.owner(b.extent) != id || space_.bytes(b.extent) != b.frame_bytes ||
                      b.claim != none)) {
      return false;
    }
    if (b.claim != none && (space_.claimant(b.claim) != id || b.pins == 0)) return false;
    if (!has_frame &&
        (b.content == Content::modified || b.content == Content::shared || is_in_transfer(id))) {
      return false;
    }
    const bool overwritten = b.pins > 0 && b.held_as == AccessMode::write;
    if (b.content == Content::backed && has_frame && !b.fetching && !overwritten) return false;
    if (b.fetching && b.content != Content::backed && b.content != Content::invalid) return false;
    if (b.writing_back && b.content != Content::modified && b.content != Content::invalid) {
      return false;
    }
    if (is_claimed(b) && (!b.writing_back || b.pins > 0)) return false;
    if (b.is_left && b.content != Content::backed) return false;
    if (b.host_pins < 0 || (b.host_pins > 0 && !is_usable_on_host(b, AccessMode::read))) {
      return false;
    }
    if (b.pins < 0 || (b.pins > 1 && b.held_as != AccessMode::read)) return false;
    frames += has_frame ? 1U : 0U;
  }
  // As many frames as blocks with one, so each frame belongs to its block.
  return frames == space_.frame_count();
}

bool Residency::lists_are_valid() const {
  std::size_t listed = 0;
  for (std::size_t k = 0; k < lists_.size(); ++k) {
    ResidentBlock before = no_block;
    for (ResidentBlock id = lists_.at(k).first; id != no_block; id = at(id).after) {
      const Block& b = at(id);
      if (b.list != static_cast<ListKind>(k) || b.before != before) return false;
      if (before != no_block && at(before).last_use > b.last_use) return false;
      before = id;
      ++listed;
    }
    if (lists_.at(k).last != before) return false;
  }
  for (const Block& b : blocks_) {
    if (b.list != list_for(b)) return false;
    if (b.list != ListKind::off) --listed;
  }
  return listed == 0;
}

bool Residency::sums_are_valid() const {
  std::uint64_t resident = 0;
  std::uint64_t dirty = 0;
  std::uint64_t writing = 0;
  std::int64_t backed = 0;
  std::int64_t left = 0;
  std::int32_t fetches = 0;
  std::int32_t write_backs = 0;
  for (const Block& b : blocks_) {
    if (b.extent != none) resident += b.frame_bytes;
    if (b.content == Content::modified) dirty += b.frame_bytes;
    if (b.content == Content::modified && b.writing_back) writing += b.frame_bytes;
    if (b.content == Content::backed) ++backed;
    if (b.is_left) ++left;
    fetches += b.fetching ? 1 : 0;
    write_backs += b.writing_back ? 1 : 0;
  }
  return resident == resident_bytes_ && dirty == dirty_bytes_ && writing == writing_bytes_ &&
         backed == backed_count_ && left == left_count_ && fetches == fetches_ &&
         write_backs == write_backs_ &&
         resident + space_.free_bytes() + space_.claimed_gap_bytes() == space_.bytes() &&
         resident <= statistics_.resident_bytes_max;
}

bool Residency::queue_is_valid() const {
  std::vector<std::int32_t> pins(blocks_.size(), 0);
  if (placed_ > queue_.size()) return false;
  for (std::size_t q = 0; q < queue_.size(); ++q) {
    const Request& request = queue_[q];
    const auto all = static_cast<std::uint32_t>((std::uint64_t{1} << request.count) - 1);
    if ((request.held & ~all) != 0) return false;
    if (request.count > 0 && (q < placed_) != (request.held == all)) return false;
    if (q > placed_ && request.held != 0) return false;
    if (q > 0 && queue_[q - 1].id >= request.id) return false;
    for (std::size_t i = 0; i < request.count; ++i) {
      if (!request.holds(i)) continue;
      const Use& use = request.uses.at(i);
      const Block& b = at(use.block);
      if (b.held_as != use.mode || (b.extent == none && b.claim == none)) return false;
      ++pins[static_cast<std::size_t>(use.block.value())];
    }
  }
  std::int64_t handed_out = 0;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    if (blocks_[i].pins < pins[i]) return false;
    handed_out += blocks_[i].pins - pins[i];
  }
  return handed_out == handed_out_ && overtakes_ <= options_.overtakes_max &&
         (somebody_waits() || overtakes_ == 0);
}

bool Residency::is_valid() const {
  return space_.is_valid() && blocks_are_valid() && lists_are_valid() && sums_are_valid() &&
         queue_is_valid();
}

}  // namespace heddle
