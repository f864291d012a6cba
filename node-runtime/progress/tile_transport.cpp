#include "node-runtime/progress/tile_transport.hpp"

#include <algorithm>
#include <array>
#include <fmt/core.h>
#include <sched.h>
#include <utility>

#include "base/assert.hpp"
#include "base/clock.hpp"
#include "node-runtime/transport/endpoint_sizes.hpp"

namespace heddle {
namespace {

using protocol::AccessMode;

constexpr p2p::ChannelId channel{0};

/// A node may have as many receives as its pools have blocks.
constexpr std::int32_t requests_max = 1 << 24;

}  // namespace

p2p::Endpoint::Options TileTransport::endpoint_options(std::span<Device* const> devices,
                                                       const Options& options) {
  p2p::Endpoint::Options result;
  result.requests_max = requests_max;
  result.rates = options.rates;
  result.path = options.path;
  result.processes_take_turns = options.processes_take_turns;
  result.report = options.report;
  result.in_slots = 32;
  if (devices.empty()) return result;
  EndpointSizes::for_device(devices.front()->info().memory_bytes, true).apply_to(result);
  return result;
}

TileTransport::TileTransport(const Communicator& communicator, std::span<Device* const> devices,
                             const Options& options)
    : node_(communicator.rank()),
      endpoint_options_(endpoint_options(devices, options)),
      wire_(communicator.headers(), {.window_bytes = endpoint_options_.window_bytes()}),
      endpoint_(
          wire_,
          [&] {
            p2p::Endpoint::Options result = endpoint_options_;
            result.unexpected = [this](const p2p::Envelope& envelope) {
              if (envelope.channel != channel) return;  // the program's
              waiting_.push_back({false, static_cast<std::uint32_t>(envelope.tag)});
            };
            result.word = [this](NodeId from, std::span<const std::byte> bytes) {
              words_.push_back({from, ProgressMessage::of(bytes)});
            };
            if (options.traces) {
              result.fragment = [this](const p2p::FragmentReport& one) { record_fragment(one); };
            }
            return result;
          }(),
          [this] {
            if (engine_ != nullptr) engine_->bells.message.ring();
          },
          devices),
      user_messages_(std::make_shared<UserMessages>(
          endpoint_, communicator.rank(), communicator.size(), devices,
          UserMessages::Options{options.program_device_bytes, true, nullptr})) {
  meet_neighbours(std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(options.meeting_seconds)));
}

/// Before anything is computed.
void TileTransport::meet_neighbours(std::chrono::nanoseconds limit) {
  try {
    endpoint_.await_neighbours(limit);
  } catch (const Error& why) {
    abandon(why);
    throw;
  }
}

TileTransport::~TileTransport() = default;

void TileTransport::serve(Engine& engine, trace::ThreadTrace& trace) {
  engine_ = &engine;
  trace_ = &trace;
}

// ---- memory ----------------------------------------------------------------------------------

/// False: not yet, since its block is in transfer.
bool TileTransport::hold(protocol::TileId tile, PlaceId place, protocol::BlockRef block,
                         AccessMode mode, Hold& held) {
  held = {};
  if (place == host_place) return true;
  TileStore& store = engine_->store();
  const ResidentBlock resident = store.resident(block);
  if (resident == no_block) return true;  // of an empty tile
  DeviceCache& cache = store.cache(place);
  const DeviceCache::Use use{resident, mode, tile};
  const auto buffer = cache.acquire_for_message(use);
  if (!buffer) return false;
  held = {&cache, use, *buffer};
  return true;
}

void TileTransport::let_go(const Hold& held) {
  if (held.cache != nullptr) held.cache->release_for_message(held.use, held.buffer);
}

/// What a grant or a send is about, in the memory that is held for it.
template <class Action>
TileMessage TileTransport::message_of(const Action& action, const Hold& held) {
  const TileStore& store = engine_->store();
  const TilePart part = engine_->part_of(action.job, action.tile, action.number);
  if (held.cache == nullptr) return messages_.message(store.view(action.tile, action.block), part);
  const TileShape shape = store.shape(action.tile);
  return messages_.message(
      {reinterpret_cast<double*>(held.buffer.address), shape.rows, shape.columns, shape.rows},
      part);
}

