#include "node-runtime/collectives/call/buffer_side.hpp"

#include <array>
#include <span>
#include <utility>

#include "base/assert.hpp"
#include "node-runtime/collectives/call/memory.hpp"
#include "node-runtime/collectives/execution/seal.hpp"

namespace heddle::collectives {
namespace {

std::uint64_t seal_for(const DirectMemory& memory, const BufferOptions& options,
                       std::uint64_t seal) {
  seal = mixed(mixed(seal, static_cast<std::uint64_t>(memory.block_bytes)), memory.signature);
  return mixed(seal, static_cast<std::uint64_t>(options.fragment_bytes));
}

}  // namespace

std::int64_t BufferCut::slot_bytes() const {
  constexpr std::int64_t alignment = 256;
  return (fragment_bytes + alignment - 1) / alignment * alignment;
}

BufferSide::BufferSide(const Call& call, DirectRank rank, const DirectMemory& memory,
                       const BufferOptions& options, const Task& task)
    : rank_(std::move(rank)),
      memory_(memory),
      options_(options),
      has_copies_in_(call.reduces()),
      has_copies_out_(call.kind != CollectiveKind::reduce),
      cut_{memory.block_bytes, std::min(memory.block_bytes, options.fragment_bytes)},
      seal_(seal_for(memory, options, task.seal)) {}

void BufferSide::begin(Courier& courier) {
  courier_ = &courier;
  start();
}

void BufferSide::ended(std::int64_t ticket) {
  const auto found = under_way_.find(ticket);
  HEDDLE_CHECK(found != under_way_.end(), "{} has ended, and is not under way", ticket);
  const Then then = std::move(found->second);
  under_way_.erase(found);
  then();
}

CopyPolicy BufferSide::policy(CollectiveKind kind) const {
  return CopyPolicy::of(options_.copies, kind, ranks(), memory_.block_bytes,
                        rank_.copies != nullptr ? *rank_.copies : CopyTable{});
}

// ---- messages and works ----------------------------------------------------------------------

std::int64_t BufferSide::ticket_of(Then then) {
  under_way_.emplace(next_ticket_, std::move(then));
  return next_ticket_++;
}

Courier::Name BufferSide::name(std::int32_t place, std::int64_t fragment) const {
  constexpr std::int32_t kinds = 3;
  return {fragment, place, kinds, mixed(seal_, static_cast<std::uint64_t>(place) + 1)};
}

void BufferSide::send_note(Rank to, BufferNote note, Then then) {
  const auto kept = std::make_shared<const BufferNote>(note);
  const std::span<const std::byte> bytes = std::as_bytes(std::span(kept.get(), 1));
  courier_->send(to, name(0, 0), std::array{bytes},
                 ticket_of([kept, then = std::move(then)] { then(); }));
}

void BufferSide::receive_note(Rank from, std::function<void(const BufferNote&)> then) {
  const auto kept = std::make_shared<BufferNote>();
  const std::span<std::byte> bytes = std::as_writable_bytes(std::span(kept.get(), 1));
  courier_->receive(from, name(0, 0), std::array{bytes},
                    ticket_of([kept, then = std::move(then)] { then(*kept); }));
}

void BufferSide::send_elements(Rank to, bool is_out, std::int64_t fragment, const std::byte* from,
                               Then then) {
  const std::span<const std::byte> bytes(from, static_cast<std::size_t>(cut_.bytes(fragment)));
  courier_->send(to, name(is_out ? 2 : 1, fragment), std::array{bytes}, ticket_of(std::move(then)));
}

void BufferSide::receive_elements(Rank from, bool is_out, std::int64_t fragment, std::byte* to,
                                  Then then) {
  const std::span<std::byte> bytes(to, static_cast<std::size_t>(cut_.bytes(fragment)));
  courier_->receive(from, name(is_out ? 2 : 1, fragment), std::array{bytes},
                    ticket_of(std::move(then)));
}

void BufferSide::work(p2p::DeviceWork work, Then then) {
  courier_->work(std::move(work), ticket_of(std::move(then)));
}

void BufferSide::refer(std::shared_ptr<p2p::Referral> referral, Then then) {
  courier_->refer(std::move(referral), ticket_of(std::move(then)));
}

std::shared_ptr<std::byte> BufferSide::take_room() {
  if (rooms_.empty()) return memory_.home.host(cut_.fragment_bytes);
  std::shared_ptr<std::byte> room = std::move(rooms_.back());
  rooms_.pop_back();
  return room;
}

}  // namespace heddle::collectives
