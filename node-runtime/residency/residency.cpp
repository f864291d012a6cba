#include "node-runtime/residency/residency.hpp"

#include <algorithm>
#include <fmt/core.h>

#include "base/assert.hpp"
#include "base/error.hpp"
#include "base/units.hpp"

namespace heddle {

using protocol::AccessMode;
using Block = ResidentBlocks::Block;

std::uint64_t Residency::minimum_bytes(std::uint64_t largest_block_bytes, std::size_t uses,
                                       std::size_t others_pinned, BlockSizes sizes,
                                       std::size_t alignment) {
  HEDDLE_CHECK(uses > 0 && alignment > 0, "{} uses, alignment {}", uses, alignment);
  const std::uint64_t pinned = uses - 1 + others_pinned;
  const std::uint64_t largest = frame_bytes(largest_block_bytes, alignment);
  return (sizes == BlockSizes::equal ? pinned + 1 : 2 * pinned + 1) * largest;
}

Residency::Residency(const Options& options)
    : options_(options), blocks_(options.bytes, options.alignment) {
  HEDDLE_CHECK(options.dirty_share_max >= 0 && options.dirty_share_max <= 1, "{}",
               options.dirty_share_max);
  HEDDLE_CHECK(options.early_writes >= 0 && options.overtakes_max >= 0, "{}, {}",
               options.early_writes, options.overtakes_max);
}

std::uint64_t Residency::offset_of(ResidentBlock id) const {
  HEDDLE_CHECK(is_resident(id), "block {} is not resident", id.value());
  return blocks_.space().begin(blocks_.at(id).extent);
}

// ---- uses on the device ------------------------------------------------------------------------

bool Residency::try_acquire(std::span<const Use> uses, Overtaking overtaking) {
  HEDDLE_CHECK(uses.size() <= uses_max, "{} uses", uses.size());
  const bool is_limited = overtaking == Overtaking::limited;
  if (somebody_waits() && is_limited && overtakes_ >= options_.overtakes_max) return false;
  bool frames_wanted = false;
  for (const Use& use : uses) {
    const Block& b = blocks_.existing(use.block);
    if (blocks_.is_usable(b, use.mode)) continue;
    const bool needs_only_space = use.mode == AccessMode::write && !has_space(b);
    if (!needs_only_space || somebody_waits()) return false;
    frames_wanted = true;
  }
  for (const Use& use : uses) blocks_.hold(use);
  if (frames_wanted && !frames_.take_unused_frames(uses)) {
    for (const Use& use : uses) blocks_.let_go(use.block);
    return false;
  }
  handed_out_ += static_cast<std::int64_t>(uses.size());
  if (somebody_waits() && is_limited) ++overtakes_;
  HEDDLE_EXPENSIVE(is_valid());
  return true;
}

Residency::Request Residency::new_request(std::span<const Use> uses) {
  HEDDLE_CHECK(uses.size() <= uses_max, "{} uses", uses.size());
  HEDDLE_DEBUG(std::ranges::all_of(uses,
                                   [&](const Use& one) {
                                     return std::ranges::count(uses, one.block, &Use::block) == 1;
                                   }),
               "a block is used twice");
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
    bytes += blocks_.existing(use.block).frame_bytes;
    blocks_.touch(use.block);
  }
  if (bytes > this->bytes()) {
    throw Error(ErrorCode::usage,
                fmt::format("the {} tiles of a task take {} of device memory, but the device's "
                            "pool has {}; use smaller tiles",
                            uses.size(), format_bytes(bytes), format_bytes(this->bytes())));
  }
  queue_.push_back(request);
  serve(actions);
  return request.id;
}

bool Residency::cancel(TicketId ticket, Actions& actions) {
  const auto found = std::ranges::find(queue_, ticket, &Request::id);
  if (found == queue_.end()) return false;
  drop_request(static_cast<std::size_t>(found - queue_.begin()));
  serve(actions);
  return true;
}

void Residency::release(std::span<const Use> uses, Actions& actions) {
  for (const Use& use : uses) blocks_.release(use);
  handed_out_ -= static_cast<std::int64_t>(uses.size());
  HEDDLE_CHECK(handed_out_ >= 0, "{} uses", handed_out_);
  serve(actions);
}

void Residency::discard(ResidentBlock id, Actions& actions) {
  blocks_.discard(id);
  serve(actions);
}

void Residency::fetch_finished(ResidentBlock id, Actions& actions) {
  blocks_.fetch_finished(id);
  serve_host(actions);
  serve(actions);
}

void Residency::write_back_finished(ResidentBlock id, Actions& actions) {
  frames_.write_back_finished(id, actions);
  serve_host(actions);
  serve(actions);
}

// ---- uses on the host --------------------------------------------------------------------------

Residency::TicketId Residency::request_host(std::span<const Use> uses, Actions& actions) {
  const Request request = new_request(uses);
  for (const Use& use : uses) blocks_.prepare_on_host(use, actions);
  host_queue_.push_back(request);
  serve_host(actions);
  serve(actions);  // frames may have become free
  return request.id;
}

void Residency::serve_host(Actions& actions) {
  // Requests are independent of each other: any order serves.
  std::erase_if(host_queue_, [&](const Request& request) {
    const bool is_ready = std::ranges::all_of(request.used(), [this](const Use& use) {
      return blocks_.at(use.block).is_usable_on_host(use.mode);
    });
    if (!is_ready) return false;
    for (const Use& use : request.used()) blocks_.hold_on_host(use);
    actions.ready.push_back(request.id);
    return true;
  });
}

