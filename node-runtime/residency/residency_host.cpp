// Blocks that are used on the host: the part of Residency that needs no frames.

#include <algorithm>

#include "base/assert.hpp"
#include "node-runtime/residency/residency.hpp"

namespace heddle {

using protocol::AccessMode;

void Residency::leave_to_host(Block& b) {
  set_content(b, Content::backed);
  b.is_left = true;
  ++left_count_;
}

bool Residency::is_usable_on_host(const Block& b, AccessMode mode) {
  // What is fetched meanwhile stays in the backing; what is written must not be read by a transfer.
  const bool is_there = b.content == Content::shared || b.content == Content::backed;
  if (mode == AccessMode::read) return is_there;
  return !b.fetching && !b.writing_back && (is_there || mode == AccessMode::write);
}

Residency::TicketId Residency::request_host(std::span<const Use> uses, Actions& actions) {
  const Request request = new_request(uses);
  for (const Use& use : uses) {
    Block& b = existing(use.block);
    HEDDLE_CHECK(use.mode == AccessMode::write || b.content != Content::invalid,
                 "block {} is read on the host but has no content", use.block.value());
    b.tile = use.tile;
    const bool is_wanted = use.mode != AccessMode::write && b.content == Content::modified;
    if (is_wanted && !b.writing_back) {
      start_write_back(use.block, use.priority, actions);
    } else {
      raise(b, use.priority);
    }
  }
  host_queue_.push_back(request);
  serve_host(actions);
  serve(actions);  // frames may have become free
  return request.id;
}

/// Hands out what is in its backings. Requests are independent of each other: any order serves.
void Residency::serve_host(Actions& actions) {
  std::erase_if(host_queue_, [&](const Request& request) {
    const std::span<const Use> uses = uses_of(request);
    const bool is_ready = std::ranges::all_of(
        uses, [this](const Use& use) { return is_usable_on_host(at(use.block), use.mode); });
    if (!is_ready) return false;
    for (const Use& use : uses) {
      Block& b = at(use.block);
      if (use.mode != AccessMode::read) {
        HEDDLE_CHECK(b.pins == 0 && b.host_pins == 0,
                     "block {} is written on the host while it is in use", use.block.value());
        leave_to_host(b);
        b.host_writes = true;
        if (b.extent != none) take_frame(use.block);
      }
      ++b.host_pins;
    }
    actions.ready.push_back(request.id);
    return true;
  });
}

void Residency::release_host(std::span<const Use> uses, Actions& actions) {
  for (const Use& use : uses) {
    Block& b = existing(use.block);
    HEDDLE_CHECK(b.host_pins > 0 && (use.mode == AccessMode::read || b.is_left),
                 "block {}: {} uses on the host", use.block.value(), b.host_pins);
    --b.host_pins;
    if (use.mode != AccessMode::read) b.host_writes = false;
  }
  serve(actions);
}

std::uint64_t Residency::missing_host_bytes(std::span<const Use> uses) const {
  std::uint64_t missing = 0;
  for (const Use& use : uses) {
    const Block& b = at(use.block);
    if (use.mode != AccessMode::write && b.content == Content::modified) missing += b.bytes;
  }
  return missing;
}

}  // namespace heddle
