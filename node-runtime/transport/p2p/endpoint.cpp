#include "node-runtime/transport/p2p/endpoint.hpp"

#include <algorithm>
#include <cstring>
#include <fmt/core.h>
#include <utility>

#include "base/assert.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"

namespace heddle::p2p {
namespace {

std::size_t slots_bytes(std::int32_t slots, std::int64_t bytes) {
  return static_cast<std::size_t>(slots) * static_cast<std::size_t>(bytes);
}

/// Where pieces are received: in the window, if it has room for them.
std::size_t own_bytes(const Wire& wire, const Endpoint::Options& options) {
  return wire.window().size() >= options.window_bytes() ? 0 : options.window_bytes();
}

void check_count(std::string_view what, std::int64_t count) {
  if (count >= 0) return;
  throw Error(ErrorCode::usage,
              fmt::format("{} {} elements: a count must not be negative", what, count));
}

std::vector<DeviceBuffer> rings(std::span<Device* const> devices,
                                const Endpoint::Options& options) {
  std::vector<DeviceBuffer> memory;
  if (options.ring_slots == 0) return memory;
  for (Device* device : devices) {
    memory.emplace_back(*device,
                        slots_bytes(2 * options.ring_slots, options.sizes.ring_piece_bytes));
  }
  return memory;
}

/// Each size is known where it is copied.
void copy_header(void* to, const void* from, NoteHeader::Kind kind) {
  if (kind == NoteHeader::Kind::eager) {
    std::memcpy(to, from, NoteHeader::size_of(NoteHeader::Kind::eager));
  } else {
    std::memcpy(to, from, sizeof(NoteHeader));
  }
}

}  // namespace

void Request::cancel() const {
  if (state_ == nullptr) return;  // it is over
  endpoint_->cancel(is_send_, id_);
}

Endpoint::Endpoint(Wire& wire, const Options& options, std::function<void()> wake,
                   std::span<Device* const> devices, Mapper* mapper)
    : wire_(wire),
      options_(options),
      wake_(std::move(wake)),
      requests_(options.requests_max),
      credits_(wire.nodes(), static_cast<std::int32_t>(options.eager_memory_bytes / credit_bytes)),
      peers_(static_cast<std::size_t>(wire.nodes())),
      out_memory_(slots_bytes(options.out_slots, options.sizes.piece_bytes)),
      in_memory_(own_bytes(wire, options)),
      lanes_(devices, options.lanes, waker_),
      ring_memory_(rings(devices, options)),
      mappings_(mapper == nullptr ? own_mapper_ : *mapper, options.mappings_max) {
  const PathSizes& sizes = options_.sizes;
  const auto note_room = static_cast<std::int64_t>(Wire::note_bytes_max - sizeof(NoteHeader));
  HEDDLE_CHECK(options.eager_bytes_max >= 0 && options.eager_bytes_max <= note_room,
               "eager_bytes_max {}, but notes have room for {}", options.eager_bytes_max,
               note_room);
  HEDDLE_CHECK(sizes.piece_bytes > 0 && sizes.pieces_ahead > 0 && options.out_slots > 0 &&
               options.in_slots >= sizes.pieces_ahead);
  HEDDLE_CHECK(devices.empty() || options.eager_bytes_max <= sizes.piece_bytes,
               "eager messages of {} bytes pass through slots of {} to a device",
               options.eager_bytes_max, sizes.piece_bytes);
  HEDDLE_CHECK(options.ring_slots == 0 ||
               (sizes.ring_slots > 0 && options.ring_slots >= sizes.ring_slots));
  out_ = Staging(out_memory_.span().data(), options.out_slots, sizes.piece_bytes);
  const bool by_window = in_memory_.span().empty();
  in_ = Staging(by_window ? wire.window().data() : in_memory_.span().data(), options.in_slots,
                sizes.piece_bytes);
  for (const DeviceBuffer& memory : ring_memory_) {
    rings_.emplace_back(memory.address(), options.ring_slots, sizes.ring_piece_bytes);
    out_rings_.emplace_back(
        memory.address() + slots_bytes(options.ring_slots, sizes.ring_piece_bytes),
        options.ring_slots, sizes.ring_piece_bytes);
  }
  if (devices.empty()) return;
  lock(out_memory_.span());
  by_window ? reach_window(wire.node()) : lock(in_memory_.span());
}

Endpoint::~Endpoint() {
  const std::scoped_lock lock(mutex_);
  if (failure_.has_value()) return;
  HEDDLE_CHECK(sends_.empty() && receives_.empty() && releases_.empty() && mail_.empty(),
               "an endpoint ends with {} sends and {} receives under way", sends_.size(),
               receives_.size());
  HEDDLE_CHECK(arrivals_.empty(), "an endpoint ends with {} messages that nobody has received",
               arrivals_.size());
  HEDDLE_CHECK(out_.is_unused() && in_.is_unused() && operations_.empty(),
               "an endpoint ends with pieces on their way");
  HEDDLE_CHECK(lanes_.count() == 0 || is_closed(),
               "an endpoint with devices ends before the others have closed its memory");
}

// ---- for the caller --------------------------------------------------------------------------

void Endpoint::check_peer(NodeId peer, std::string_view what) const {
  if (peer.value() >= 0 && peer.value() < wire_.nodes()) return;
  throw Error(ErrorCode::usage, fmt::format("{} node {}: there are {} nodes, counted from 0", what,
                                            peer.value(), wire_.nodes()));
}

Endpoint::Side Endpoint::make_side(ShapeCache& shapes, std::string_view what, void* memory,
                                   std::int64_t count, const Datatype& type) {
  check_count(what, count);
  std::shared_ptr<const Shape> shape = shapes.shape_of(type, count);
  Side side = make_side(*shape, what, memory);
  side.kept = std::move(shape);
  return side;
}

Endpoint::Side Endpoint::make_side(const Shape& shape, std::string_view what, void* memory) const {
  Side side;
  side.shape = &shape;
  side.memory = static_cast<std::byte*>(memory);
  side.bytes = side.shape->bytes;
  const PackPlan& plan = *side.shape->plan;
  // A type may hold addresses of its own, as with MPI_BOTTOM.
  if (side.bytes > 0 && memory == nullptr && plan.true_lower_bound <= 0) {
    throw Error(ErrorCode::usage, fmt::format("{} {} bytes at a null address", what, side.bytes));
  }
  if (side.bytes == 0) {
    side.contiguous = side.memory;
    return side;
  }
  if (side.shape->is_run) side.contiguous = side.memory + side.shape->offset;
  if (lanes_.count() > 0)
    side.lane = lanes_.owner_of(side.memory + plan.true_lower_bound, side.bytes);
  return side;
}

/// The shape, which is that of the message before as a rule.
const std::shared_ptr<const Shape>& Endpoint::recent(std::shared_ptr<const Shape>& kept,
                                                     ShapeCache& shapes, std::string_view what,
                                                     std::int64_t count, const Datatype& type) {
  const bool is_same =
      kept != nullptr && kept->count == count && kept->type.identity() == type.identity();
  if (!is_same) {
    check_count(what, count);
    kept = shapes.shape_of(type, count);
  }
  return kept;
}

std::int64_t Endpoint::count_request(bool at_once) {
  if (const auto number = requests_.begin(at_once)) return *number;
  throw Error(ErrorCode::usage,
              fmt::format("{} sends and receives are under way, which is the most at one time; "
                          "wait for some of them",
                          options_.requests_max));
}

/// Its memory is given back when nothing else is to be done: somebody waits for what comes next.
void Endpoint::bury(std::shared_ptr<RequestState> request) {
  constexpr std::size_t buried_max = 4;  // as few as malloc keeps at hand
  if (buried_.size() == buried_max) buried_.clear();
  buried_.push_back(std::move(request));
}

/// Handles may outlive the endpoint, what they refer to in it must not.
void Endpoint::forget(Send& send) {
  send.mapping.reset();
  bury(sends_.extract(send.id));
  requests_.end();
}

void Endpoint::forget(Receive& receive) {
  receive.mapping.reset();
  bury(receives_.extract(receive.id));
  requests_.end();
}

void Endpoint::post(Mail mail) {
  {
    const std::scoped_lock lock(mutex_);
    if (failure_.has_value()) {
      if (mail.cancelled) return;  // it is over already
      requests_.refuse();
      throw Error(*failure_);
    }
    mail_.push_back(std::move(mail));
    has_mail_.store(true, std::memory_order_relaxed);
  }
  wake_();
}

void Endpoint::check_send(NodeId to, std::int32_t tag) const {
  check_peer(to, "sending to");
  if (tag >= 0) return;
  throw Error(ErrorCode::usage, fmt::format("sending with tag {}: tags are not negative", tag));
}

void Endpoint::check_receive(const Pattern& pattern) const {
  if (pattern.source != Pattern::any_source) check_peer(pattern.source, "receiving from");
  if (pattern.tag >= 0 || pattern.tag == Pattern::any_tag) return;
  throw Error(ErrorCode::usage,
              fmt::format("receiving with tag {}: tags are not negative", pattern.tag));
}

namespace {

void* memory_of(const Outgoing& message) {
  return const_cast<void*>(message.memory);  // NOLINT(*-const-cast): only read
}

}  // namespace

std::shared_ptr<Endpoint::Send> Endpoint::new_send(Side side, NodeId to, std::int32_t tag,
                                                   ChannelId channel, bool at_once) {
  auto send = std::make_shared<Send>(!at_once);
  send->side = std::move(side);
  if (send->side.lane) send->via = *send->side.lane;
  send->to = to;
  send->tag = tag;
  send->channel = channel;
  send->id = count_request(at_once);
  return send;
}

std::shared_ptr<Endpoint::Receive> Endpoint::new_receive(Side side, const Pattern& pattern,
                                                         bool at_once) {
  auto receive = std::make_shared<Receive>(!at_once);
  receive->side = std::move(side);
  if (receive->side.lane) receive->via = *receive->side.lane;
  receive->pattern = pattern;
  receive->id = count_request(at_once);
  return receive;
}

Request Endpoint::send(const Outgoing& message, NodeId to, std::int32_t tag, ChannelId channel,
                       OnEnd on_end) {
  check_send(to, tag);
  auto send =
      new_send(make_side(sent_shapes_, "sending", memory_of(message), message.count, message.type),
               to, tag, channel, false);
  if (on_end) send->call_at_end(std::move(on_end));
  Request request(*this, send->id, true, send);
  post({std::move(send), nullptr, nullptr, std::nullopt});
  return request;
}

Request Endpoint::receive(const Incoming& room, const Pattern& pattern, OnEnd on_end) {
  check_receive(pattern);
  auto receive = new_receive(
      make_side(received_shapes_, "receiving", room.memory, room.count, room.type), pattern, false);
  if (on_end) receive->call_at_end(std::move(on_end));
  Request request(*this, receive->id, false, receive);
  post({nullptr, std::move(receive), nullptr, std::nullopt});
  return request;
}

Request Endpoint::send_at_once(const Outgoing& message, NodeId to, std::int32_t tag,
                               ChannelId channel) {
  check_send(to, tag);
  if (failure_.has_value()) throw Error(*failure_);
  static_cast<void>(take_mail());  // what came before goes before
  const auto& shape = recent(last_sent_, sent_shapes_, "sending", message.count, message.type);
  Side side = make_side(*shape, "sending", memory_of(message));
  if (!peer(to).is_lost && send_eagerly(side, to, tag, channel)) {
    return {*this, Status{wire_.node(), tag, side.bytes, false, Path::eager}};
  }
  side.kept = shape;
  auto send = new_send(std::move(side), to, tag, channel, true);
  Request request(*this, send->id, true, send);
  start(std::move(send));
  return request;
}

Request Endpoint::receive_at_once(const Incoming& room, const Pattern& pattern) {
  check_receive(pattern);
  if (failure_.has_value()) throw Error(*failure_);
  static_cast<void>(take_mail());
  const auto& shape = recent(last_received_, received_shapes_, "receiving", room.count, room.type);
  Side side = make_side(*shape, "receiving", room.memory);
  side.kept = shape;
  auto receive = new_receive(std::move(side), pattern, true);
  Request request(*this, receive->id, false, receive);
  start(std::move(receive));
  return request;
}

void Endpoint::cancel(bool is_send, std::int64_t id) {
  post({nullptr, nullptr, nullptr, std::pair(is_send, id)});
}

// ---- progress --------------------------------------------------------------------------------

bool Endpoint::progress() {
  const bool had_mail = take_mail();
  events_.clear();
  ended_.clear();
  wire_.poll(events_);
  lanes_.poll(ended_);
  const bool had_events = !events_.empty() || !ended_.empty();
  for (const Wire::Note& note : events_.notes) note_arrived(note);
  for (const OperationId id : events_.complete) completed(id, std::nullopt);
  for (const Lanes::Ended& one : ended_) completed(one.id, one.failure);
  for (const NodeId peer : events_.lost) lost(peer);
  const bool has_read = read_on();
  // Whatever has ended may have left slots that others wait for.
  if (had_events || has_read) serve_waiting();
  const bool was_something_done = had_mail || had_events || has_read;
  if (!was_something_done) buried_.clear();
  return was_something_done;
}

bool Endpoint::take_mail() {
  // Relaxed: what was posted is seen under the lock, now or at the next look.
  if (!has_mail_.load(std::memory_order_relaxed)) return false;
  {
    const std::scoped_lock lock(mutex_);
    taken_mail_.swap(mail_);
    has_mail_.store(false, std::memory_order_relaxed);
  }
  for (Mail& one : taken_mail_) {
    if (one.send != nullptr) {
      start(std::move(one.send));
    } else if (one.receive != nullptr) {
      start(std::move(one.receive));
    } else if (one.release != nullptr) {
      start(one.release);
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
  return requests_.is_zero() && mail_.empty() && arrivals_.empty() && operations_.empty();
}

Endpoint::Statistics Endpoint::statistics() const {
  Statistics all = statistics_;
  all.mappings = mappings_.statistics();
  return all;
}

OperationId Endpoint::add(const Operation& operation) {
  Operation& added = operations_.emplace(next_operation_, operation);
  if (options_.fragment) added.begun_ns = now_ns();
  return OperationId{next_operation_++};
}

void Endpoint::completed(OperationId id, const std::optional<std::string>& failure) {
  const Operation piece = operations_.extract(id.value());  // each is complete once
  if (options_.fragment) tell(piece);
  piece.is_of_send() ? sent(piece, failure) : came(piece, failure);
}

void Endpoint::tell(const Operation& piece) {
  options_.fragment({piece.kind, piece.request, piece.range, piece.begun_ns, now_ns()});
}

// ---- notes -----------------------------------------------------------------------------------

/// Room for what follows the header; eager ones are written by send_eagerly().
std::span<std::byte> Endpoint::begin_note(NodeId to, NoteHeader header, std::size_t payload_bytes) {
  header.credits = credits_.take_owed(to);
  const std::span<std::byte> note = wire_.begin_note(to, sizeof header + payload_bytes);
  std::memcpy(note.data(), &header, sizeof header);
  return note.subspan(sizeof header);
}

void Endpoint::send_note(NodeId to, const NoteHeader& header) {
  static_cast<void>(begin_note(to, header, 0));
  wire_.send_note();
}

void Endpoint::send_note(NodeId to, const NoteHeader& header, std::span<const std::byte> payload) {
  const auto room = begin_note(to, header, payload.size());
  std::ranges::copy(payload, room.begin());
  wire_.send_note();
}

void Endpoint::note_arrived(const Wire::Note& note) {
  NoteHeader header;
  HEDDLE_CHECK(note.bytes.size() >= NoteHeader::size_of(NoteHeader::Kind::eager),
               "a note of {} bytes", note.bytes.size());
  std::memcpy(&header.kind, note.bytes.data(), sizeof header.kind);
  const std::size_t header_bytes = NoteHeader::size_of(header.kind);
  HEDDLE_CHECK(note.bytes.size() >= header_bytes, "a note of {} bytes", note.bytes.size());
  copy_header(&header, note.bytes.data(), header.kind);
  const std::span<const std::byte> payload = note.bytes.subspan(header_bytes);
  credits_.came_back(note.from, header.credits);
  using Kind = NoteHeader::Kind;
  switch (header.kind) {
    case Kind::eager:
      credits_.room_taken(note.from, credits_for(header.bytes));
      [[fallthrough]];
    case Kind::announce:
      return message_arrived(note.from, header, payload);
    case Kind::grant:
      return granted(note.from, header, payload);
    case Kind::decline:
      return declined(note.from, header, text_of(payload));
    case Kind::filled:
      return filled(note.from, header);
    case Kind::slot:
      return slot_is_free(header);
    case Kind::fetched:
    case Kind::refuse:
    case Kind::withdrawn:
      return answered(header, payload);
    case Kind::broken:
      return sender_broke(header, text_of(payload));
    case Kind::withdraw:
      return withdraw(note.from, header);
    case Kind::introduce:
      return introduced(note.from, payload);
    case Kind::release: {
      const auto memory = read<ReleasedMemory>(payload);
      return mappings_.release(note.from, memory.device, memory.allocation,
                               [this, from = note.from, memory] {
                                 NoteHeader answer;
                                 answer.kind = Kind::released;
                                 send_note(from, answer, bytes_of(memory));
                               });
    }
    case Kind::released:
      return released(note.from, read<ReleasedMemory>(payload));
    case Kind::goodbye:
      peer(note.from).has_said_goodbye = true;
      return;
    case Kind::credits:
      return;
  }
}

// ---- slots -----------------------------------------------------------------------------------

/// Slots have become free, perhaps.
void Endpoint::serve_waiting() {
  if (receives_waiting_.empty() && sends_waiting_.empty()) return;
  // In turn, as far as there are slots; those of devices do not wait for slots of the host.
  std::vector<const Staging*> short_of;
  for (std::size_t tries = receives_waiting_.size(); tries > 0; --tries) {
    const std::int64_t id = receives_waiting_.front();
    receives_waiting_.pop_front();
    const auto* const found = receives_.find(id);
    if (found == nullptr) continue;  // its peer is lost
    Receive& receive = **found;
    Staging& slots = slots_of(receive);
    const std::int64_t pieces = (receive.bytes + receive.piece_bytes - 1) / receive.piece_bytes;
    const std::int32_t ahead =
        receive.path == Path::ring ? options_.sizes.ring_slots : options_.sizes.pieces_ahead;
    const auto wanted = receive.path == Path::get
                            ? std::size_t{1}
                            : static_cast<std::size_t>(std::min<std::int64_t>(pieces, ahead));
    const bool is_passed_by = std::ranges::find(short_of, &slots) != short_of.end();
    if (is_passed_by || slots.available() < wanted) {
      short_of.push_back(&slots);
      receives_waiting_.push_back(id);
      continue;
    }
    while (receive.slots.size() < wanted) receive.slots.push_back(*slots.take());
    give_slots(receive);
  }
  // Each in turn, as long as there are slots and somebody may have one.
  for (std::size_t idle = 0; idle < sends_waiting_.size() && out_.available() > 0;) {
    const auto* const found = sends_.find(sends_waiting_.front());
    if (found == nullptr) {
      sends_waiting_.pop_front();
      continue;
    }
    const std::shared_ptr<Send> send = *found;
    const std::int64_t before = send->posted;
    post_pieces(*send);
    if (send->posted != before) {
      idle = 0;
      continue;
    }
    sends_waiting_.push_back(sends_waiting_.front());
    sends_waiting_.pop_front();
    ++idle;
  }
}

// ---- ends ------------------------------------------------------------------------------------

void Endpoint::lost(NodeId node) {
  peer(node).is_lost = true;
  const Error why(ErrorCode::communication, fmt::format("node {} is lost", node.value()));
  static_cast<void>(matching_.lose(node));
  // The wire completes none of its operations any more; those of devices come to their end.
  std::map<std::int64_t, std::int32_t> dropped;  ///< pieces by request; numbers are used once
  std::vector<std::int64_t> orphans;
  operations_.for_each([&](std::int64_t id, const Operation& piece) {
    if (piece.kind != Operation::Kind::send && piece.kind != Operation::Kind::receive) return;
    const bool is_of_send = piece.is_of_send();
    const bool is_orphan = is_of_send ? sends_.at(piece.request)->to == node
                                      : receives_.at(piece.request)->envelope.source == node;
    if (!is_orphan) return;
    if (piece.slot) (is_of_send ? out_ : in_).give_back(*piece.slot);
    ++dropped[piece.request];
    orphans.push_back(id);
  });
  for (const std::int64_t id : orphans) operations_.erase(id);
  std::vector<std::shared_ptr<Send>> sends;
  std::vector<std::shared_ptr<Receive>> receives;
  sends_.for_each([&](std::int64_t, const auto& send) {
    if (send->to == node) sends.push_back(send);
  });
  receives_.for_each([&](std::int64_t, const auto& receive) {
    const bool is_affected =
        receive->is_taken ? receive->envelope.source == node : receive->pattern.source == node;
    if (is_affected) receives.push_back(receive);
  });
  for (const auto& send : sends) {
    send->in_flight -= dropped[send->id];
    // Packed, behind one that is being packed still.
    send->in_flight -=
        static_cast<std::int32_t>(std::erase_if(send->packing, [&](const auto& piece) {
          if (piece.is_packed) out_.give_back(piece.slot);
          return piece.is_packed;
        }));
    fail(*send, why);
  }
  for (const auto& receive : receives) {
    receive->in_flight -= dropped[receive->id];
    fail(*receive, why);
  }
  const auto releases = releases_;
  for (const auto& release : releases) std::erase(release->waits_for, node);
  end_releases();
  mappings_.close(node);
}

void Endpoint::abandon(const Error& why) {
  std::vector<Mail> mail;
  {
    const std::scoped_lock lock(mutex_);
    failure_ = why;
    mail.swap(mail_);
  }
  // Nothing of a device touches memory any more when requests have ended.
  lanes_.abandon();
  for (const Mail& one : mail) {
    if (one.send != nullptr) one.send->fail(why);
    if (one.receive != nullptr) one.receive->fail(why);
    if (one.release != nullptr) one.release->fail(why);
  }
  sends_.for_each([&](std::int64_t, const auto& send) {
    send->mapping.reset();
    send->fail(why);
  });
  receives_.for_each([&](std::int64_t, const auto& receive) {
    receive->mapping.reset();
    receive->fail(why);
  });
  for (const auto& release : releases_) release->fail(why);
  sends_.clear();
  receives_.clear();
  releases_.clear();
}

}  // namespace heddle::p2p
