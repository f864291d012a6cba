#include "node-runtime/transport/p2p/endpoint.hpp"

#include <cstring>
#include <fmt/core.h>
#include <fmt/format.h>
#include <limits>
#include <sched.h>

#include "base/assert.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/waking_time.hpp"

namespace heddle::p2p {
namespace {

const EndpointOptions& checked(const EndpointOptions& options, bool has_devices) {
  const PathSizes& sizes = options.sizes;
  const auto note_room = static_cast<std::int64_t>(Wire::note_bytes_max - sizeof(NoteHeader));
  HEDDLE_CHECK(options.eager_bytes_max >= 0 && options.eager_bytes_max <= note_room,
               "eager_bytes_max {}, but notes have room for {}", options.eager_bytes_max,
               note_room);
  HEDDLE_CHECK(sizes.piece_bytes > 0 && sizes.pieces_ahead > 0 && options.out_slots > 0 &&
                   options.in_slots >= sizes.pieces_ahead,
               "pieces of {} bytes, {} ahead, {} out slots, {} in slots", sizes.piece_bytes,
               sizes.pieces_ahead, options.out_slots, options.in_slots);
  HEDDLE_CHECK(!has_devices || options.eager_bytes_max <= sizes.piece_bytes,
               "eager messages of {} bytes pass through slots of {} to a device",
               options.eager_bytes_max, sizes.piece_bytes);
  HEDDLE_CHECK(
      options.ring_slots == 0 || (sizes.ring_slots > 0 && options.ring_slots >= sizes.ring_slots),
      "rings of {} slots, of which a message takes {}", options.ring_slots, sizes.ring_slots);
  return options;
}

/// Each size is known at compile time where the bytes are copied.
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
      options_(checked(options, !devices.empty())),
      waker_(std::move(wake)),
      requests_(options.requests_max),
      credits_(wire.nodes(), static_cast<std::int32_t>(options.eager_memory_bytes / credit_bytes)),
      lanes_(devices, options.lanes, waker_),
      slots_(wire, lanes_, devices, options),
      pieces_(options.fragment),
      neighbours_(wire, notes_, lanes_, slots_, requests_, mapper, options.mappings_max),
      sender_({options_, wire_, notes_, lanes_, slots_, neighbours_, pieces_, requests_}),
      receiver_({options_, wire_, notes_, lanes_, slots_, neighbours_, pieces_, requests_}),
      works_(lanes_, neighbours_, requests_, wire.node()) {}

Endpoint::~Endpoint() {
  if (mailbox_.failure().has_value()) return;
  HEDDLE_CHECK(requests_.is_zero() && mailbox_.empty(),
               "an endpoint ends with {} sends and {} receives under way", sender_.sends().size(),
               receiver_.receives().size());
  HEDDLE_CHECK(receiver_.arrivals() == 0,
               "an endpoint ends with {} messages that no receive has taken", receiver_.arrivals());
  HEDDLE_CHECK(slots_.are_unused() && pieces_.empty(), "an endpoint ends with pieces under way");
  HEDDLE_CHECK(lanes_.count() == 0 || is_closed(),
               "an endpoint with devices ends before the others have closed its memory");
}

// ---- requests --------------------------------------------------------------------------------

void Endpoint::check_peer(NodeId peer, std::string_view what) const {
  if (peer.value() >= 0 && peer.value() < wire_.nodes()) return;
  throw Error(ErrorCode::usage, fmt::format("{} node {}: there are {} nodes, counted from 0", what,
                                            peer.value(), wire_.nodes()));
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

std::shared_ptr<Send> Endpoint::new_send(Side side, NodeId to, std::int32_t tag, ChannelId channel,
                                         bool at_once) {
  auto send = std::make_shared<Send>(!at_once);
  send->side = std::move(side);
  if (send->side.lane) send->via = *send->side.lane;
  send->to = to;
  send->tag = tag;
  send->channel = channel;
  send->id = requests_.begin(at_once);
  return send;
}

std::shared_ptr<Receive> Endpoint::new_receive(Side side, const Pattern& pattern, bool at_once) {
  auto receive = std::make_shared<Receive>(!at_once);
  receive->side = std::move(side);
  if (receive->side.lane) receive->via = *receive->side.lane;
  receive->pattern = pattern;
  receive->id = requests_.begin(at_once);
  return receive;
}

Request Endpoint::send(const Outgoing& message, NodeId to, std::int32_t tag, ChannelId channel,
                       OnEnd on_end) {
  check_send(to, tag);
  auto send = new_send(sides_.of(message), to, tag, channel, false);
  if (on_end) send->call_at_end(std::move(on_end));
  Request request(*this, send->id, true, send);
  post({.send = std::move(send)});
  return request;
}

Request Endpoint::receive(const Incoming& room, const Pattern& pattern, OnEnd on_end) {
  check_receive(pattern);
  auto receive = new_receive(sides_.of(room), pattern, false);
  if (on_end) receive->call_at_end(std::move(on_end));
  Request request(*this, receive->id, false, receive);
  post({.receive = std::move(receive)});
  return request;
}

Request Endpoint::release(const void* memory) {
  const auto lane = lanes_.owner_of(memory, std::numeric_limits<std::int64_t>::max());
  if (!lane) {
    throw Error(ErrorCode::usage, fmt::format("releasing memory at {}: it is no device's of this "
                                              "node",
                                              fmt::ptr(memory)));
  }
  auto release = std::make_shared<Release>();
  try {
    const auto* const address = static_cast<const std::byte*>(memory);
    const MemoryReference reference = refer_to(lanes_.device(*lane), address);
    release->handle = reference.handle;
    release->begin = address - reference.offset;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::communication) {  // memory that cannot be shared is not mapped
      lanes_.device(*lane).disown(memory);
      return {*this, Status{wire_.node(), 0, 0, false}};
    }
    throw Error(ErrorCode::usage, fmt::format("releasing memory: {}", error.what()));
  }
  release->lane = *lane;
  const std::int64_t id = requests_.begin(false);
  Request request(*this, id, true, release);
  post({.release = std::move(release)});
  return request;
}

Request Endpoint::work(DeviceWork work, OnEnd on_end) {
  if (work.lane.value() < 0 || work.lane.value() >= lanes_.count()) {
    throw Error(ErrorCode::usage, fmt::format("work of device {}: the endpoint has {}, counted "
                                              "from 0",
                                              work.lane.value(), lanes_.count()));
  }
  auto begun = std::make_shared<Work>();
  begun->device = std::move(work);
  return begin(std::move(begun), std::move(on_end));
}

Request Endpoint::refer(std::shared_ptr<Referral> referral, OnEnd on_end) {
  for (const NodeId node : referral->nodes) check_peer(node, "referring memory to");
  auto begun = std::make_shared<Work>();
  begun->referral = std::move(referral);
  return begin(std::move(begun), std::move(on_end));
}

Request Endpoint::begin(std::shared_ptr<Work> work, OnEnd on_end) {
  if (on_end) work->call_at_end(std::move(on_end));
  work->id = requests_.begin(false);
  Request request(*this, work->id, true, work);
  post({.work = std::move(work)});
  return request;
}

void Endpoint::check_running() const {
  if (mailbox_.failure().has_value()) throw Error(*mailbox_.failure());
}

Request Endpoint::expect(const Incoming& room, const Envelope& envelope,
                         std::span<const std::byte> word, OnEnd on_end) {
  check_peer(envelope.source, "expecting a message from");
  check_running();
  auto receive = new_receive(sides_.of(room), {}, true);
  if (on_end) receive->call_at_end(std::move(on_end));
  Request request(*this, receive->id, false, receive);
  receiver_.expect(std::move(receive), envelope, word);
  return request;
}

void Endpoint::expect_without_room(const Envelope& envelope, std::span<const std::byte> word) {
  check_peer(envelope.source, "expecting a message from");
  check_running();
  receiver_.expect_without_room(envelope, word);
}

Request Endpoint::send_expected(const Outgoing& message, NodeId to, std::int32_t tag,
                                ChannelId channel, OnEnd on_end) {
  check_send(to, tag);
  check_running();
  if (!neighbours_.is_lost(to) && !sender_.expects(to, tag, channel)) {
    throw Error(ErrorCode::usage,
                fmt::format("sending with tag {} to node {}: it has not said that it expects such "
                            "a message",
                            tag, to.value()));
  }
  auto send = new_send(sides_.of(message), to, tag, channel, true);
  if (on_end) send->call_at_end(std::move(on_end));
  Request request(*this, send->id, true, send);
  sender_.start_expected(std::move(send));
  return request;
}

std::optional<Request> Endpoint::send_arriving(const Outgoing& message, std::int64_t there,
                                               NodeId to, std::int32_t tag, ChannelId channel,
                                               OnEnd on_end) {
  check_send(to, tag);
  check_running();
  const auto send = new_send(sides_.of(message), to, tag, channel, true);
  send->missing = send->side.bytes - there;
  if (on_end) send->call_at_end(std::move(on_end));
  if (sender_.start_arriving(send)) return Request(*this, send->id, true, send);
  requests_.end();
  return std::nullopt;
}

void Endpoint::tell(NodeId to, std::span<const std::byte> word) {
  check_peer(to, "telling");
  check_running();
  if (neighbours_.is_lost(to)) return;
  NoteHeader header;
  header.kind = NoteHeader::Kind::word;
  notes_.send(to, header, word);
}

Request Endpoint::send_at_once(const Outgoing& message, NodeId to, std::int32_t tag,
                               ChannelId channel) {
  check_send(to, tag);
  check_running();
  take_mail();  // what came before goes before
  const auto& shape = sides_.recent(message);
  Side side = sides_.to_side(*shape, message);
  if (!neighbours_.is_lost(to) && sender_.send_eagerly(side, to, tag, channel)) {
    return {*this, Status{wire_.node(), tag, side.bytes, false, Path::eager}};
  }
  side.kept = shape;
  auto send = new_send(std::move(side), to, tag, channel, true);
  Request request(*this, send->id, true, send);
  sender_.start(std::move(send));
  return request;
}

Request Endpoint::receive_at_once(const Incoming& room, const Pattern& pattern) {
  check_receive(pattern);
  check_running();
  take_mail();
  const auto& shape = sides_.recent(room);
  Side side = sides_.to_side(*shape, room);
  side.kept = shape;
  auto receive = new_receive(std::move(side), pattern, true);
  Request request(*this, receive->id, false, receive);
  receiver_.start(std::move(receive));
  return request;
}

void Endpoint::cancel(bool is_send, std::int64_t id) {
  post(is_send ? Mail{.cancelled_send = id} : Mail{.cancelled_receive = id});
}

void Endpoint::post(Mail mail) {
  const bool is_cancel = mail.cancelled_send != 0 || mail.cancelled_receive != 0;
  if (const auto failure = mailbox_.post(std::move(mail))) {
    if (is_cancel) return;  // it is over already
    requests_.refuse();
    throw Error(*failure);
  }
  waker_.notify();
}

// ---- progress --------------------------------------------------------------------------------

bool Endpoint::progress() {
  const bool had_mail = take_mail();
  events_.wire.clear();
  events_.devices.clear();
  wire_.poll(events_.wire);
  lanes_.poll(events_.devices);
  const bool had_events = !events_.wire.empty() || !events_.devices.empty();
  for (const Wire::Note& note : events_.wire.notes) note_arrived(note);
  for (const OperationId id : events_.wire.complete) ended(id, std::nullopt);
  for (const OperationId id : events_.wire.blank) ended(id, std::nullopt, true);
  for (const Lanes::Ended& one : events_.devices) ended(one.id, one.failure);
  for (const NodeId peer : events_.wire.lost) lost(peer);
  const bool has_read = receiver_.read_on();
  // What has ended may have left slots that others wait for.
  if (had_events || has_read) {
    receiver_.serve_waiting();
    sender_.sends().serve_waiting();
  }
  HEDDLE_EXPENSIVE(is_valid());
  const bool was_something_done = had_mail || had_events || has_read;
  if (!was_something_done) requests_.free_ended();
  return was_something_done;
}

bool Endpoint::take_mail() {
  return mailbox_.take([this](Mail& mail) {
    if (mail.send != nullptr) {
      sender_.start(std::move(mail.send));
    } else if (mail.receive != nullptr) {
      receiver_.start(std::move(mail.receive));
    } else if (mail.release != nullptr) {
      start(mail.release);
    } else if (mail.work != nullptr) {
      works_.start(std::move(mail.work));
    } else if (mail.cancelled_send != 0) {
      if (!works_.cancel(mail.cancelled_send)) sender_.cancel(mail.cancelled_send);
    } else {
      receiver_.cancel(mail.cancelled_receive);
    }
  });
}

void Endpoint::start(const std::shared_ptr<Release>& release) {
  std::string user = sender_.sends().user_of(*release);
  if (user.empty()) user = receiver_.receives().user_of(*release);
  if (user.empty()) return neighbours_.release(release);
  release->fail(Error(
      ErrorCode::usage,
      fmt::format("memory at {} of device {} is released, but {}; wait for it, or cancel it, first",
                  fmt::ptr(release->begin), release->lane.value(), user)));
  requests_.end();
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
      if (header.kind == Kind::announce && header.receive != 0) {
        return receiver_.room_note(header, payload);
      }
      return receiver_.message_arrived(note.from, header, payload);
    case Kind::deliver:
      return receiver_.room_note(header, payload);
    case Kind::expect:
      return hear(note.from, sender_.expected(note.from, header, payload));
    case Kind::word:
      return hear(note.from, payload);
    case Kind::grant:
      return sender_.granted(header, payload);
    case Kind::decline:
      return receiver_.declined(note.from, header, text_of(payload));
    case Kind::filled:
      return receiver_.receives().filled(note.from, header);
    case Kind::slot:
      return sender_.sends().slot_is_free(header);
    case Kind::fetched:
    case Kind::refuse:
    case Kind::withdrawn:
      return sender_.answered(header, payload);
    case Kind::broken:
      return receiver_.sender_broke(header, payload);
    case Kind::withdraw:
      return receiver_.withdraw(note.from, header);
    case Kind::introduce:
      return neighbours_.introduced(note.from, payload);
    case Kind::release: {
      const auto memory = read<ReleasedMemory>(payload);
      sender_.sends().taken_back(note.from, memory);
      receiver_.receives().taken_back(note.from, memory);
      return neighbours_.close_mapping(note.from, memory);
    }
    case Kind::released:
      return neighbours_.released(note.from, read<ReleasedMemory>(payload));
    case Kind::goodbye:
      return neighbours_.said_goodbye(note.from);
    case Kind::credits:
      return;
  }
}

void Endpoint::hear(NodeId from, std::span<const std::byte> word) {
  HEDDLE_CHECK(options_.word != nullptr, "node {} tells {} bytes, but nobody listens here",
               from.value(), word.size());
  options_.word(from, word);
}

void Endpoint::ended(OperationId id, const std::optional<std::string>& failure, bool is_blank) {
  if (Works::is_work(id)) return works_.ended(id, failure);
  const Piece piece = pieces_.take(id);
  piece.is_of_send() ? sender_.sends().ended(piece, failure)
                     : receiver_.ended(piece, failure, is_blank);
}

void Endpoint::await_neighbours(std::chrono::nanoseconds limit) {
  meet_neighbours();
  WakingTime awake(now_ns());
  while (!are_neighbours_known()) {
    if (!progress()) ::sched_yield();
    if (awake.at(now_ns()) < limit.count()) continue;
    std::string missing;
    for (const NodeId node : neighbours_.unknown()) {
      missing += fmt::format("{}{}", missing.empty() ? "" : ", ", node.value());
    }
    throw Error(
        ErrorCode::communication,
        fmt::format("node {}: within {:g} s these nodes of this host have not said which "
                    "devices they have: {}; look at what holds them, or raise "
                    "runtime.watchdog_seconds",
                    wire_.node().value(), static_cast<double>(limit.count()) * 1e-9, missing));
  }
}

// ---- ends ------------------------------------------------------------------------------------

void Endpoint::lost(NodeId node) {
  const Error why(ErrorCode::communication, fmt::format("node {} is lost", node.value()));
  neighbours_.lost(node);
  receiver_.lost(node, why);
  sender_.lost(node, why);
}

void Endpoint::abandon(const Error& why) {
  const std::vector<Mail> mail = mailbox_.close(why);
  // Devices touch no memory any more when requests have ended.
  lanes_.abandon();
  for (const Mail& one : mail) {
    if (one.send != nullptr) one.send->fail(why);
    if (one.receive != nullptr) one.receive->fail(why);
    if (one.release != nullptr) one.release->fail(why);
    if (one.work != nullptr) one.work->fail(why);
  }
  works_.abandon(why);
  sender_.sends().abandon(why);
  receiver_.receives().abandon(why);
  neighbours_.abandon(why);
}

// ---- questions -------------------------------------------------------------------------------

bool Endpoint::is_idle() const {
  return requests_.is_zero() && mailbox_.empty() && receiver_.arrivals() == 0 && pieces_.empty();
}

Endpoint::Statistics Endpoint::statistics() const {
  return {sender_.statistics().sent, receiver_.receives().statistics(), sender_.statistics().bytes,
          receiver_.unexpected(), neighbours_.statistics()};
}

bool Endpoint::is_valid() const {
  return mailbox_.is_valid() && requests_.is_valid() && slots_.is_valid() &&
         neighbours_.is_valid() && sender_.is_valid() && receiver_.is_valid();
}

}  // namespace heddle::p2p