void Residency::release_host(std::span<const Use> uses, Actions& actions) {
  for (const Use& use : uses) blocks_.release_on_host(use);
  serve(actions);
}

std::uint64_t Residency::missing_host_bytes(std::span<const Use> uses) const {
  std::uint64_t missing = 0;
  for (const Use& use : uses) {
    const Block& b = blocks_.at(use.block);
    if (use.mode != AccessMode::write && b.content == Content::modified) missing += b.bytes;
  }
  return missing;
}

// ---- service -----------------------------------------------------------------------------------

/// Holds further blocks of the request as space permits. True if it holds all.
bool Residency::place(Request& request, Actions& actions) {
  // Resident blocks first, so that they are not evicted for the rest.
  for (std::size_t i = 0; i < request.count; ++i) {
    const Block& b = blocks_.at(request.uses[i].block);
    if (request.holds(i) || !has_space(b) || blocks_.is_claimed(b)) continue;
    blocks_.hold(request.uses[i]);
    request.held |= static_cast<std::uint16_t>(1U << i);
  }
  bool complete = true;
  for (std::size_t i = 0; i < request.count; ++i) {
    if (request.holds(i)) continue;
    const Use& use = request.uses[i];
    if (blocks_.is_claimed(blocks_.at(use.block))) {
      complete = false;  // being evicted; it is fetched again afterwards
      continue;
    }
    blocks_.hold(use);
    if (frames_.provide_space(use.block, actions)) {
      request.held |= static_cast<std::uint16_t>(1U << i);
    } else {
      blocks_.let_go(use.block);
      complete = false;
    }
  }
  return complete;
}

void Residency::hand_out(Actions& actions) {
  for (std::size_t i = 0; i < placed_;) {
    const Request& request = queue_[i];
    const bool is_ready = std::ranges::all_of(request.used(), [this](const Use& use) {
      return blocks_.is_usable(blocks_.at(use.block), use.mode);
    });
    if (!is_ready) {
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
  const ResidentBlocks::Totals& totals = blocks_.totals();
  const bool pressure = totals.backed > totals.left || somebody_waits();
  if (!pressure) return;
  frames_.write_back_early(
      static_cast<std::uint64_t>(options_.dirty_share_max * static_cast<double>(bytes())),
      options_.early_writes, actions);
}

void Residency::drop_request(std::size_t index) {
  HEDDLE_CHECK(index < queue_.size(), "request {} of {}", index, queue_.size());
  const Request request = queue_[index];
  for (std::size_t i = 0; i < request.count; ++i) {
    if (request.holds(i)) blocks_.let_go(request.uses[i].block);
  }
  if (index < placed_) {
    --placed_;
  } else if (index == placed_) {
    overtakes_ = 0;
  }
  queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(index));
}

void Residency::refuse_head() {
  const std::size_t uses = queue_[placed_].count;
  drop_request(placed_);
  throw Error(
      ErrorCode::usage,
      fmt::format("the {} tiles of a task do not fit into the device's pool of {}, which is cut up "
                  "by some of them; {} suffice always; use smaller tiles",
                  uses, format_bytes(bytes()),
                  format_bytes(minimum_bytes(blocks_.largest_bytes(), uses, 0, BlockSizes::mixed,
                                             options_.alignment))));
}

void Residency::serve(Actions& actions) {
  while (somebody_waits() && place(queue_[placed_], actions)) {
    ++placed_;
    overtakes_ = 0;
  }
  hand_out(actions);
  write_back_early(actions);
  HEDDLE_EXPENSIVE(is_valid());
  const ResidentBlocks::Totals& totals = blocks_.totals();
  const bool nothing_will_happen =
      placed_ == 0 && handed_out_ == 0 && totals.fetches == 0 && totals.write_backs == 0;
  if (somebody_waits() && nothing_will_happen) refuse_head();
}

bool Residency::is_valid() const {
  if (!blocks_.is_valid() || placed_ > queue_.size()) return false;
  std::vector<std::int32_t> pins(blocks_.count(), 0);
  for (std::size_t q = 0; q < queue_.size(); ++q) {
    const Request& request = queue_[q];
    if ((request.held & ~request.all()) != 0) return false;
    if (request.count > 0 && (q < placed_) != (request.held == request.all())) return false;
    if (q > placed_ && request.held != 0) return false;
    if (q > 0 && queue_[q - 1].id >= request.id) return false;
    for (std::size_t i = 0; i < request.count; ++i) {
      if (!request.holds(i)) continue;
      const Use& use = request.uses.at(i);
      const Block& b = blocks_.at(use.block);
      if (b.held_as != use.mode || !has_space(b)) return false;
      ++pins[static_cast<std::size_t>(use.block.value())];
    }
  }
  std::int64_t handed_out = 0;
  for (std::size_t i = 0; i < pins.size(); ++i) {
    const std::int32_t all = blocks_.at(ResidentBlock{static_cast<std::int32_t>(i)}).pins;
    if (all < pins[i]) return false;
    handed_out += all - pins[i];
  }
  return handed_out == handed_out_ && overtakes_ <= options_.overtakes_max &&
         (somebody_waits() || overtakes_ == 0);
}

}  // namespace heddle
