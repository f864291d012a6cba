#include "node-runtime/transport/p2p/endpoint.hpp"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <utility>

#include "base/assert.hpp"
#include "base/error.hpp"
#include "node-runtime/transport/datatype/overlap.hpp"
#include "node-runtime/transport/datatype/pack.hpp"

namespace heddle::p2p {
namespace {

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

void Request::cancel() const {
  endpoint_->cancel(is_send_, id_);
}

Endpoint::Endpoint(Wire& wire, const Options& options, std::function<void()> wake)
    : wire_(wire),
      options_(options),
      wake_(std::move(wake)),
      credits_(wire.nodes(), options.eager_slots),
      lost_(static_cast<std::size_t>(wire.nodes())),
      out_(options.out_slots, options.piece_bytes),
      in_(options.in_slots, options.piece_bytes) {
  const auto note_room = static_cast<std::int64_t>(Wire::note_bytes_max - sizeof(NoteHeader));
  HEDDLE_CHECK(options.eager_bytes_max >= 0 && options.eager_bytes_max <= note_room,
               "eager_bytes_max {}, but notes have room for {}", options.eager_bytes_max,
               note_room);
  HEDDLE_CHECK(options.piece_bytes > 0 && options.pieces_ahead > 0 && options.out_slots > 0 &&
               options.in_slots >= options.pieces_ahead);
}

Endpoint::~Endpoint() {
  const std::scoped_lock lock(mutex_);
  if (failure_.has_value()) return;
  HEDDLE_CHECK(sends_.empty() && receives_.empty() && mail_.empty(),
               "an endpoint ends with {} sends and {} receives under way", sends_.size(),
               receives_.size());
  HEDDLE_CHECK(arrivals_.empty(), "an endpoint ends with {} messages that nobody has received",
               arrivals_.size());
  HEDDLE_CHECK(out_.is_unused() && in_.is_unused() && operations_.empty(),
               "an endpoint ends with pieces on their way");
}

// ---- for the caller --------------------------------------------------------------------------

void Endpoint::check_peer(NodeId peer, std::string_view what) const {
  if (peer.value() >= 0 && peer.value() < wire_.nodes()) return;
  throw Error(ErrorCode::usage, fmt::format("{} node {}: there are {} nodes, counted from 0", what,
                                            peer.value(), wire_.nodes()));
}

Endpoint::Side Endpoint::make_side(std::string_view what, void* memory, std::int64_t count,
                                   const Datatype& type) {
  if (count < 0) {
    throw Error(ErrorCode::usage,
                fmt::format("{} {} elements: a count must not be negative", what, count));
  }
  Side side;
  side.memory = static_cast<std::byte*>(memory);
  side.count = count;
  side.plan = plans_.commit(type);
  side.bytes = side.plan->stream_bytes(count);
  // A type may hold addresses of its own, as with MPI_BOTTOM.
  if (side.bytes > 0 && memory == nullptr && side.plan->true_lower_bound <= 0) {
    throw Error(ErrorCode::usage, fmt::format("{} {} bytes at a null address", what, side.bytes));
  }
  const LoopNest nest = side.plan->nest_of(count);
  if (side.bytes == 0) {
    side.contiguous = side.memory;
  } else if (side.plan->body == PackPlan::Body::block && nest.depth == 0) {
    side.contiguous = side.memory + nest.offset;
  }
  return side;
}

std::int64_t Endpoint::count_request() {
  const std::scoped_lock lock(mutex_);
  if (failure_.has_value()) throw *failure_;
  if (under_way_ >= options_.requests_max) {
    throw Error(ErrorCode::usage,
                fmt::format("{} sends and receives are under way, which is the most at one time; "
                            "wait for some of them",
                            under_way_));
  }
  ++under_way_;
  return next_request_++;
}

void Endpoint::forget_request() {
  const std::scoped_lock lock(mutex_);
  --under_way_;
}

void Endpoint::post(Mail mail) {
  {
    const std::scoped_lock lock(mutex_);
    mail_.push_back(std::move(mail));
  }
  wake_();
}

Request Endpoint::send(const Outgoing& message, NodeId to, std::int32_t tag, ChannelId channel) {
  check_peer(to, "sending to");
  if (tag < 0) {
    throw Error(ErrorCode::usage, fmt::format("sending with tag {}: tags are not negative", tag));
  }
  auto send = std::make_shared<Send>();
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): only read
  auto* memory = const_cast<void*>(message.memory);
  send->side = make_side("sending", memory, message.count, message.type);
  send->digest = message.type.signature().repeated(message.count).digest(send->side.bytes);
  send->to = to;
  send->tag = tag;
  send->channel = channel;
  send->id = count_request();
  Request request(*this, send->id, true, send);
  post({std::move(send), nullptr, std::nullopt});
  return request;
}

Request Endpoint::receive(const Incoming& room, const Pattern& pattern) {
  if (pattern.source != Pattern::any_source) check_peer(pattern.source, "receiving from");
  if (pattern.tag < 0 && pattern.tag != Pattern::any_tag) {
    throw Error(ErrorCode::usage,
                fmt::format("receiving with tag {}: tags are not negative", pattern.tag));
  }
  auto receive = std::make_shared<Receive>();
  receive->side = make_side("receiving", room.memory, room.count, room.type);
  check_receivable(*receive->side.plan, room.count);
  receive->signature = room.type.signature().repeated(room.count);
  receive->pattern = pattern;
  receive->id = count_request();
  Request request(*this, receive->id, false, receive);
  post({nullptr, std::move(receive), std::nullopt});
  return request;
}

void Endpoint::cancel(bool is_send, std::int64_t id) {
  post({nullptr, nullptr, std::pair(is_send, id)});
}

// ---- progress --------------------------------------------------------------------------------

bool Endpoint::progress() {
  const bool had_mail = take_mail();
  events_.clear();
  wire_.poll(events_);
  if (events_.empty()) return had_mail;
  for (const Wire::Note& note : events_.notes) note_arrived(note);
  for (const OperationId id : events_.complete) completed(id);
  for (const NodeId peer : events_.lost) lost(peer);
  serve_waiting();
  return true;
}

bool Endpoint::take_mail() {
  {
    const std::scoped_lock lock(mutex_);
    taken_mail_.swap(mail_);
  }
  for (const Mail& one : taken_mail_) {
    if (one.send != nullptr) {
      start(one.send);
    } else if (one.receive != nullptr) {
      start(one.receive);
    } else if (one.cancelled->first) {
      cancel_send(one.cancelled->second);
    } else {
      cancel_receive(one.cancelled->second);
    }
  }
  const bool had_mail = !taken_mail_.empty();
  taken_mail_.clear();
  return had_mail;
}

bool Endpoint::is_idle() const {
  const std::scoped_lock lock(mutex_);
  return under_way_ == 0 && mail_.empty() && arrivals_.empty() && operations_.empty();
}

/// Room for what follows the header.
std::span<std::byte> Endpoint::begin_note(NodeId to, NoteHeader header, std::size_t payload_bytes) {
  header.credits = credits_.take_owed(to);
  const std::span<std::byte> note = wire_.begin_note(sizeof header + payload_bytes);
  std::memcpy(note.data(), &header, sizeof header);
  return note.subspan(sizeof header);
}

void Endpoint::send_note(NodeId to, const NoteHeader& header) {
  static_cast<void>(begin_note(to, header, 0));
  wire_.send_note(to);
}

OperationId Endpoint::add(const Operation& operation) {
  operations_.emplace(next_operation_, operation);
  return OperationId{next_operation_++};
}

// ---- notes -----------------------------------------------------------------------------------

void Endpoint::note_arrived(const Wire::Note& note) {
  NoteHeader header;
  HEDDLE_CHECK(note.bytes.size() >= sizeof header, "a note of {} bytes", note.bytes.size());
  std::memcpy(&header, note.bytes.data(), sizeof header);
  const std::span<const std::byte> payload = note.bytes.subspan(sizeof header);
  credits_.came_back(note.from, header.credits);
  switch (header.kind) {
    case NoteHeader::Kind::eager:
      credits_.slot_taken(note.from);
      [[fallthrough]];
    case NoteHeader::Kind::announce:
      message_arrived(note.from, header, payload);
      return;
    case NoteHeader::Kind::grant:
      granted(header);
      return;
    case NoteHeader::Kind::withdraw:
      withdraw(note.from, header);
      return;
    case NoteHeader::Kind::refuse:
    case NoteHeader::Kind::withdrawn: {
      const auto found = sends_.find(header.send);
      HEDDLE_CHECK(found != sends_.end(), "send {} is answered, but is not under way", header.send);
      Send& send = *found->second;
      if (header.kind == NoteHeader::Kind::refuse) {
        send.fail(Error(ErrorCode::usage, std::string(text_of(payload))));
      } else {
        send.complete({wire_.node(), send.tag, 0, true});
      }
      sends_.erase(found);
      forget_request();
      return;
    }
    case NoteHeader::Kind::credits:
      return;
  }
}

// ---- pieces ----------------------------------------------------------------------------------

void Endpoint::completed(OperationId id) {
  const auto node = operations_.extract(id.value());
  HEDDLE_CHECK(!node.empty(), "operation {} is complete twice", id.value());
  const Operation& piece = node.mapped();
  if (piece.is_send) {
    if (piece.slot) out_.give_back(*piece.slot);
    const auto found = sends_.find(piece.request);
    if (found == sends_.end()) return;  // its peer is lost
    Send& send = *found->second;
    --send.in_flight;
    send.done += piece.bytes;
    if (send.done == send.side.bytes) return end(send);
    post_pieces(send);
    return;
  }
  const auto found = receives_.find(piece.request);
  if (found == receives_.end()) {
    if (piece.slot) in_.give_back(*piece.slot);
    return;
  }
  Receive& receive = *found->second;
  --receive.in_flight;
  receive.done += piece.bytes;
  if (piece.slot) {
    unpack(*receive.side.plan, receive.side.count, {piece.begin, piece.bytes},
           in_.bytes(*piece.slot).data(), receive.side.memory);
    receive.slots.push_back(*piece.slot);
  }
  if (receive.done == receive.bytes) return end(receive);
  post_pieces(receive);
}

/// Slots have become free, perhaps.
void Endpoint::serve_waiting() {
  while (!receives_waiting_.empty()) {
    const auto found = receives_.find(receives_waiting_.front());
    if (found == receives_.end()) {  // its peer is lost
      receives_waiting_.pop_front();
      continue;
    }
    Receive& receive = *found->second;
    const std::int64_t pieces = (receive.bytes + receive.piece_bytes - 1) / receive.piece_bytes;
    const auto wanted =
        static_cast<std::size_t>(std::min<std::int64_t>(pieces, options_.pieces_ahead));
    if (in_.available() < wanted) break;
    receives_waiting_.pop_front();
    while (receive.slots.size() < wanted) receive.slots.push_back(*in_.take());
    post_pieces(receive);
  }
  // Each in turn, as long as there are slots and somebody may have one.
  for (std::size_t idle = 0; idle < sends_waiting_.size() && out_.available() > 0;) {
    const auto found = sends_.find(sends_waiting_.front());
    if (found == sends_.end()) {
      sends_waiting_.pop_front();
      continue;
    }
    const std::int64_t before = found->second->posted;
    post_pieces(*found->second);
    if (found->second->posted != before) {
      idle = 0;
      continue;
    }
    sends_waiting_.push_back(sends_waiting_.front());
    sends_waiting_.pop_front();
    ++idle;
  }
}

// ---- ends ------------------------------------------------------------------------------------

void Endpoint::lost(NodeId peer) {
  lost_[static_cast<std::size_t>(peer.value())] = true;
  const Error why(ErrorCode::communication, fmt::format("node {} is lost", peer.value()));
  std::erase_if(sends_, [&](const auto& entry) {
    if (entry.second->to != peer) return false;
    entry.second->fail(why);
    forget_request();
    return true;
  });
  static_cast<void>(matching_.lose(peer));
  std::erase_if(receives_, [&](const auto& entry) {
    Receive& receive = *entry.second;
    const bool is_affected =
        receive.is_taken ? receive.envelope.source == peer : receive.pattern.source == peer;
    if (!is_affected) return false;
    for (const Staging::Slot slot : receive.slots) in_.give_back(slot);
    receive.fail(why);
    forget_request();
    return true;
  });
  // The wire completes none of them any more.
  std::erase_if(operations_, [&](const auto& entry) {
    const Operation& piece = entry.second;
    const bool is_orphan =
        piece.is_send ? !sends_.contains(piece.request) : !receives_.contains(piece.request);
    if (is_orphan && piece.slot) (piece.is_send ? out_ : in_).give_back(*piece.slot);
    return is_orphan;
  });
}

void Endpoint::abandon(const Error& why) {
  std::vector<Mail> mail;
  {
    const std::scoped_lock lock(mutex_);
    failure_ = why;
    mail.swap(mail_);
  }
  for (const Mail& one : mail) {
    if (one.send != nullptr) one.send->fail(why);
    if (one.receive != nullptr) one.receive->fail(why);
  }
  for (const auto& [id, send] : sends_) send->fail(why);
  for (const auto& [id, receive] : receives_) receive->fail(why);
  sends_.clear();
  receives_.clear();
}

}  // namespace heddle::p2p