// ---- messages --------------------------------------------------------------------------------

std::uint32_t TileTransport::take_landing(const protocol::GrantAction& grant) {
  std::uint32_t tag = 0;
  if (free_landings_.empty()) {
    tag = static_cast<std::uint32_t>(landings_.size());
    landings_.emplace_back();
  } else {
    tag = free_landings_.back();
    free_landings_.pop_back();
  }
  landings_[tag] = {grant, 0, {}, now_ns(), 0};
  grant.record->ticket = static_cast<std::int32_t>(tag) + 1;
  ++receives_under_way_;
  return tag;
}

void TileTransport::expect(const protocol::GrantAction& grant) {
  const std::uint32_t tag = take_landing(grant);
  const ProgressMessage::Header word = ProgressMessage::of(grant, tag);
  const p2p::Envelope envelope{grant.from, static_cast<std::int32_t>(tag), channel};
  if (grant.place != host_place) {
    return endpoint_.expect_without_room(envelope, p2p::bytes_of(word));
  }
  const TileMessage room = message_of(grant, {});
  landings_[tag].elements = room.elements;
  is_under_way(tag, endpoint_.expect({room.data, room.count, room.type}, envelope,
                                     p2p::bytes_of(word), on_received(tag)));
}

void TileTransport::tell(NodeId to, const ProgressMessage::Header& header, std::string_view text) {
  ProgressMessage message;
  message.header = header;
  const std::size_t bytes = message.set_text(text);
  endpoint_.tell(to, p2p::bytes_of(message).first(bytes));
}

void TileTransport::tell_sign_of_life(NodeId to) {
  if (!wire_.is_behind(to)) tell(to, {});
}

/// Receives what was announced. False: its memory is not to be had yet.
bool TileTransport::receive(std::uint32_t tag) {
  Landing& landing = landings_[tag];
  const protocol::GrantAction& grant = landing.grant;
  if (!hold(grant.tile, grant.place, grant.block, AccessMode::write, landing.hold)) return false;
  const TileMessage room = message_of(grant, landing.hold);
  landing.elements = room.elements;
  is_under_way(tag, endpoint_.receive({room.data, room.count, room.type},
                                      {grant.from, static_cast<std::int32_t>(tag), channel},
                                      on_received(tag)));
  return true;
}

p2p::OnEnd TileTransport::on_received(std::uint32_t tag) {
  return [this, tag](const p2p::Status& status, const Error* failure) {
    failure == nullptr ? received(tag, status) : failed(*failure);
  };
}

void TileTransport::is_under_way(std::uint32_t tag, const p2p::Request& request) {
  landings_[tag].request = request.id();
  if (trace_->enabled()) carried_[request.id()] = {false, tag};
}

void TileTransport::received(std::uint32_t tag, const p2p::Status& status) {
  const Landing& landing = landings_[tag];
  const protocol::GrantAction& grant = landing.grant;
  const std::int64_t elements = status.bytes / static_cast<std::int64_t>(sizeof(double));
  HEDDLE_CHECK(elements == 0 || elements == landing.elements,
               "job {}: of tile {} of matrix {}, version {}, {} numbers came from node {} and {} "
               "were expected; the job's part of it is not the same on both",
               grant.job.value(), grant.tile.index, grant.tile.matrix.value(), grant.number.value(),
               elements, grant.from.value(), landing.elements);
  let_go(landing.hold);
  const bool is_empty = elements == 0 && landing.elements > 0;
  pass_on_the_rest(*grant.record, is_empty);
  record(trace::RecordKind::receive, grant, grant.from, tag, static_cast<std::size_t>(status.bytes),
         landing.posted_ns, status.path);
  ended_.landings.emplace_back(grant.record, is_empty);
  if (trace_->enabled()) carried_.erase(landing.request);
  free_landings_.push_back(tag);
  --receives_under_way_;
}

void TileTransport::send(const protocol::SendAction& send) {
  std::uint32_t slot = 0;
  if (free_sendings_.empty()) {
    slot = static_cast<std::uint32_t>(sendings_.size());
    sendings_.emplace_back();
  } else {
    slot = free_sendings_.back();
    free_sendings_.pop_back();
  }
  sendings_[slot] = {send, 0, {}, now_ns(), 0};
  ++sends_under_way_;
  const std::int32_t ticket = send.behind == nullptr ? has_come : send.behind->ticket;
  sendings_[slot].send.empty |= ticket == has_come_empty;
  if (ticket >= 0) {
    relays_.push_back({.slot = slot, .behind = send.behind, .waits_for_all = send.empty});
  } else if (!post(slot)) {
    waiting_.push_back({true, slot});
  }
}

