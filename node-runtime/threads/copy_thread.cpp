#include "node-runtime/threads/copy_thread.hpp"

#include <algorithm>
#include <utility>

#include "node-runtime/threads/loops.hpp"

namespace heddle {

CopyThread::CopyThread(Engine& engine, trace::ThreadTrace& trace)
    : engine_(engine),
      options_(engine.options()),
      store_(engine.store()),
      bell_(engine.bells.copy),
      notifier_(bell_),
      trace_(trace) {
  const std::vector<Device*>& devices = options_.devices;
  for (std::size_t d = 0; d < devices.size(); ++d) {
    DeviceCache& cache = store_.cache(PlaceId{static_cast<std::int32_t>(d) + 1});
    for (int direction = 0; direction < 2; ++direction) {
      lanes_.emplace_back(*devices[d], cache, &notifier_);
    }
    polls_ |= !devices[d]->info().notifies;
    for (const Device* other : devices) {
      reaches_.push_back(other == devices[d] || devices[d]->can_access_peer(*other));
    }
  }
}

CopyThread::~CopyThread() {
  if (engine_.failed()) {
    for (CopyLane& lane : lanes_) lane.stream().abandon("the node has failed");
  }
  for (CopyLane& lane : lanes_) lane.close();
}

void CopyThread::run() {
  for (;;) {
    const Doorbell::Ticket ticket = bell_.ticket();
    if (turn()) continue;
    if (engine_.stopping() && is_at_rest()) return;
    const std::int64_t from = trace::now_ns();
    wait(ticket);
    trace_.wait(trace::WaitCause::copy, from, trace::now_ns());
  }
}

bool CopyThread::turn() {
  sort_mail();
  const bool collected = collect();
  const bool advanced = advance_acquired();
  const bool posted = post();
  HEDDLE_EXPENSIVE(is_valid());
  return collected || advanced || posted;
}

bool CopyThread::is_valid() const {
  std::size_t active = 0;
  for (const CopyLane& lane : lanes_) {
    if (!lane.is_valid()) return false;
    active += lane.active();
  }
  return active == active_;
}

/// Nothing is in flight. On a node that has failed this does not ask for copies that wait for
/// tiles: tasks whose device's manager has ended hold those tiles for good.
bool CopyThread::is_at_rest() const {
  if (!engine_.failed()) return active_ == 0;
  return std::ranges::none_of(lanes_, [](const CopyLane& lane) { return lane.has_running(); });
}

/// Until there may be something to do; without notices the events are polled.
void CopyThread::wait(Doorbell::Ticket ticket) {
  if (!polls_ || active_ == 0) {
    bell_.wait(ticket);
  } else if (options_.oversubscribed || options_.wait == WaitPolicy::park) {
    bell_.wait(ticket, 20);
  } else {
    for (int i = 0; i < 20 && !bell_.rung_since(ticket); ++i) relax_cpu();
  }
}

void CopyThread::sort_mail() {
  for (const protocol::CopyAction& copy : engine_.take_copies()) lane_of(route_of(copy)).add(copy);
  for (std::int32_t p = 1; p < store_.places(); ++p) {
    for (const DeviceCache::Transfer& transfer : store_.cache(PlaceId{p}).take_transfers()) {
      lane_of({PlaceId{p}, transfer.is_fetch}).add(transfer);
    }
  }
}

// ---- finished copies ---------------------------------------------------------------------------

bool CopyThread::collect() {
  std::vector<protocol::CopyAction> finished;
  bool any = false;
  for (CopyLane& lane : lanes_) {
    while (CopyFlight* const oldest = lane.oldest()) {
      const EventState state = oldest->event->query();
      if (state == EventState::pending) break;
      if (state == EventState::failed) {
        throw Error(ErrorCode::internal, oldest->event->failure());
      }
      any = true;
      finish(lane, *oldest, finished);
    }
  }
  if (!finished.empty()) engine_.copies_finished(finished);
  return any;
}

void CopyThread::finish(CopyLane& lane, CopyFlight& flight,
                        std::vector<protocol::CopyAction>& finished) {
  const std::int64_t end_ns = flight.event->completed_ns();
  record(lane, flight, lane.finish(flight, end_ns), end_ns);
  HEDDLE_CHECK(active_ > 0);
  --active_;
  if (flight.is_transfer) return lane.cache().transfer_finished(flight.transfer);
  for (std::size_t i = 0; i < flight.end_count; ++i) {
    store_.cache(flight.ends[i].place).release({&flight.ends[i].use, 1});
  }
  finished.push_back(flight.copy);
}

/// A copy or transfer that has ended, for the trace and the counters.
void CopyThread::record(const CopyLane& lane, const CopyFlight& flight, std::int64_t start_ns,
                        std::int64_t end_ns) {
  trace_.add_busy(std::max<std::int64_t>(0, end_ns - start_ns));
  trace::CopyRecord copied{.posted_ns = flight.posted_ns, .start_ns = start_ns, .end_ns = end_ns};
  if (flight.is_transfer) {
    const DeviceCache::Transfer& transfer = flight.transfer;
    const PlaceId device = place_of(lane);
    copied.reason = transfer.is_fetch ? trace::CopyReason::fetch : trace::CopyReason::write_back;
    copied.tile = {transfer.tile.matrix.value(), transfer.tile.index};
    copied.from = transfer.is_fetch ? host_place : device;
    copied.to = transfer.is_fetch ? device : host_place;
    copied.bytes = transfer.bytes;
  } else {
    const protocol::CopyAction& copy = flight.copy;
    copied.job = copy.job.value();
    copied.tile = {copy.tile.matrix.value(), copy.tile.index};
    copied.version = copy.number;
    copied.from = copy.from_place;
    copied.to = copy.to_place;
    copied.bytes = store_.shape(copy.tile).bytes();
  }
  engine_.counters().copy(copied.bytes);
  trace_.copy(copied);
}

// ---- next copies -------------------------------------------------------------------------------

bool CopyThread::post() {
  bool posted = false;
  for (CopyLane& lane : lanes_) {
    while (lane.has_transfers()) {
      CopyFlight* const flight = lane.free_transfer_flight();
      if (flight == nullptr) break;
      begin_transfer(lane, *flight);
      posted = true;
    }
    while (lane.has_copies()) {
      CopyFlight* const flight = lane.free_copy_flight();
      if (flight == nullptr) break;
      begin_copy(lane, *flight);
      posted = true;
    }
  }
  return posted;
}

void CopyThread::begin_transfer(CopyLane& lane, CopyFlight& flight) {
  flight.transfer = lane.take_transfer();
  flight.is_transfer = true;
  const DeviceCache::Transfer& t = flight.transfer;
  lane.cache().prepare(t);
  lane.mark_running(flight, trace::now_ns());
  ++active_;
  if (t.is_fetch) {
    lane.stream().copy({t.device, &lane.device()}, {t.host, nullptr}, t.bytes);
  } else {
    lane.stream().copy({t.host, nullptr}, {t.device, &lane.device()}, t.bytes);
  }
  lane.stream().record(*flight.event);
}

void CopyThread::begin_copy(CopyLane& lane, CopyFlight& flight) {
  flight.copy = lane.take_copy();
  flight.is_transfer = false;
  flight.end_count = flight.acquired = 0;
  add_end(flight, flight.copy.from_place, flight.copy.from, protocol::AccessMode::read);
  add_end(flight, flight.copy.to_place, flight.copy.to, protocol::AccessMode::write);
  flight.order_ends();
  flight.state = CopyFlight::State::acquiring;
  ++active_;
  acquire(lane, flight);
}

void CopyThread::add_end(CopyFlight& flight, PlaceId place, protocol::BlockRef block,
                         protocol::AccessMode mode) {
  if (place == host_place) return;
  const ResidentBlock resident = store_.resident(block);
  if (resident == no_block) return;
  flight.add_end({place, {resident, mode, flight.copy.tile, flight.copy.priority}});
}

/// Acquires the ends that are missing; the copy starts with the last one.
void CopyThread::acquire(CopyLane& lane, CopyFlight& flight) {
  for (; flight.acquired < flight.end_count; ++flight.acquired) {
    const CopyFlight::End& end = flight.ends[flight.acquired];
    DeviceCache& cache = store_.cache(end.place);
    if (cache.try_acquire({&end.use, 1})) continue;
    cache.request({&end.use, 1}, DeviceCache::Requester::copies, &flight);
    return;
  }
  start(lane, flight);
}

/// Copies go on one of whose ends has been acquired.
bool CopyThread::advance_acquired() {
  bool advanced = false;
  for (std::int32_t p = 1; p < store_.places(); ++p) {
    for (void* cookie : store_.cache(PlaceId{p}).take_ready(DeviceCache::Requester::copies)) {
      CopyFlight& flight = *static_cast<CopyFlight*>(cookie);
      HEDDLE_CHECK(flight.state == CopyFlight::State::acquiring);
      ++flight.acquired;
      acquire(lane_of(route_of(flight.copy)), flight);
      advanced = true;
    }
  }
  return advanced;
}

void CopyThread::start(CopyLane& lane, CopyFlight& flight) {
  const protocol::CopyAction& copy = flight.copy;
  const TileView from = store_.view(copy.tile, copy.from);
  const TileView to = store_.view(copy.tile, copy.to);
  constexpr std::size_t element = sizeof(double);
  const CopyShape shape{static_cast<std::size_t>(from.rows) * element,
                        static_cast<std::size_t>(from.columns),
                        static_cast<std::size_t>(to.leading) * element,
                        static_cast<std::size_t>(from.leading) * element};
  lane.mark_running(flight, trace::now_ns());
  if (from.rows > 0 && from.columns > 0) {
    const Destination destination{to.data, device_of(copy.to_place)};
    const Source source{from.data, device_of(copy.from_place)};
    const bool is_direct = copy.to_place == host_place || copy.from_place == host_place ||
                           reaches(copy.to_place, copy.from_place);
    if (is_direct) {
      lane.stream().copy_strided(destination, source, shape);
    } else {
      copy_through_host(lane, flight, destination, source);
    }
  }
  lane.stream().record(*flight.event);
}

/// Between devices that do not reach each other: the source's stream copies to the host, and this
/// one waits for it. Blocks of devices have no gaps between columns.
void CopyThread::copy_through_host(CopyLane& lane, CopyFlight& flight, const Destination& to,
                                   const Source& from) {
  const std::size_t bytes = store_.shape(flight.copy.tile).bytes();
  std::byte* const relay = lane.relay_of(flight, bytes);
  CopyLane& out = lane_of({flight.copy.from_place, false});
  if (flight.relayed == nullptr || &flight.relayed->device() != &out.device()) {
    flight.relayed = out.device().create_event();
  }
  out.stream().copy({relay, nullptr}, from, bytes);
  out.stream().record(*flight.relayed);
  lane.stream().wait(*flight.relayed);
  lane.stream().copy(to, {relay, nullptr}, bytes);
}

// ---- places ------------------------------------------------------------------------------------

CopyLane& CopyThread::lane_of(const CopyRoute& route) {
  HEDDLE_DEBUG(route.device != host_place, "a lane of the host");
  return lanes_[(static_cast<std::size_t>(route.device.value()) - 1) * 2 + (route.is_in ? 0 : 1)];
}

PlaceId CopyThread::place_of(const CopyLane& lane) const {
  const auto found = std::ranges::find(options_.devices, &lane.device());
  return PlaceId{static_cast<std::int32_t>(found - options_.devices.begin()) + 1};
}

Device* CopyThread::device_of(PlaceId place) const {
  return place == host_place ? nullptr
                             : options_.devices[static_cast<std::size_t>(place.value()) - 1];
}

bool CopyThread::reaches(PlaceId a, PlaceId b) const {
  const std::size_t devices = options_.devices.size();
  return reaches_[(static_cast<std::size_t>(a.value()) - 1) * devices +
                  static_cast<std::size_t>(b.value()) - 1];
}

void copy_loop(Engine& engine, trace::ThreadTrace& trace) {
  CopyThread(engine, trace).run();
}

}  // namespace heddle
