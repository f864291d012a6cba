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

/// Pieces of a message between contiguous memories that are posted at a time.
constexpr std::int32_t direct_pieces = 4;

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
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

// ---- sends -----------------------------------------------------------------------------------

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

// ---- receives --------------------------------------------------------------------------------

void Endpoint::start(const std::shared_ptr<Receive>& started) {
  Receive& receive = *started;
  receives_.emplace(receive.id, started);
  const auto found = matching_.post(ReceiveId{receive.id}, receive.pattern);
  if (found.has_value()) {
    const auto node = arrivals_.extract(found->value());
    const Arrival& arrival = node.mapped();
    take(receive, arrival.envelope, arrival.header, arrival.payload);
    return;
  }
  const NodeId source = receive.pattern.source;
  if (source == Pattern::any_source || !lost_[static_cast<std::size_t>(source.value())]) return;
  matching_.cancel(ReceiveId{receive.id});
  receive.fail(Error(ErrorCode::communication,
                     fmt::format("receiving from node {}, which is lost", source.value())));
  receives_.erase(receive.id);
  forget_request();
}

void Endpoint::cancel_receive(std::int64_t id) {
  if (!matching_.cancel(ReceiveId{id})) return;
  const auto found = receives_.find(id);
  found->second->complete({NodeId{-1}, -1, 0, true});
  receives_.erase(found);
  forget_request();
}

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

void Endpoint::message_arrived(NodeId from, const NoteHeader& header,
                               std::span<const std::byte> payload) {
  const Envelope envelope{from, header.tag, ChannelId{header.channel}};
  const std::int64_t id = next_arrival_++;
  const auto found = matching_.arrive(ArrivalId{id}, envelope);
  if (found.has_value()) {
    take(*receives_.at(found->value()), envelope, header, payload);
    return;
  }
  ++statistics_.unexpected;
  arrivals_.emplace(id, Arrival{envelope, header, {payload.begin(), payload.end()}});
}

/// An announcement that no receive has taken yet is forgotten; otherwise the sender hears of the
/// receive, and its wish came too late.
void Endpoint::withdraw(NodeId from, const NoteHeader& header) {
  const auto found = std::ranges::find_if(arrivals_, [&](const auto& entry) {
    const Arrival& arrival = entry.second;
    return arrival.envelope.source == from && arrival.header.send == header.send &&
           arrival.header.kind == NoteHeader::Kind::announce;
  });
  if (found == arrivals_.end()) return;
  matching_.withdraw(ArrivalId{found->first});
  arrivals_.erase(found);
  NoteHeader answer;
  answer.kind = NoteHeader::Kind::withdrawn;
  answer.send = header.send;
  send_note(from, answer);
}

std::optional<std::string> Endpoint::mismatch(const Receive& receive,
                                              const NoteHeader& header) const {
  const std::string which =
      fmt::format("the message of {} bytes with tag {} from node {} to node {}", header.bytes,
                  header.tag, receive.envelope.source.value(), wire_.node().value());
  if (header.bytes > receive.signature.bytes()) {
    return fmt::format(
        "{} would be truncated: it is received where {} bytes fit; receive into a "
        "larger type or more elements",
        which, receive.signature.bytes());
  }
  if (!receive.signature.ends_scalar_at(header.bytes) ||
      receive.signature.digest(header.bytes) != header.digest) {
    return fmt::format(
        "the signatures of {} differ; both sides must describe the same scalars in "
        "the same order",
        which);
  }
  return std::nullopt;
}

void Endpoint::free_eager_slot(NodeId peer) {
  if (credits_.slot_freed(peer) && !lost_[static_cast<std::size_t>(peer.value())]) {
    send_note(peer, NoteHeader{});
  }
}

/// A message goes to a receive.
void Endpoint::take(Receive& receive, const Envelope& envelope, const NoteHeader& header,
                    std::span<const std::byte> payload) {
  const NodeId from = envelope.source;
  const bool is_eager = header.kind == NoteHeader::Kind::eager;
  receive.envelope = envelope;
  receive.bytes = header.bytes;
  receive.peer_send = header.send;
  receive.is_taken = true;
  if (const auto why = mismatch(receive, header)) {
    if (is_eager) {
      free_eager_slot(from);
    } else {
      NoteHeader answer;
      answer.kind = NoteHeader::Kind::refuse;
      answer.send = header.send;
      const auto text = begin_note(from, answer, why->size());
      std::ranges::copy(bytes_of(*why), text.begin());
      wire_.send_note(from);
    }
    receive.fail(Error(ErrorCode::usage, *why));
    receives_.erase(receive.id);
    forget_request();
    return;
  }
  if (is_eager) {
    unpack(*receive.side.plan, receive.side.count, {0, receive.bytes}, payload.data(),
           receive.side.memory);
    free_eager_slot(from);
    end(receive);
    return;
  }
  if (lost_[static_cast<std::size_t>(from.value())]) {
    receive.fail(
        Error(ErrorCode::communication,
              fmt::format("node {} was lost before it could send its message of {} bytes with tag "
                          "{}",
                          from.value(), header.bytes, header.tag)));
    receives_.erase(receive.id);
    forget_request();
    return;
  }
  grant(receive, header.is_contiguous != 0);
}

/// Direct where both sides are contiguous, otherwise in pieces that a slot has room for. What needs
/// slots and finds none waits for those before it.
void Endpoint::grant(Receive& receive, bool sender_is_contiguous) {
  const bool is_direct = sender_is_contiguous && receive.side.contiguous != nullptr;
  receive.piece_bytes = is_direct ? Wire::piece_bytes_max : options_.piece_bytes;
  if (receive.side.contiguous == nullptr && receive.bytes > 0) {
    receives_waiting_.push_back(receive.id);
    serve_waiting();
    return;
  }
  post_pieces(receive);
}

/// Tells the sender to begin when the first pieces have places, and posts them as places come.
void Endpoint::post_pieces(Receive& receive) {
  if (!receive.is_granted) {
    receive.is_granted = true;
    if (free_flows_.empty()) free_flows_.emplace_back(next_flow_++);
    receive.flow = free_flows_.back();
    free_flows_.pop_back();
    NoteHeader header;
    header.kind = NoteHeader::Kind::grant;
    header.send = receive.peer_send;
    header.flow = receive.flow.value();
    header.piece_bytes = receive.piece_bytes;
    send_note(receive.envelope.source, header);
  }
  const bool by_slots = receive.side.contiguous == nullptr;
  while (receive.posted < receive.bytes) {
    const std::int64_t bytes = std::min(receive.piece_bytes, receive.bytes - receive.posted);
    Operation piece{false, receive.id, receive.posted, bytes, std::nullopt};
    std::span<std::byte> into;
    if (by_slots) {
      if (receive.slots.empty()) return;
      piece.slot = receive.slots.back();
      receive.slots.pop_back();
      into = in_.bytes(*piece.slot).first(static_cast<std::size_t>(bytes));
    } else {
      if (receive.in_flight >= direct_pieces) return;
      into = {receive.side.contiguous + receive.posted, static_cast<std::size_t>(bytes)};
    }
    receive.posted += bytes;
    ++receive.in_flight;
    wire_.receive_bytes(receive.envelope.source, receive.flow, into, add(piece));
  }
  if (receive.bytes == 0) end(receive);
}

void Endpoint::end(Receive& receive) {
  if (receive.is_granted) free_flows_.push_back(receive.flow);
  for (const Staging::Slot slot : receive.slots) in_.give_back(slot);
  receive.complete({receive.envelope.source, receive.envelope.tag, receive.bytes, false});
  receives_.erase(receive.id);
  forget_request();
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