/// False: its memory is not to be had yet.
bool TileTransport::post(std::uint32_t slot) {
  Sending& sending = sendings_[slot];
  const protocol::SendAction& send = sending.send;
  // A cancelled job's version is an empty message, which an empty part of a tile is too: the
  // receiver knows which by the size it expects. Where it expects nothing it cannot tell, and need
  // not: its tasks read nothing of this version, and a cancellation is told to all nodes anyway.
  TileMessage message;
  if (!send.empty) {
    if (!hold(send.tile, send.place, send.block, AccessMode::read, sending.hold)) return false;
    message = message_of(send, sending.hold);
  }
  sending.bytes = message.bytes();
  engine_->counters().message(message.bytes());
  const p2p::Request request =
      endpoint_.send_expected({message.data, message.count, message.type}, send.to,
                              static_cast<std::int32_t>(send.tag), channel, on_sent(slot));
  if (request.done()) return true;  // the slot is free again
  sending.request = request.id();
  if (trace_->enabled()) carried_[sending.request] = {true, slot};
  return true;
}

p2p::OnEnd TileTransport::on_sent(std::uint32_t slot) {
  return [this, slot](const p2p::Status& status, const Error* failure) {
    failure == nullptr ? sent(slot, status) : failed(*failure);
  };
}

// ---- versions that are passed on while they arrive ---------------------------------------------

bool TileTransport::is_relaying() const {
  return std::ranges::any_of(relays_, [](const Relay& relay) { return relay.passed_on > 0; });
}

/// Not an empty one: what has come of it shows that its job goes on where it comes from.
bool TileTransport::pass_on_what_arrived() {
  bool progressed = false;
  for (Relay& relay : relays_) {
    if (relay.waits_for_all || relay.behind->ticket == 0) continue;
    const auto tag = static_cast<std::size_t>(relay.behind->ticket) - 1;
    const std::int64_t arrived = endpoint_.arrived(landings_[tag].request);
    if (arrived == relay.passed_on) continue;
    Sending& sending = sendings_[relay.slot];
    if (relay.passed_on > 0) {
      endpoint_.more_is_there(sending.request, arrived);
    } else {
      const TileMessage message = message_of(sending.send, {});
      const auto request = endpoint_.send_arriving(
          {message.data, message.count, message.type}, arrived, sending.send.to,
          static_cast<std::int32_t>(sending.send.tag), channel, on_sent(relay.slot));
      relay.waits_for_all = !request.has_value();
      if (!request) continue;
      sending.bytes = message.bytes();
      engine_->counters().message(message.bytes());
      sending.request = request->id();
      if (trace_->enabled()) carried_[sending.request] = {true, relay.slot};
    }
    relay.passed_on = arrived;
    progressed = true;
  }
  return progressed;
}

void TileTransport::pass_on_the_rest(protocol::Landing& behind, bool is_empty) {
  behind.ticket = is_empty ? has_come_empty : has_come;
  for (std::size_t i = 0; i < relays_.size();) {
    const Relay relay = relays_[i];
    if (relay.behind != &behind) {
      ++i;
      continue;
    }
    relays_[i] = relays_.back();
    relays_.pop_back();
    Sending& sending = sendings_[relay.slot];
    if (relay.passed_on > 0) {
      endpoint_.more_is_there(sending.request, static_cast<std::int64_t>(sending.bytes));
      continue;
    }
    sending.send.empty |= is_empty;
    waiting_.push_back({true, relay.slot});
  }
}

void TileTransport::sent(std::uint32_t slot, const p2p::Status& status) {
  const Sending& sending = sendings_[slot];
  let_go(sending.hold);
  record(trace::RecordKind::send, sending.send, sending.send.to, sending.send.tag, sending.bytes,
         sending.posted_ns, status.path);
  ended_.sends.push_back(sending.send.record);
  if (trace_->enabled()) carried_.erase(sending.request);
  free_sendings_.push_back(slot);
  --sends_under_way_;
}

