#include "tests/memory/residency_simulation.hpp"

#include <algorithm>
#include <fmt/core.h>

namespace heddle::simulation {

using protocol::AccessMode;

ResidencySimulation::ResidencySimulation(const Residency::Options& options)
    : residency_(options), unit_(options.alignment), pool_(options.bytes / unit_) {
  scramble(pool_);
}

void ResidencySimulation::expect(bool fact, const std::string& message) {
  if (!fact && failure_.empty()) failure_ = message;
}

std::span<std::int64_t> ResidencySimulation::frame(std::uint64_t offset, std::uint64_t bytes) {
  const std::size_t units = std::max<std::size_t>(1, (bytes + unit_ - 1) / unit_);
  if (offset % unit_ != 0 || offset / unit_ + units > pool_.size()) {
    expect(false, fmt::format("a frame at {} of {} bytes", offset, bytes));
    return {};
  }
  return std::span(pool_).subspan(offset / unit_, units);
}

std::span<std::int64_t> ResidencySimulation::frame(ResidentBlock block) {
  return frame(residency_.offset_of(block), model(block).bytes);
}

void ResidencySimulation::scramble(std::span<std::int64_t> cells) {
  for (std::int64_t& cell : cells) cell = next_nonsense_--;
}

ResidentBlock ResidencySimulation::add(std::uint64_t bytes) {
  const ResidentBlock block = residency_.add_block(bytes);
  expect(blocks_.emplace(block, Model{.bytes = bytes, .backing = {}}).second, "an id given twice");
  return block;
}

bool ResidencySimulation::may_use(const Uses& uses) const {
  return std::all_of(uses.begin(), uses.end(), [this](const Residency::Use& use) {
    const Model& m = model(use.block);
    if (m.written || (use.mode != AccessMode::read && m.readers > 0)) return false;
    return use.mode == AccessMode::write || m.version > 0;
  });
}

bool ResidencySimulation::is_idle(ResidentBlock block) const {
  return !model(block).written && model(block).readers == 0;
}

void ResidencySimulation::occupy(const Uses& uses) {
  for (const auto& use : uses) {
    Model& m = blocks_.at(use.block);
    if (use.mode == AccessMode::read) {
      ++m.readers;
    } else {
      m.written = true;
    }
  }
}

void ResidencySimulation::vacate(const Uses& uses) {
  for (const auto& use : uses) {
    Model& m = blocks_.at(use.block);
    if (use.mode == AccessMode::read) {
      --m.readers;
    } else {
      m.written = false;
    }
  }
}

void ResidencySimulation::request(const Uses& uses) {
  occupy(uses);
  waiting_.emplace(residency_.request(uses, actions_), uses);
  carry_out();
}

void ResidencySimulation::request_host(const Uses& uses) {
  occupy(uses);
  for (const auto& use : uses) {
    const bool is_modified = residency_.content(use.block) == Residency::Content::modified;
    if (use.mode != AccessMode::write && is_modified && !residency_.is_in_transfer(use.block)) {
      ++host_write_backs_;
    }
    if (use.mode != AccessMode::read) ++host_fetches_max_;
  }
  waiting_on_host_.emplace(residency_.request_host(uses, actions_), uses);
  carry_out();
}

bool ResidencySimulation::try_acquire(const Uses& uses) {
  const std::uint64_t resident = residency_.resident_bytes();
  const bool acquired = residency_.try_acquire(uses);
  expect(residency_.is_valid(), "the invariant is broken");
  expect(acquired || residency_.resident_bytes() <= resident, "a failed attempt left a trace");
  if (!acquired) return false;
  occupy(uses);
  start_task(uses);
  return true;
}

void ResidencySimulation::cancel(std::size_t index) {
  const auto chosen = std::next(waiting_.begin(), static_cast<std::ptrdiff_t>(index));
  vacate(chosen->second);
  const Residency::TicketId id = chosen->first;
  waiting_.erase(chosen);
  expect(residency_.cancel(id, actions_), "a waiting request cannot be cancelled");
  carry_out();
}

void ResidencySimulation::discard(ResidentBlock block) {
  blocks_.at(block).version = 0;
  residency_.discard(block, actions_);
  carry_out();
}

void ResidencySimulation::remove(ResidentBlock block) {
  residency_.remove_block(block);
  blocks_.erase(block);
  expect(residency_.is_valid(), "the invariant is broken");
}

/// Where a task on this side finds the block.
std::span<std::int64_t> ResidencySimulation::cells_of(ResidentBlock block, Side side) {
  return side == Side::device ? frame(block) : std::span(blocks_.at(block).backing);
}

void ResidencySimulation::check_inputs(const Uses& uses, Side side, bool at_end) {
  for (const auto& use : uses) {
    if (use.mode == AccessMode::write) continue;
    // What a kernel updates in place is no longer its input at its end.
    if (use.mode == AccessMode::read_write && at_end) continue;
    const auto cells = cells_of(use.block, side);
    expect(!cells.empty(), fmt::format("block {} has no backing", use.block.value()));
    for (const std::int64_t cell : cells) {
      expect(cell == model(use.block).version,
             fmt::format("block {} holds {} instead of {} at the {} of a task{}", use.block.value(),
                         cell, model(use.block).version, at_end ? "end" : "begin",
                         side == Side::host ? " on the host" : ""));
    }
  }
}

void ResidencySimulation::start_task(const Uses& uses) {
  for (const auto& use : uses) {
    if (!residency_.is_resident(use.block)) {
      expect(false, fmt::format("block {} is handed out but not there", use.block.value()));
      return;
    }
  }
  check_inputs(uses, Side::device, false);
  for (const auto& use : uses) {
    if (use.mode == AccessMode::read) continue;
    expect(!residency_.is_in_transfer(use.block), "a block is written while it is in transfer");
    scramble(frame(use.block));
  }
  running_.push_back(uses);
}

void ResidencySimulation::start_host_task(const Uses& uses) {
  check_inputs(uses, Side::host, false);
  for (const auto& use : uses) {
    if (use.mode == AccessMode::read) continue;
    expect(!residency_.is_in_transfer(use.block), "the host writes a block that is in transfer");
    expect(!residency_.is_resident(use.block), "the host writes a block that has a frame");
    Model& m = blocks_.at(use.block);
    m.backing.resize(std::max<std::size_t>(1, (m.bytes + unit_ - 1) / unit_));
    scramble(m.backing);
  }
  running_on_host_.push_back(uses);
}

void ResidencySimulation::write_outputs(const Uses& uses, Side side) {
  for (const auto& use : uses) {
    if (use.mode == AccessMode::read) continue;
    blocks_.at(use.block).version = next_version_;
    for (std::int64_t& cell : cells_of(use.block, side)) cell = next_version_;
    ++next_version_;
  }
}

void ResidencySimulation::finish_task(std::size_t index) {
  const Uses uses = running_[index];
  check_inputs(uses, Side::device, true);
  write_outputs(uses, Side::device);
  running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(index));
  vacate(uses);
  residency_.release(uses, actions_);
  carry_out();
}

