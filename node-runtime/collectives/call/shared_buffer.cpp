#include "node-runtime/collectives/call/shared_buffer.hpp"

#include <algorithm>
#include <array>
#include <fmt/core.h>
#include <utility>

#include "base/assert.hpp"
#include "node-runtime/collectives/execution/seal.hpp"

namespace heddle::collectives {
namespace {

SharedBufferLayout layout_of(const Call& call, std::int32_t ranks, std::int64_t block_bytes,
                             std::int64_t fragment_bytes) {
  return {block_bytes, std::min(block_bytes, fragment_bytes), call.reduces() ? ranks - 1 : 0};
}

std::uint64_t seal_for(const DirectMemory& memory, const SharedBufferOptions& options,
                       std::uint64_t seal) {
  seal = mixed(mixed(seal, static_cast<std::uint64_t>(memory.block_bytes)), memory.signature);
  return mixed(seal, static_cast<std::uint64_t>(options.fragment_bytes));
}

}  // namespace

std::int64_t SharedBufferLayout::slot_bytes() const {
  constexpr std::int64_t alignment = 256;
  return (fragment_bytes + alignment - 1) / alignment * alignment;
}

std::int64_t SharedBufferLayout::bytes(std::int64_t fragment) const {
  return std::min(fragment_bytes, block_bytes - offset(fragment));
}

std::int64_t SharedBufferLayout::slot(std::int32_t member, std::int64_t fragment) const {
  return slot_bytes() * (fragment % places() * (members + 1) + member);
}

SharedBufferSide::SharedBufferSide(const Call& call, DirectRank rank, const DirectMemory& memory,
                                   const SharedBufferOptions& options, const Task& task)
    : rank_(std::move(rank)),
      memory_(memory),
      options_(options),
      has_copies_in_(call.reduces()),
      has_copies_out_(call.kind != CollectiveKind::reduce),
      layout_(layout_of(call, ranks(), memory.block_bytes, options.fragment_bytes)),
      seal_(seal_for(memory, options, task.seal)) {}

void SharedBufferSide::begin(Courier& courier) {
  courier_ = &courier;
  start();
}

void SharedBufferSide::ended(std::int64_t ticket) {
  const auto found = under_way_.find(ticket);
  HEDDLE_CHECK(found != under_way_.end(), "{} has ended, and is not under way", ticket);
  const Then then = std::move(found->second);
  under_way_.erase(found);
  then();
}

std::string SharedBufferSide::describe() const {
  return fmt::format("gsb, {} of {} copies staged", staged_, copies_);
}

// ---- messages and works ----------------------------------------------------------------------

std::int64_t SharedBufferSide::ticket_of(Then then) {
  under_way_.emplace(next_ticket_, std::move(then));
  return next_ticket_++;
}

Courier::Name SharedBufferSide::name(std::int32_t place, std::int64_t fragment) const {
  constexpr std::int32_t kinds = 3;
  return {fragment, place, kinds, mixed(seal_, static_cast<std::uint64_t>(place) + 1)};
}

void SharedBufferSide::send_note(Rank to, SharedBufferNote note, Then then) {
  const auto kept = std::make_shared<const SharedBufferNote>(note);
  const std::span<const std::byte> bytes = std::as_bytes(std::span(kept.get(), 1));
  courier_->send(to, name(0, 0), std::array{bytes},
                 ticket_of([kept, then = std::move(then)] { then(); }));
}

void SharedBufferSide::receive_note(Rank from, std::function<void(const SharedBufferNote&)> then) {
  const auto kept = std::make_shared<SharedBufferNote>();
  const std::span<std::byte> bytes = std::as_writable_bytes(std::span(kept.get(), 1));
  courier_->receive(from, name(0, 0), std::array{bytes},
                    ticket_of([kept, then = std::move(then)] { then(*kept); }));
}

void SharedBufferSide::send_elements(Rank to, bool is_out, std::int64_t fragment,
                                     const std::byte* from, Then then) {
  const std::span<const std::byte> bytes(from, static_cast<std::size_t>(layout_.bytes(fragment)));
  courier_->send(to, name(is_out ? 2 : 1, fragment), std::array{bytes}, ticket_of(std::move(then)));
}

void SharedBufferSide::receive_elements(Rank from, bool is_out, std::int64_t fragment,
                                        std::byte* to, Then then) {
  const std::span<std::byte> bytes(to, static_cast<std::size_t>(layout_.bytes(fragment)));
  courier_->receive(from, name(is_out ? 2 : 1, fragment), std::array{bytes},
                    ticket_of(std::move(then)));
}

void SharedBufferSide::work(p2p::DeviceWork work, Then then) {
  courier_->work(std::move(work), ticket_of(std::move(then)));
}

void SharedBufferSide::refer(std::shared_ptr<p2p::Referral> referral, Then then) {
  courier_->refer(std::move(referral), ticket_of(std::move(then)));
}

std::shared_ptr<std::byte> SharedBufferSide::take_room() {
  if (rooms_.empty()) return memory_.home.host(layout_.fragment_bytes);
  std::shared_ptr<std::byte> room = std::move(rooms_.back());
  rooms_.pop_back();
  return room;
}

std::shared_ptr<Errand> make_shared_buffer_way(const Call& call, const DirectRank& rank,
                                               const DirectMemory& memory,
                                               const SharedBufferOptions& options,
                                               const Task& task) {
  return rank.own == options.leader ? make_shared_buffer_leader(call, rank, memory, options, task)
                                    : make_shared_buffer_member(call, rank, memory, options, task);
}

}  // namespace heddle::collectives