// ---- progress --------------------------------------------------------------------------------

bool TileTransport::progress() {
  bool progressed = endpoint_.progress();
  if (!relays_.empty()) progressed |= pass_on_what_arrived();
  // What has just been posted need not wait for another look.
  if (serve_waiting()) progressed |= endpoint_.progress();
  if (failure_) throw Error(*failure_);
  user_messages_->stream_watch().look();
  user_messages_->free_left_scratch();
  return progressed;
}

void TileTransport::hand_out(std::int64_t until_ns) {
  do {
    if (!endpoint_.progress()) ::sched_yield();
  } while (wire_.has_unsent_notes() && now_ns() < until_ns);
}

/// Messages whose memory may be there now.
bool TileTransport::serve_waiting() {
  bool served = false;
  for (std::size_t tries = waiting_.size(); tries > 0; --tries) {
    const Carried one = waiting_.front();
    waiting_.pop_front();
    if (one.is_send ? post(one.slot) : receive(one.slot)) {
      served = true;
    } else {
      waiting_.push_back(one);
    }
  }
  return served;
}

/// Its memory stays held: the node ends.
void TileTransport::failed(const Error& failure) {
  if (!failure_) failure_ = failure;
}

void TileTransport::close() {
  endpoint_.drop_arrivals(UserMessages::channel);
  endpoint_.close();
}

void TileTransport::abandon(const Error& why) {
  endpoint_.abandon(why);
  wire_.abandon();
}

// ---- the trace -------------------------------------------------------------------------------

static_assert(1 + p2p::path_count == trace::path_number_count);

/// A trace takes the kinds of fragments by their numbers.
static_assert([] {
  using Kind = p2p::FragmentReport::Kind;
  using Step = trace::FragmentStep;
  constexpr std::array<std::pair<Kind, Step>, trace::fragment_step_count> pairs{
      {{Kind::pack, Step::pack},
       {Kind::send, Step::send},
       {Kind::fill, Step::fill},
       {Kind::receive, Step::receive},
       {Kind::unpack, Step::unpack},
       {Kind::fetch, Step::fetch}}};
  return std::ranges::all_of(pairs, [](const auto& pair) {
    return static_cast<int>(pair.first) == static_cast<int>(pair.second);
  });
}());

template <class Action>
void TileTransport::record(trace::RecordKind kind, const Action& action, NodeId peer,
                           std::uint32_t tag, std::size_t bytes, std::int64_t posted_ns,
                           p2p::Path path) {
  std::uint8_t is_passed_on = 0;
  if constexpr (requires { action.passed_on; }) is_passed_on = action.passed_on ? 1 : 0;
  trace_->message({.kind = kind,
                   .path = static_cast<trace::PathNumber>(1 + static_cast<int>(path)),
                   .place = trace::number_of(action.place),
                   .job = action.job.value(),
                   .tile = {action.tile.matrix.value(), action.tile.index},
                   .version = action.number,
                   .peer = peer,
                   .tag = tag,
                   .is_passed_on = is_passed_on,
                   .bytes = bytes,
                   .posted_ns = posted_ns,
                   .start_ns = posted_ns,
                   .end_ns = now_ns()});
}

void TileTransport::record_fragment(const p2p::FragmentReport& fragment) {
  const auto found = carried_.find(fragment.message);
  if (found == carried_.end()) return;  // nobody asks
  const auto put = [&](const auto& action, NodeId peer) {
    trace_->fragment({.step = static_cast<trace::FragmentStep>(fragment.kind),
                      .job = action.job.value(),
                      .tile = {action.tile.matrix.value(), action.tile.index},
                      .version = action.number,
                      .peer = peer,
                      .begin = static_cast<std::uint64_t>(fragment.range.begin),
                      .bytes = static_cast<std::uint64_t>(fragment.range.bytes),
                      .start_ns = fragment.begun_ns,
                      .end_ns = fragment.ended_ns});
  };
  const Carried& one = found->second;
  if (one.is_send) {
    put(sendings_[one.slot].send, sendings_[one.slot].send.to);
  } else {
    put(landings_[one.slot].grant, landings_[one.slot].grant.from);
  }
}

}  // namespace heddle
