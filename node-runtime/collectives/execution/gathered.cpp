/// Messages of several blocks in device memory.

#include <array>
#include <utility>

#include "node-runtime/collectives/execution/execution.hpp"

namespace heddle::collectives {

void Execution::start_gathered(Gathered gathered, std::int64_t ticket) {
  std::size_t bytes = 0;
  for (const std::span<std::byte> piece : gathered.pieces) bytes += piece.size();
  gathered.memory = task_.scratch(static_cast<std::int64_t>(bytes));
  ++messages_;
  const Gathered& kept = gathered_[ticket] = std::move(gathered);
  if (kept.is_send) return move(kept, ticket);
  const std::span<std::byte> whole(kept.memory.get(), bytes);
  // The courier may report the end at once, and then `kept` is gone.
  courier_.receive(Rank(kept.peer), Courier::Name(kept.name), std::array{whole}, ticket);
}

bool Execution::continue_gathered(std::int64_t ticket) {
  const auto found = gathered_.find(ticket);
  if (found == gathered_.end()) return false;
  Gathered& gathered = found->second;
  if (gathered.is_half_done) {
    gathered_.erase(found);
    return false;
  }
  gathered.is_half_done = true;
  ++messages_;
  if (!gathered.is_send) {
    move(gathered, ticket);
    return true;
  }
  std::size_t bytes = 0;
  for (const std::span<std::byte> piece : gathered.pieces) bytes += piece.size();
  const std::span<const std::byte> whole(gathered.memory.get(), bytes);
  courier_.send(Rank(gathered.peer), Courier::Name(gathered.name), std::array{whole}, ticket);
  return true;
}

/// Between the blocks and the gathered piece.
void Execution::move(const Gathered& gathered, std::int64_t ticket) {
  const auto queue = [memory = gathered.memory, pieces = gathered.pieces,
                      is_send = gathered.is_send](const p2p::WorkPlace& place) {
    const Device* const device = &place.stream.device();
    std::byte* at = memory.get();
    for (const std::span<std::byte> piece : pieces) {
      std::byte* const to = is_send ? at : piece.data();
      const std::byte* const from = is_send ? piece.data() : at;
      place.stream.copy({to, device}, {from, device}, piece.size());
      at += piece.size();
    }
  };
  courier_.work({*task_.lane, {}, queue, nullptr}, ticket);
}

}  // namespace heddle::collectives
