/// How an endpoint sends: a message's way from its request to its last piece.

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "base/assert.hpp"
#include "base/error.hpp"
#include "node-runtime/transport/datatype/pack.hpp"
#include "node-runtime/transport/p2p/endpoint.hpp"

namespace heddle::p2p {

void Endpoint::start(const std::shared_ptr<Send>& started) {
  Send& send = *started;
  if (lost_[static_cast<std::size_t>(send.to.value())]) {
    send.fail(Error(ErrorCode::communication,
                    fmt::format("sending to node {}, which is lost", send.to.value())));
    forget_request();
    return;
  }
  NoteHeader header;
  header.tag = send.tag;
  header.channel = send.channel.value();
  header.send = send.id;
  header.bytes = send.side.bytes;
  header.digest = send.digest;
  statistics_.bytes_sent += send.side.bytes;
  if (send.side.bytes <= options_.eager_bytes_max && credits_.take(send.to)) {
    header.kind = NoteHeader::Kind::eager;
    const auto payload = begin_note(send.to, header, static_cast<std::size_t>(send.side.bytes));
    pack(*send.side.plan, send.side.count, send.side.memory, {0, send.side.bytes}, payload.data());
    wire_.send_note(send.to);
    ++statistics_.eager;
    send.complete({wire_.node(), send.tag, send.side.bytes, false});
    forget_request();
    return;
  }
  header.kind = NoteHeader::Kind::announce;
  header.is_contiguous = send.side.contiguous != nullptr ? 1 : 0;
  sends_.emplace(send.id, started);
  send_note(send.to, header);
}

void Endpoint::granted(const NoteHeader& header) {
  const auto found = sends_.find(header.send);
  HEDDLE_CHECK(found != sends_.end(), "send {} is granted, but is not under way", header.send);
  Send& send = *found->second;
  send.is_granted = true;
  send.flow = FlowId{header.flow};
  send.piece_bytes = header.piece_bytes;
  ++(send.side.contiguous != nullptr ? statistics_.direct : statistics_.packed);
  if (send.side.bytes == 0) return end(send);
  if (send.side.contiguous == nullptr) sends_waiting_.push_back(send.id);
  post_pieces(send);
}

/// As many as there are places for: straight from contiguous memory, otherwise by way of out slots.
void Endpoint::post_pieces(Send& send) {
  while (send.posted < send.side.bytes) {
    const std::int64_t bytes = std::min(send.piece_bytes, send.side.bytes - send.posted);
    Operation piece{true, send.id, send.posted, bytes, std::nullopt};
    std::span<const std::byte> from;
    if (send.side.contiguous != nullptr) {
      if (send.in_flight >= direct_pieces) return;
      from = {send.side.contiguous + send.posted, static_cast<std::size_t>(bytes)};
    } else {
      // Who waits longer goes first.
      if (send.in_flight >= options_.pieces_ahead || sends_waiting_.front() != send.id) return;
      piece.slot = out_.take();
      if (!piece.slot) return;
      const auto slot = out_.bytes(*piece.slot).first(static_cast<std::size_t>(bytes));
      pack(*send.side.plan, send.side.count, send.side.memory, {send.posted, bytes}, slot.data());
      from = slot;
      // To the end of the queue, or out of it.
      sends_waiting_.pop_front();
      const bool wants_more = send.posted + bytes < send.side.bytes;
      if (wants_more) sends_waiting_.push_back(send.id);
    }
    send.posted += bytes;
    ++send.in_flight;
    wire_.send_bytes(send.to, send.flow, from, add(piece));
  }
}

void Endpoint::end(Send& send) {
  send.complete({wire_.node(), send.tag, send.side.bytes, false});
  sends_.erase(send.id);
  forget_request();
}

void Endpoint::cancel_send(std::int64_t id) {
  const auto found = sends_.find(id);
  if (found == sends_.end()) return;
  Send& send = *found->second;
  if (send.is_granted || std::exchange(send.is_withdrawn, true)) return;
  NoteHeader header;
  header.kind = NoteHeader::Kind::withdraw;
  header.send = id;
  send_note(send.to, header);
}

}  // namespace heddle::p2p
