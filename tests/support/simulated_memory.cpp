#include "tests/support/simulated_memory.hpp"

#include <utility>

#include "base/assert.hpp"

namespace heddle::simulation {

using protocol::AccessMode;
using protocol::BlockRef;
using State = Residency::Content;

namespace {

constexpr std::uint64_t block_bytes = 64;

}  // namespace

std::size_t SimulatedMemory::frames_min(std::size_t uses, std::size_t others) {
  return Residency::minimum_bytes(block_bytes, uses, others, Residency::BlockSizes::equal,
                                  block_bytes) /
         block_bytes;
}

SimulatedMemory::SimulatedMemory(const Options& options)
    : residency_({.bytes = options.frames * block_bytes,
                  .alignment = block_bytes,
                  .dirty_share_max = options.dirty_share_max,
                  .early_writes = options.early_writes,
                  .overtakes_max = options.overtakes_max}),
      frames_(options.frames, poisoned) {}

ResidentBlock SimulatedMemory::resident(BlockRef block) {
  const auto [entry, is_new] = residents_.try_emplace(block, no_block);
  if (is_new) {
    entry->second = residency_.add_block(block_bytes);
    backings_.push_back(poisoned);
  }
  return entry->second;
}

void SimulatedMemory::adopt(BlockRef block, Content content) {
  const ResidentBlock id = resident(block);
  if (residency_.adopt_frame(id)) return put(block, Copy::frame, content);
  residency_.adopt_backing(id);
  put(block, Copy::backing, content);
}

/// What is read and was never written, by jobs after a cancelled one, gets whatever is there.
void SimulatedMemory::define(const Uses& uses) {
  for (const Use& use : uses) {
    if (use.mode == AccessMode::write || residency_.content(use.block) != State::invalid) continue;
    if (!residency_.adopt_frame(use.block)) residency_.adopt_backing(use.block);
  }
}

bool SimulatedMemory::try_acquire(const Uses& uses) {
  define(uses);
  is_touched_ = true;
  return residency_.try_acquire(uses);
}

SimulatedMemory::TicketId SimulatedMemory::request(const Uses& uses) {
  define(uses);
  return residency_.request(uses, take());
}

SimulatedMemory::TicketId SimulatedMemory::request_host(const Uses& uses) {
  define(uses);
  return residency_.request_host(uses, take());
}

std::optional<Copy> SimulatedMemory::reach(const Use& use) {
  define({use});
  if (residency_.try_acquire({&use, 1}, Residency::Overtaking::free)) return Copy::frame;
  const bool is_backed =
      use.mode == AccessMode::read && residency_.content(use.block) == State::backed;
  const bool may_move = residency_.is_in_transfer(use.block) || residency_.is_resident(use.block);
  if (may_move && !is_backed) return std::nullopt;
  return Copy::backing;
}

void SimulatedMemory::end_reach(const Use& use, Copy copy) {
  if (copy == Copy::frame) return release({use});
  if (use.mode == AccessMode::read) return;
  residency_.discard(use.block, take());
  residency_.adopt_backing(use.block);
}

void SimulatedMemory::discard(BlockRef block) {
  residency_.discard(resident(block), take());
}

std::vector<SimulatedMemory::TicketId> SimulatedMemory::take_ready() {
  begin_transfers();
  HEDDLE_EXPENSIVE(!std::exchange(is_touched_, false) || residency_.is_valid());
  return std::exchange(ready_, {});
}

Residency::Actions& SimulatedMemory::take() {
  begin_transfers();
  is_touched_ = true;
  return actions_;
}

void SimulatedMemory::begin_transfers() {
  for (const auto& transfer : actions_.write_backs) {
    backing(transfer.block) = poisoned;
    transfers_.push_back({transfer, false});
  }
  for (const auto& transfer : actions_.fetches) {
    frame(transfer.offset) = poisoned;
    transfers_.push_back({transfer, true});
  }
  ready_.insert(ready_.end(), actions_.ready.begin(), actions_.ready.end());
  actions_.clear();
}

void SimulatedMemory::finish_transfer(std::size_t index) {
  begin_transfers();
  is_touched_ = true;
  const Transfer ended = transfers_[index];
  transfers_[index] = transfers_.back();
  transfers_.pop_back();
  if (ended.is_fetch) {
    frame(ended.what.offset) = backing(ended.what.block);
    residency_.fetch_finished(ended.what.block, actions_);
  } else {
    backing(ended.what.block) = frame(ended.what.offset);
    residency_.write_back_finished(ended.what.block, actions_);
  }
}

std::uint64_t SimulatedMemory::missing_backings(const Uses& uses) const {
  return residency_.missing_host_bytes(uses) / block_bytes;
}

Content& SimulatedMemory::frame(std::uint64_t offset) {
  return frames_.at(offset / block_bytes);
}

Content& SimulatedMemory::backing(ResidentBlock block) {
  return backings_.at(static_cast<std::size_t>(block.value()));
}

Content SimulatedMemory::content(BlockRef block, Copy copy) {
  begin_transfers();
  const ResidentBlock id = resident(block);
  if (copy == Copy::backing) return backing(id);
  return residency_.is_resident(id) ? frame(residency_.offset_of(id)) : poisoned;
}

void SimulatedMemory::put(BlockRef block, Copy copy, Content content) {
  const ResidentBlock id = resident(block);
  if (copy == Copy::backing) {
    backing(id) = content;
  } else if (residency_.is_resident(id)) {
    frame(residency_.offset_of(id)) = content;
  }
}

bool SimulatedMemory::agrees(BlockRef block, Content newest) {
  begin_transfers();
  const State state = residency_.content(resident(block));
  const bool in_frame = state == State::modified || state == State::shared;
  const bool in_backing = state == State::backed || state == State::shared;
  return (!in_frame || content(block, Copy::frame) == newest) &&
         (!in_backing || content(block, Copy::backing) == newest);
}

bool SimulatedMemory::empties() {
  const ResidentBlock all = residency_.add_block(frames_.size() * block_bytes);
  backings_.push_back(poisoned);
  const Use use{all, AccessMode::write};
  const TicketId id = residency_.request({&use, 1}, take());
  begin_transfers();
  while (!transfers_.empty()) {
    finish_transfer(0);
    begin_transfers();
  }
  return std::exchange(ready_, {}) == std::vector{id};
}

}  // namespace heddle::simulation