void ResidencySimulation::finish_host_task(std::size_t index) {
  const Uses uses = running_on_host_[index];
  check_inputs(uses, Side::host, true);
  write_outputs(uses, Side::host);
  running_on_host_.erase(running_on_host_.begin() + static_cast<std::ptrdiff_t>(index));
  vacate(uses);
  residency_.release_host(uses, actions_);
  carry_out();
}

void ResidencySimulation::start_transfer(const Residency::Transfer& transfer, bool is_fetch) {
  Model& m = blocks_.at(transfer.block);
  expect(!m.in_transfer, fmt::format("block {} has two transfers", transfer.block.value()));
  expect(transfer.bytes == m.bytes, "a transfer of other bytes than the block's");
  m.in_transfer = true;
  const auto cells = frame(transfer.offset, transfer.bytes);
  if (is_fetch) {
    expect(!m.backing.empty() && m.backing.front() == m.version, "a stale backing is fetched");
    transfers_.push_back({transfer, true, m.backing});
    scramble(cells);
  } else {
    transfers_.push_back({transfer, false, Cells(cells.begin(), cells.end())});
    m.backing.assign(cells.size(), next_nonsense_--);
  }
}

void ResidencySimulation::finish_transfer(std::size_t index) {
  const TransferModel ended = transfers_[index];
  transfers_.erase(transfers_.begin() + static_cast<std::ptrdiff_t>(index));
  const ResidentBlock block = ended.transfer.block;
  Model& m = blocks_.at(block);
  m.in_transfer = false;
  const auto cells = frame(ended.transfer.offset, ended.transfer.bytes);
  if (ended.is_fetch) {
    expect(ended.cells == m.backing, "a backing changed while it was fetched");
    std::copy(ended.cells.begin(), ended.cells.end(), cells.begin());
    residency_.fetch_finished(block, actions_);
  } else {
    expect(std::equal(cells.begin(), cells.end(), ended.cells.begin()),
           "a frame changed while it was written back");
    m.backing.assign(cells.begin(), cells.end());
    residency_.write_back_finished(block, actions_);
  }
  carry_out();
}

void ResidencySimulation::carry_out() {
  expect(residency_.is_valid(), "the invariant is broken");
  for (const auto& transfer : actions_.fetches) start_transfer(transfer, true);
  for (const auto& transfer : actions_.write_backs) start_transfer(transfer, false);
  for (const Residency::TicketId id : actions_.ready) {
    if (const auto task = waiting_.extract(id)) {
      start_task(task.mapped());
    } else if (const auto host_task = waiting_on_host_.extract(id)) {
      start_host_task(host_task.mapped());
    } else {
      expect(false, "a request is ready twice or was never made");
    }
  }
  actions_.clear();
  expect(waiting_on_host_.empty() || !transfers_.empty(), "the host waits and nothing is moved");
}

}  // namespace heddle::simulation
