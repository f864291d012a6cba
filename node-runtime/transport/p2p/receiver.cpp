#include "node-runtime/transport/p2p/receiver.hpp"

#include <algorithm>
#include <bit>
#include <fmt/core.h>
#include <utility>

#include "base/assert.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "node-runtime/transport/datatype/pack.hpp"
#include "node-runtime/transport/p2p/path_query.hpp"
#include "node-runtime/transport/p2p/side_note.hpp"

namespace heddle::p2p {

void Receiver::start(std::shared_ptr<Receive> started) {
  Receive& receive = receives_.add(std::move(started));
  const auto found = matching_.post(ReceiveId{receive.id}, receive.pattern);
  if (found) {
    const Arrival arrival = arrivals_.extract(found->value());
    take(receive, arrival.envelope, arrival.header, arrival.payload);
    return;
  }
  const NodeId source = receive.pattern.source;
  if (source == Pattern::any_source || !shared_.neighbours.is_lost(source)) return;
  matching_.cancel(ReceiveId{receive.id});
  receives_.fail(receive,
                 Error(ErrorCode::communication,
                       fmt::format("receiving from node {}, which is lost", source.value())));
}

// ---- expected messages -----------------------------------------------------------------------

void Receiver::expect(std::shared_ptr<Receive> expected, const Envelope& envelope,
                      std::span<const std::byte> word) {
  const NodeId from = envelope.source;
  Receive& receive = receives_.add(std::move(expected));
  receive.is_expected = true;
  receive.envelope = envelope;
  receive.pattern = {from, envelope.tag, envelope.channel};
  receive.bytes = receive.side.bytes;
  if (shared_.options.report) receive.begun_ns = now_ns();
  if (shared_.neighbours.is_lost(from)) {
    return receives_.fail(
        receive, Error(ErrorCode::communication,
                       fmt::format("expecting a message of node {}, which is lost", from.value())));
  }
  NoteHeader header;
  header.kind = NoteHeader::Kind::expect;
  header.tag = envelope.tag;
  header.channel = envelope.channel.value();
  header.receive = receive.id;
  try {
    if (posts_pieces(receive)) {
      receives_.post_expected(receive);
      header.flow = receive.flow.value();
      header.slot = receive.in_flight;
      header.piece_bytes = receive.plan.piece_bytes;
    }
    send_side_note(shared_, from, header, receive.side, word);
  } catch (const Error& error) {  // the memory is gone, which is no host's: no piece is posted
    receives_.fail(receive, error);
  }
}

void Receiver::expect_without_room(const Envelope& envelope, std::span<const std::byte> word) {
  if (shared_.neighbours.is_lost(envelope.source)) return;
  NoteHeader header;
  header.kind = NoteHeader::Kind::expect;
  header.tag = envelope.tag;
  header.channel = envelope.channel.value();
  shared_.notes.send(envelope.source, header, word);
}

/// Takes the sender's memory for contiguous host memory; any other is packed into pieces of this
/// size by its slots.
bool Receiver::posts_pieces(Receive& receive) {
  receive.announcement.header.bytes = receive.bytes;
  receive.announcement.header.is_contiguous = 1;
  receive.plan = {PathPlan::Step::grant, shared_.options.sizes.piece_bytes, 0};
  const std::int64_t pieces =
      (receive.bytes + receive.plan.piece_bytes - 1) / receive.plan.piece_bytes;
  if (receives_.posted_ahead() + pieces > shared_.options.posted_pieces_max) return false;
  return receive.side.is_host_run() &&
         decision_.posts_pieces(make_path_query(shared_, receive), shared_.options.eager_bytes_max);
}

void Receiver::room_note(const NoteHeader& header, std::span<const std::byte> payload) {
  const std::shared_ptr<Receive> found = receives_.find(header.receive);
  HEDDLE_CHECK(found != nullptr && found->is_expected && !found->is_taken,
               "a note for the room {}, which is used", header.receive);
  if (found->in_flight > 0) {
    found->early.emplace(header, std::vector(payload.begin(), payload.end()));
  } else {
    follow(*found, header, payload);
  }
}

/// The note says what becomes of an expected message; none of its pieces is posted any more.
void Receiver::follow(Receive& receive, const NoteHeader& header,
                      std::span<const std::byte> payload) {
  receives_.give_back(receive);
  receive.posted = receive.done = receive.pieces = 0;
  if (header.kind == NoteHeader::Kind::broken) {
    return receives_.fail(
        receive, Error(static_cast<ErrorCode>(header.slot), std::string(text_of(payload))));
  }
  if (header.kind == NoteHeader::Kind::announce) {
    return take(receive, receive.envelope, header, payload);
  }
  HEDDLE_CHECK(header.bytes == 0 || header.bytes == receive.bytes,
               "{} bytes are delivered into a room of {}", header.bytes, receive.bytes);
  receive.is_taken = true;
  receive.bytes = header.bytes;
  take_eager(receive, payload);
}

void Receiver::ended(const Piece& piece, const std::optional<std::string>& failure, bool is_blank) {
  is_blank ? receives_.blank(piece) : receives_.ended(piece, failure);
  const std::shared_ptr<Receive> found = receives_.find(piece.request);
  if (found == nullptr || !found->early || found->in_flight > 0) return;
  const EarlyNote early = *std::exchange(found->early, std::nullopt);
  follow(*found, early.header, early.payload);
}

void Receiver::sender_broke(const NoteHeader& header, std::span<const std::byte> payload) {
  const std::shared_ptr<Receive> found = receives_.find(header.receive);
  if (found == nullptr) return;  // it has failed
  if (found->is_expected && !found->is_taken) return room_note(header, payload);
  receives_.sender_broke(*found,
                         Error(static_cast<ErrorCode>(header.slot), std::string(text_of(payload))));
}

void Receiver::cancel(std::int64_t id) {
  if (!matching_.cancel(ReceiveId{id})) return;
  receives_.cancelled(*receives_.find(id));
}

// ---- messages --------------------------------------------------------------------------------

void Receiver::message_arrived(NodeId from, const NoteHeader& header,
                               std::span<const std::byte> payload) {
  const Envelope envelope{from, header.tag, ChannelId{header.channel}};
  const std::int64_t id = next_arrival_++;
  const auto found = matching_.arrive(ArrivalId{id}, envelope);
  if (found) {
    take(*receives_.find(found->value()), envelope, header, payload);
    return;
  }
  ++unexpected_;
  arrivals_.emplace(id, {envelope, header, {payload.begin(), payload.end()}});
  if (shared_.options.unexpected) shared_.options.unexpected(envelope);
}

/// An announcement that a receive has taken stays: the receive answers the sender.
void Receiver::withdraw(NodeId from, const NoteHeader& header) {
  std::optional<std::int64_t> found;
  arrivals_.for_each([&](std::int64_t id, const Arrival& arrival) {
    const bool is_it = arrival.envelope.source == from && arrival.header.send == header.send &&
                       arrival.header.kind == NoteHeader::Kind::announce;
    if (is_it) found = id;
  });
  if (!found) return;
  matching_.withdraw(ArrivalId{*found});
  arrivals_.erase(*found);
  NoteHeader answer;
  answer.kind = NoteHeader::Kind::withdrawn;
  answer.send = header.send;
  shared_.notes.send(from, answer);
}

/// Why the message does not fit the receive; nullopt: it fits.
std::optional<std::string> Receiver::mismatch(const Receive& receive) const {
  const NoteHeader& header = receive.announcement.header;
  const Shape& shape = *receive.side.shape;
  if (header.bytes == shape.bytes && header.digest == receive.side.digest()) return std::nullopt;
  const auto which = [&] {
    return fmt::format("the message of {} bytes with tag {} from node {} to node {}", header.bytes,
                       header.tag, receive.envelope.source.value(), shared_.wire.node().value());
  };
  if (header.bytes > shape.bytes) {
    return fmt::format(
        "{} would be truncated: it is received where {} bytes fit; receive into a "
        "larger type or more elements",
        which(), shape.bytes);
  }
  if (!shape.signature.ends_scalar_at(header.bytes) ||
      (shape.signature.digest(header.bytes) ^ receive.side.seal) != header.digest) {
    return fmt::format(
        "the signatures of {} differ; both sides must describe the same scalars in "
        "the same order{}",
        which(), receive.side.seal == 0 ? "" : ", and mean the same message");
  }
  return std::nullopt;
}

void Receiver::free_eager_room(const Receive& receive) {
  const NodeId from = receive.envelope.source;
  if (receive.is_expected) return;  // its message took none
  const bool are_due = shared_.notes.credits().room_freed(from, credits_for(receive.bytes));
  if (are_due && !shared_.neighbours.is_lost(from)) shared_.notes.send(from, NoteHeader{});
}

/// A message goes to a receive.
void Receiver::take(Receive& receive, const Envelope& envelope, const NoteHeader& header,
                    std::span<const std::byte> payload) {
  const NodeId from = envelope.source;
  const bool is_eager = header.kind == NoteHeader::Kind::eager;
  if (shared_.options.report) receive.begun_ns = now_ns();
  receive.envelope = envelope;
  receive.announcement.header = header;
  receive.bytes = header.bytes;
  receive.is_taken = true;
  if (const auto why = mismatch(receive)) {
    const Error error(ErrorCode::usage, *why);
    is_eager ? free_eager_room(receive) : receives_.refuse(receive, error);
    return receives_.fail(receive, error);
  }
  if (is_eager) return take_eager(receive, payload);
  if (shared_.neighbours.is_lost(from)) {
    return receives_.fail(
        receive,
        Error(ErrorCode::communication,
              fmt::format("node {} was lost before it could send its message of {} bytes with tag "
                          "{}",
                          from.value(), header.bytes, header.tag)));
  }
  receive.announcement = read_announcement(header, payload);
  decide(receive);
}

void Receiver::take_eager(Receive& receive, std::span<const std::byte> payload) {
  const Side& side = receive.side;
  receive.path = Path::eager;
  receive.posted = receive.bytes;
  if (side.lane && receive.bytes > 0) {
    receive.payload.assign(payload.begin(), payload.end());
    free_eager_room(receive);
    receive.plan = {PathPlan::Step::grant, receive.bytes, 1};
    waiting_.push_back(receive.id);
    return serve_waiting();
  }
  if (side.contiguous != nullptr) {
    std::ranges::copy(payload.first(static_cast<std::size_t>(receive.bytes)), side.contiguous);
  } else {
    unpack(*side.shape->plan, side.shape->count, {0, receive.bytes}, payload.data(), side.memory);
  }
  free_eager_room(receive);
  receives_.end(receive);
}

// ---- decisions -------------------------------------------------------------------------------

const PathChoice& Receiver::choose(const PathQuery& query) {
  if (!last_choice_ || last_choice_->first != query) {
    last_choice_.emplace(query, decision_.choose(query));
  }
  return last_choice_->second;
}

void Receiver::decide(Receive& receive) {
  // The sender has to know this node's devices before a grant names one.
  if (shared_.lanes.count() > 0) shared_.neighbours.introduce(receive.envelope.source);
  try {
    const PathQuery query = make_path_query(shared_, receive);
    const PathChoice& choice = choose(query);
    receive.path = choice.path();
    receive.plan = decision_.plan(query, receive.path);
    receive.maps_source = choice.would_map_for(Path::get);
    receive.maps_target = choice.would_map_for(Path::put);
    if (shared_.options.report) receive.choice = std::make_unique<const PathChoice>(choice);
  } catch (const Error& error) {  // the memory is gone
    receives_.refuse(receive, error);
    return receives_.fail(receive, error);
  }
  if (receive.path == Path::ring) {
    receive.via = lane_for(shared_.lanes, receive.side, *device_between(shared_, receive));
  }
  if (receive.plan.slots == 0) return go_on(receive);
  waiting_.push_back(receive.id);
  serve_waiting();
}

void Receiver::serve_waiting() {
  if (waiting_.empty()) return;
  // In turn, as far as there are slots; receives for a device's slots do not wait for the host's.
  std::vector<const Staging*> short_of;
  for (std::size_t tries = waiting_.size(); tries > 0; --tries) {
    const std::int64_t id = waiting_.front();
    waiting_.pop_front();
    const std::shared_ptr<Receive> receive = receives_.find(id);
    if (receive == nullptr) continue;  // its peer is lost
    Staging& slots = receives_.slots_of(*receive);
    const auto wanted = static_cast<std::size_t>(receive->plan.slots);
    const bool is_passed_by = std::ranges::find(short_of, &slots) != short_of.end();
    if (is_passed_by || slots.available() < wanted) {
      short_of.push_back(&slots);
      waiting_.push_back(id);
      continue;
    }
    while (receive->slots.size() < wanted) receive->slots.push_back(*slots.take());
    go_on(*receive);
  }
}

/// The receive has the slots that its plan asks for.
void Receiver::go_on(Receive& receive) {
  if (receive.path == Path::eager) return receives_.unpack_payload(receive);
  switch (receive.plan.step) {
    case PathPlan::Step::grant:
      return grant(receive);
    case PathPlan::Step::fetch:
      return fetch(receive);
    case PathPlan::Step::read:
      return reading_.push_back(receive.id);
  }
}

/// Tells the sender by which path and to which places it may send.
void Receiver::grant(Receive& receive) {
  const PathSizes& sizes = shared_.options.sizes;
  NoteHeader header;
  header.kind = NoteHeader::Kind::grant;
  header.path = receive.path;
  header.send = receive.announcement.header.send;
  header.receive = receive.id;
  header.piece_bytes = receive.plan.piece_bytes;
  header.begin = receive.path == Path::ring ? sizes.ring_piece_bytes : sizes.piece_bytes;
  header.device = receive.side.lane ? receive.side.lane->value() : -1;
  if (receive.path == Path::ring) header.device = receive.via.value();
  GrantPlaces places;
  const bool by_message = receive.path == Path::message;
  if (by_message) {
    receives_.take_flow(receive);
    header.flow = receive.flow.value();
  } else if (receive.path == Path::put) {
    receive.posted = receive.bytes;
  } else {
    places.slots = receive.slots;
    receive.given.swap(receive.slots);
    const auto room = static_cast<std::int64_t>(places.slots.size()) * receive.plan.piece_bytes;
    receive.posted = std::min(receive.bytes, room);
  }
  if (receive.path == Path::put || (receive.maps_target && !by_message)) {
    places.target = shared_.neighbours.reference_to(receive.side, receive.envelope.source);
    if (places.target && receive.path == Path::put && receive.side.contiguous == nullptr) {
      places.loops = receive.side.shape->loops;
    }
  }
  const std::vector<std::byte> payload = write_places(places, header);
  shared_.notes.send(receive.envelope.source, header, payload);
  if (by_message) receives_.post_pieces(receive);
}

void Receiver::declined(NodeId from, const NoteHeader& header, std::string_view why) {
  const std::shared_ptr<Receive> found = receives_.find(header.receive);
  HEDDLE_CHECK(found != nullptr, "receive {} is declined, but is not under way", header.receive);
  Receive& receive = *found;
  if (receive.path == Path::shared) {
    shared_.neighbours.not_shared_there(from, why);
  } else {
    shared_.neighbours.not_mapped_there(from, {header.device, devices_of(receive).here}, why);
  }
  receives_.give_back(receive);
  receive.posted = 0;
  decide(receive);
}

// ---- reading the sender's memory -------------------------------------------------------------

void Receiver::fetch(Receive& receive) {
  const NodeId from = receive.envelope.source;
  const MemoryReference& source = *receive.announcement.source;
  receive.via = lane_for(shared_.lanes, receive.side, source.handle.device);
  try {
    receive.from = shared_.neighbours.map(from, receive.via, source, receive.mapping);
  } catch (const Error& error) {
    shared_.neighbours.not_mapped_here(from, devices_of(receive), error.what());
    return decide(receive);
  }
  receives_.fetch(receive);
}

bool Receiver::read_on() {
  if (reading_.empty()) return false;
  const std::shared_ptr<Receive> receive = receives_.find(reading_.front());
  const bool is_over = receive == nullptr || !read_piece(*receive);
  if (is_over) reading_.pop_front();
  return true;
}

/// Reads a piece into the memory itself, or into a slot that the caches hold meanwhile. False:
/// there is no more to be read.
bool Receiver::read_piece(Receive& receive) {
  const NodeId from = receive.envelope.source;
  const Side& side = receive.side;
  const StreamRange range{receive.done,
                          std::min(receive.plan.piece_bytes, receive.bytes - receive.done)};
  const auto& report = shared_.options.fragment;
  const std::int64_t begun_ns = report ? now_ns() : 0;
  std::byte* const place = side.is_host_run() ? side.contiguous + range.begin
                                              : shared_.slots.in().at(receive.slots.back());
  const std::int64_t address = receive.announcement.header.begin + range.begin;
  try {
    shared_.wire.read(from, std::bit_cast<std::uint64_t>(address),
                      {place, static_cast<std::size_t>(range.bytes)});
  } catch (const Error& error) {
    if (receive.done > 0) {
      receives_.refuse(receive, error);
      receives_.fail(receive, error);
      return false;
    }
    shared_.neighbours.not_read_here(from, error.what());
    receives_.give_back(receive);
    decide(receive);
    return false;
  }
  if (!side.is_host_run()) unpack(*side.shape->plan, side.shape->count, range, place, side.memory);
  if (report) {
    report({FragmentReport::Kind::fetch, receive.id, range, begun_ns, now_ns()});
  }
  const bool is_last = receive.done + range.bytes == receive.bytes;
  receives_.was_read(receive, range.bytes);
  return !is_last;
}

// ---- the end ---------------------------------------------------------------------------------

void Receiver::drop_arrivals(ChannelId first) {
  std::vector<std::int64_t> dropped;
  arrivals_.for_each([&](std::int64_t id, const Arrival& arrival) {
    if (arrival.envelope.channel >= first) dropped.push_back(id);
  });
  for (const std::int64_t id : dropped) {
    matching_.withdraw(ArrivalId{id});
    arrivals_.erase(id);
  }
}

void Receiver::lost(NodeId node, const Error& why) {
  static_cast<void>(matching_.lose(node));
  receives_.lost(node, why);
}

bool Receiver::is_valid() const {
  return matching_.is_valid() && matching_.unexpected() == arrivals_.size() &&
         receives_.is_valid() && matching_.posted() <= receives_.size();
}

}  // namespace heddle::p2p
