#include "node-runtime/residency/block_frames.hpp"

#include <array>
#include <optional>

#include "base/assert.hpp"

namespace heddle {

using protocol::AccessMode;
using Block = ResidentBlocks::Block;
using Extent = FrameSpace::Extent;
using ListKind = EvictionLists::Kind;

namespace {

constexpr Extent none = FrameSpace::none;

}  // namespace

/// A frame at no cost: a gap, or discarded frames.
FrameSpace::Extent BlockFrames::allocate_unused(ResidentBlock id) {
  const std::uint64_t bytes = blocks_.at(id).frame_bytes;
  const Extent extent = blocks_.space().allocate(bytes, id);
  const ResidentBlock discarded = blocks_.lists().first(ListKind::discarded);
  if (extent != none || discarded == no_block) return extent;
  if (blocks_.at(discarded).frame_bytes >= bytes) {
    blocks_.take_frame(discarded);
    return blocks_.space().allocate(bytes, id);
  }
  const auto discarded_only = [this](ResidentBlock other) -> std::optional<FrameSpace::Cost> {
    if (blocks_.lists().kind(other) != ListKind::discarded) return std::nullopt;
    return FrameSpace::Cost{};
  };
  const FrameSpace::Window window = blocks_.space().cheapest_window(bytes, discarded_only);
  if (!window.valid()) return none;
  victims_.clear();
  blocks_.space().claim(window, id, victims_);
  for (const ResidentBlock victim : victims_) blocks_.take_frame(victim);
  blocks_.space().take(window.first, bytes);
  return window.first;
}

bool BlockFrames::take_unused_frames(std::span<const ResidencyUse> uses) {
  std::array<ResidentBlock, residency_uses_max> given;
  HEDDLE_CHECK(uses.size() <= given.size(), "{} uses", uses.size());
  std::size_t count = 0;
  for (const ResidencyUse& use : uses) {
    if (blocks_.at(use.block).extent != none) continue;
    const Extent extent = allocate_unused(use.block);
    if (extent == none) {
      while (count > 0) blocks_.take_frame(given.at(--count));
      return false;
    }
    blocks_.give_frame(use.block, extent);
    given.at(count++) = use.block;
  }
  return true;
}

/// A single frame that is the cheapest window, if that is obvious: no gap suffices, so any window
/// has a frame and costs at least as much as the discarded or else the least recently used clean
/// one.
ResidentBlock BlockFrames::lone_victim(std::uint64_t bytes) const {
  ResidentBlock victim = blocks_.lists().first(ListKind::discarded);
  if (victim == no_block) victim = blocks_.lists().first(ListKind::clean);
  return victim != no_block && blocks_.at(victim).frame_bytes >= bytes ? victim : no_block;
}

bool BlockFrames::provide_space(ResidentBlock id, ResidencyActions& actions) {
  const Block& wanting = blocks_.at(id);
  HEDDLE_DEBUG(wanting.pins > 0 && wanting.extent == none && wanting.claim == none, "block {}",
               id.value());
  const std::uint64_t bytes = wanting.frame_bytes;
  Extent extent = blocks_.space().allocate(bytes, id);
  if (extent == none) {
    if (const ResidentBlock victim = lone_victim(bytes); victim != no_block) {
      blocks_.take_frame(victim);
      extent = blocks_.space().allocate(bytes, id);
    }
  }
  if (extent != none) {
    blocks_.give_frame(id, extent);
    frame_arrived(id, actions);
    return true;
  }
  const auto cost_of = [this](ResidentBlock other) -> std::optional<FrameSpace::Cost> {
    const Block& b = blocks_.at(other);
    if (b.pins > 0 || b.fetching) return std::nullopt;
    // Costs more than a clean frame, less than another write-back.
    if (b.writing_back) return FrameSpace::Cost{1, b.last_use};
    if (b.content == BlockContent::invalid) return FrameSpace::Cost{};
    return FrameSpace::Cost{b.content == BlockContent::modified ? b.frame_bytes : 0, b.last_use};
  };
  const FrameSpace::Window window = blocks_.space().cheapest_window(bytes, cost_of);
  if (!window.valid()) return false;
  victims_.clear();
  blocks_.space().claim(window, id, victims_);
  blocks_.set_claim(id, window.first);
  for (const ResidentBlock victim : victims_) {
    const Block& b = blocks_.at(victim);
    if (b.writing_back) {
      blocks_.raise(victim, wanting.priority);
    } else if (b.content == BlockContent::modified) {
      blocks_.start_write_back(victim, wanting.priority, actions);
    } else {
      blocks_.take_frame(victim);
    }
  }
  try_take_claim(id, actions);
  return true;
}

/// Fetches the content into the new frame of a block that is read.
void BlockFrames::frame_arrived(ResidentBlock id, ResidencyActions& actions) {
  const Block& b = blocks_.at(id);
  if (b.content == BlockContent::backed && b.held_as != AccessMode::write) {
    blocks_.start_fetch(id, actions);
  }
}

void BlockFrames::try_take_claim(ResidentBlock id, ResidencyActions& actions) {
  const Block& b = blocks_.at(id);
  const Extent claim = b.claim;
  HEDDLE_DEBUG(claim != none, "block {} has no claim", id.value());
  if (!blocks_.space().is_complete(claim)) return;
  blocks_.set_claim(id, none);
  blocks_.space().take(claim, b.frame_bytes);
  blocks_.give_frame(id, claim);
  frame_arrived(id, actions);
}

bool BlockFrames::adopt_frame(ResidentBlock id, MayTakeSpace may_take_space) {
  const Block& b = blocks_.existing(id);
  if (b.fetching) return false;
  if (b.extent == none) {
    const Extent extent = may_take_space == MayTakeSpace::yes ? allocate_unused(id) : none;
    if (extent == none) return false;
    blocks_.give_frame(id, extent);
  }
  blocks_.adopt(id, BlockContent::modified);
  return true;
}

void BlockFrames::write_back_early(std::uint64_t dirty_bytes_max, std::int32_t in_flight_max,
                                   ResidencyActions& actions) {
  const ResidentBlocks::Totals& totals = blocks_.totals();
  for (;;) {
    const ResidentBlock oldest = blocks_.lists().first(ListKind::dirty);
    if (oldest == no_block || totals.write_backs >= in_flight_max) return;
    if (totals.dirty_bytes - totals.writing_bytes <= dirty_bytes_max) return;
    blocks_.start_write_back(oldest, least_urgent, actions);
  }
}

void BlockFrames::write_back_finished(ResidentBlock id, ResidencyActions& actions) {
  const ResidentBlock claimant = blocks_.write_back_finished(id);
  if (claimant != no_block) try_take_claim(claimant, actions);
}

}  // namespace heddle
