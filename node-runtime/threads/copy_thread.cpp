#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <vector>

#include "node-runtime/threads/bell_notifier.hpp"
#include "node-runtime/threads/loops.hpp"

namespace heddle {
namespace {

/// Copies of tiles that one stream holds at a time; the others wait in the mailbox, where the
/// urgent ones overtake. As many transfers beside them: copies may wait for transfers, in this very
/// stream too, so they take no place from them.
constexpr std::size_t in_flight_per_stream = 2;

/// One copy under way: of a tile from place to place, or between a device's memory and what backs
/// it.
struct Flight {
  enum class State : std::uint8_t { free, acquiring, running };
  State state = State::free;
  bool is_transfer = false;
  protocol::CopyAction copy;
  DeviceCache::Transfer transfer;
  /// The devices' ends of a tile's copy, by device: acquired in this order by all copies, so that
  /// two cannot wait for each other's.
  struct End {
    PlaceId place;
    DeviceCache::Use use;
  };
  std::array<End, 2> ends;
  std::size_t end_count = 0;
  std::size_t acquired = 0;  ///< of the ends
  std::unique_ptr<Event> event;
  std::unique_ptr<Event> relayed;  ///< of the source device, for a copy through the host
  std::byte* relay = nullptr;      ///< memory for that
  std::size_t relay_bytes = 0;
  std::int64_t posted_ns = 0;
  std::uint64_t order = 0;  ///< in its stream
};

/// One direction of one device: its mailbox and its stream (001 section 5.3).
struct Lane {
  Device* device = nullptr;
  DeviceCache* cache = nullptr;
  std::unique_ptr<Stream> stream;
  std::vector<protocol::CopyAction> mailbox;  ///< a heap by priority; bounded by the jobs' pools
  /// What the device's memory wants moved, the first one it asked for first; bounded by its blocks.
  /// Goes first, the most urgent of it: tasks wait for it that have been chosen already.
  std::vector<DeviceCache::Transfer> transfers;
  std::array<Flight, 2 * in_flight_per_stream> flights;  ///< of copies, then of transfers
  std::uint64_t posted = 0;
  std::int64_t free_since_ns = 0;  ///< end of the last finished copy

  [[nodiscard]] std::span<Flight> of_copies() {
    return std::span(flights).first(in_flight_per_stream);
  }
  [[nodiscard]] std::span<Flight> of_transfers() {
    return std::span(flights).last(in_flight_per_stream);
  }

  /// The copy that the stream does next or is at; null without one.
  [[nodiscard]] Flight* oldest() {
    Flight* first = nullptr;
    for (Flight& flight : flights) {
      if (flight.state != Flight::State::running) continue;
      if (first == nullptr || flight.order < first->order) first = &flight;
    }
    return first;
  }
};

bool less_urgent(const protocol::CopyAction& a, const protocol::CopyAction& b) {
  return a.priority < b.priority;
}

class CopyThread {
 public:
  CopyThread(Engine& engine, trace::ThreadTrace& trace)
      : engine_(engine), notifier_(engine.bells.copy), trace_(trace) {
    const std::vector<Device*>& devices = engine.options().devices;
    lanes_.reserve(devices.size() * 2);
    for (std::size_t d = 0; d < devices.size(); ++d) {
      for (int direction = 0; direction < 2; ++direction) {
        Lane& lane = lanes_.emplace_back();
        lane.device = devices[d];
        lane.cache = &engine.store().cache(PlaceId{static_cast<std::int32_t>(d) + 1});
        lane.stream = lane.device->create_stream(StreamPriority::high, &notifier_);
        for (Flight& flight : lane.flights) flight.event = lane.device->create_event();
        polls_ |= !lane.device->info().notifies;
      }
      for (const Device* other : devices) {
        reaches_.push_back(other == devices[d] || devices[d]->can_access_peer(*other));
      }
    }
  }

  CopyThread(const CopyThread&) = delete;
  CopyThread& operator=(const CopyThread&) = delete;
  ~CopyThread() {
    for (Lane& lane : lanes_) {
      if (engine_.failed()) lane.stream->abandon("the node has failed");
    }
    for (Lane& lane : lanes_) {
      lane.stream.reset();
      for (Flight& flight : lane.flights) {
        if (flight.relay != nullptr) lane.device->free_host(flight.relay);
      }
    }
  }

  void run() {
    for (;;) {
      const Doorbell::Ticket ticket = engine_.bells.copy.ticket();
      sort_mail();
      const bool collected = collect();
      const bool advanced = advance_acquired();
      const bool posted = post();
      if (collected || advanced || posted) continue;
      if (engine_.stopping() && is_at_rest()) return;
      const std::int64_t from = trace::now_ns();
      wait(ticket);
      trace_.wait(trace::WaitCause::copy, from, trace::now_ns());
    }
  }

 private:
  /// Nothing is under way. On a node that has failed this does not ask for copies that wait for
  /// tiles: tasks whose device's manager has ended hold what they wait for, and go on holding it.
  [[nodiscard]] bool is_at_rest() const {
    if (!engine_.failed()) return active_ == 0;
    return std::ranges::all_of(lanes_, [](const Lane& lane) {
      return std::ranges::none_of(lane.flights, [](const Flight& flight) {
        return flight.state == Flight::State::running;
      });
    });
  }

  /// Until there may be something to do; without notices the events are polled.
  void wait(Doorbell::Ticket ticket) {
    if (!polls_ || active_ == 0) {
      engine_.bells.copy.wait(ticket);
    } else if (engine_.options().oversubscribed || engine_.options().wait == WaitPolicy::park) {
      engine_.bells.copy.wait(ticket, 20);
    } else {
      for (int i = 0; i < 20 && !engine_.bells.copy.rung_since(ticket); ++i) relax_cpu();
    }
  }

  /// A copy to a device goes in by that device's stream, one to the host out by the source's.
  void sort_mail() {
    for (const protocol::CopyAction& copy : engine_.take_copies()) {
      const bool in = copy.to_place != host_place;
      const auto device = static_cast<std::size_t>((in ? copy.to_place : copy.from_place).value());
      Lane& lane = lanes_[(device - 1) * 2 + (in ? 0 : 1)];
      lane.mailbox.push_back(copy);
      std::push_heap(lane.mailbox.begin(), lane.mailbox.end(), less_urgent);
    }
    for (std::size_t d = 0; d * 2 < lanes_.size(); ++d) {
      for (const DeviceCache::Transfer& transfer : lanes_[d * 2].cache->take_transfers()) {
        lanes_[d * 2 + (transfer.is_fetch ? 0 : 1)].transfers.push_back(transfer);
      }
    }
  }

  bool collect() {
    std::vector<protocol::CopyAction> finished;
    bool any = false;
    for (Lane& lane : lanes_) {
      while (Flight* oldest = lane.oldest()) {
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

  void finish(Lane& lane, Flight& flight, std::vector<protocol::CopyAction>& finished) {
    flight.state = Flight::State::free;
    --active_;
    if (flight.is_transfer) {
      trace_transfer(lane, flight);
      lane.cache->transfer_finished(flight.transfer);
      return;
    }
    trace_copy(lane, flight);
    for (std::size_t i = 0; i < flight.end_count; ++i) {
      cache_of(flight.ends[i].place).release({&flight.ends[i].use, 1});
    }
    finished.push_back(flight.copy);
  }

  bool post() {
    bool posted = false;
    for (Lane& lane : lanes_) {
      for (Flight& flight : lane.of_transfers()) {
        if (flight.state != Flight::State::free || lane.transfers.empty()) continue;
        begin_transfer(lane, flight);
        posted = true;
      }
      for (Flight& flight : lane.of_copies()) {
        if (flight.state != Flight::State::free || lane.mailbox.empty()) continue;
        begin_copy(lane, flight);
        posted = true;
      }
    }
    return posted;
  }

  void begin_transfer(Lane& lane, Flight& flight) {
    const std::size_t chosen = lane.cache->most_urgent(lane.transfers);
    flight.transfer = lane.transfers[chosen];
    lane.transfers.erase(lane.transfers.begin() + static_cast<std::ptrdiff_t>(chosen));
    flight.is_transfer = true;
    const DeviceCache::Transfer& t = flight.transfer;
    lane.cache->prepare(t);
    mark_running(lane, flight);
    if (t.is_fetch) {
      lane.stream->copy({t.device, lane.device}, {t.host, nullptr}, t.bytes);
    } else {
      lane.stream->copy({t.host, nullptr}, {t.device, lane.device}, t.bytes);
    }
    lane.stream->record(*flight.event);
    ++active_;
  }

  void begin_copy(Lane& lane, Flight& flight) {
    std::pop_heap(lane.mailbox.begin(), lane.mailbox.end(), less_urgent);
    flight.copy = lane.mailbox.back();
    lane.mailbox.pop_back();
    flight.is_transfer = false;
    flight.end_count = flight.acquired = 0;
    add_end(flight, flight.copy.from_place, flight.copy.from, protocol::AccessMode::read);
    add_end(flight, flight.copy.to_place, flight.copy.to, protocol::AccessMode::write);
    if (flight.end_count == 2 && flight.ends[1].place < flight.ends[0].place) {
      std::swap(flight.ends[0], flight.ends[1]);
    }
    flight.state = Flight::State::acquiring;
    ++active_;
    acquire(lane, flight);
  }

  void add_end(Flight& flight, PlaceId place, protocol::BlockRef block, protocol::AccessMode mode) {
    if (place == host_place) return;
    const ResidentBlock resident = engine_.store().resident(block);
    if (resident == no_block) return;
    flight.ends[flight.end_count++] = {place,
                                       {resident, mode, flight.copy.tile, flight.copy.priority}};
  }

  /// Acquires the ends that are missing; the copy starts with the last one.
  void acquire(Lane& lane, Flight& flight) {
    for (; flight.acquired < flight.end_count; ++flight.acquired) {
      const Flight::End& end = flight.ends[flight.acquired];
      DeviceCache& cache = cache_of(end.place);
      if (cache.try_acquire({&end.use, 1})) continue;
      cache.request({&end.use, 1}, DeviceCache::Requester::copies, &flight);
      return;
    }
    start(lane, flight);
  }

  /// Copies one of whose ends is there now go on.
  bool advance_acquired() {
    bool advanced = false;
    for (std::size_t d = 0; d * 2 < lanes_.size(); ++d) {
      for (void* cookie : lanes_[d * 2].cache->take_ready(DeviceCache::Requester::copies)) {
        Flight& flight = *static_cast<Flight*>(cookie);
        ++flight.acquired;
        acquire(lane_of(flight), flight);
        advanced = true;
      }
    }
    return advanced;
  }

  [[nodiscard]] Lane& lane_of(const Flight& flight) {
    const bool in = flight.copy.to_place != host_place;
    const PlaceId place = in ? flight.copy.to_place : flight.copy.from_place;
    return lanes_[(static_cast<std::size_t>(place.value()) - 1) * 2 + (in ? 0 : 1)];
  }
  [[nodiscard]] DeviceCache& cache_of(PlaceId place) const { return engine_.store().cache(place); }
  [[nodiscard]] Device* device_of(PlaceId place) const {
    return place == host_place
               ? nullptr
               : engine_.options().devices[static_cast<std::size_t>(place.value()) - 1];
  }
  [[nodiscard]] bool reaches(PlaceId a, PlaceId b) const {
    const std::size_t devices = engine_.options().devices.size();
    return reaches_[(static_cast<std::size_t>(a.value()) - 1) * devices +
                    static_cast<std::size_t>(b.value()) - 1];
  }

  void mark_running(Lane& lane, Flight& flight) {
    flight.state = Flight::State::running;
    flight.posted_ns = trace::now_ns();
    flight.order = lane.posted++;
  }

  void start(Lane& lane, Flight& flight) {
    const protocol::CopyAction& copy = flight.copy;
    const TileView from = engine_.store().view(copy.tile, copy.from);
    const TileView to = engine_.store().view(copy.tile, copy.to);
    constexpr std::size_t element = sizeof(double);
    const CopyShape shape{static_cast<std::size_t>(from.rows) * element,
                          static_cast<std::size_t>(from.columns),
                          static_cast<std::size_t>(to.leading) * element,
                          static_cast<std::size_t>(from.leading) * element};
    mark_running(lane, flight);
    if (from.rows > 0 && from.columns > 0) {
      const Destination destination{to.data, device_of(copy.to_place)};
      const Source source{from.data, device_of(copy.from_place)};
      const bool is_direct = copy.to_place == host_place || copy.from_place == host_place ||
                             reaches(copy.to_place, copy.from_place);
      if (is_direct) {
        lane.stream->copy_strided(destination, source, shape);
      } else {
        copy_through_host(lane, flight, destination, source);
      }
    }
    lane.stream->record(*flight.event);
  }

  /// Between devices that do not reach each other: the source's stream copies to the host, and this
  /// one waits for it. Blocks of devices have no gaps between columns.
  void copy_through_host(Lane& lane, Flight& flight, const Destination& to, const Source& from) {
    const std::size_t bytes = engine_.store().shape(flight.copy.tile).bytes();
    if (flight.relay_bytes < bytes) {
      if (flight.relay != nullptr) lane.device->free_host(std::exchange(flight.relay, nullptr));
      flight.relay_bytes = 0;
      flight.relay = static_cast<std::byte*>(lane.device->allocate_host(bytes));
      flight.relay_bytes = bytes;
    }
    const auto source_index = static_cast<std::size_t>(flight.copy.from_place.value()) - 1;
    Lane& out = lanes_[source_index * 2 + 1];
    if (flight.relayed == nullptr || &flight.relayed->device() != out.device) {
      flight.relayed = out.device->create_event();
    }
    out.stream->copy({flight.relay, nullptr}, from, bytes);
    out.stream->record(*flight.relayed);
    lane.stream->wait(*flight.relayed);
    lane.stream->copy(to, {flight.relay, nullptr}, bytes);
  }

  /// When the copy began and ended; the stream was at others before.
  struct Span {
    std::int64_t start_ns;
    std::int64_t end_ns;
  };
  Span trace_span(Lane& lane, const Flight& flight) {
    const std::int64_t end = flight.event->completed_ns();
    const std::int64_t start = std::max(flight.posted_ns, lane.free_since_ns);
    lane.free_since_ns = end;
    trace_.add_busy(std::max<std::int64_t>(0, end - start));
    return {start, end};
  }

  void trace_copy(Lane& lane, const Flight& flight) {
    const protocol::CopyAction& copy = flight.copy;
    const std::size_t bytes = engine_.store().shape(copy.tile).bytes();
    engine_.counters().copy(bytes);
    const Span span = trace_span(lane, flight);
    trace_.copy({.job = copy.job.value(),
                 .tile = {copy.tile.matrix.value(), copy.tile.index},
                 .version = copy.number,
                 .from = copy.from_place,
                 .to = copy.to_place,
                 .bytes = bytes,
                 .posted_ns = flight.posted_ns,
                 .start_ns = span.start_ns,
                 .end_ns = span.end_ns});
  }

  void trace_transfer(Lane& lane, const Flight& flight) {
    const DeviceCache::Transfer& transfer = flight.transfer;
    engine_.counters().copy(transfer.bytes);
    const Span span = trace_span(lane, flight);
    const PlaceId device = place_of(lane);
    trace_.copy(
        {.reason = transfer.is_fetch ? trace::CopyReason::fetch : trace::CopyReason::write_back,
         .tile = {transfer.tile.matrix.value(), transfer.tile.index},
         .from = transfer.is_fetch ? host_place : device,
         .to = transfer.is_fetch ? device : host_place,
         .bytes = transfer.bytes,
         .posted_ns = flight.posted_ns,
         .start_ns = span.start_ns,
         .end_ns = span.end_ns});
  }

  [[nodiscard]] PlaceId place_of(const Lane& lane) const {
    return PlaceId{static_cast<std::int32_t>((&lane - lanes_.data()) / 2) + 1};
  }

  Engine& engine_;
  BellNotifier notifier_;
  trace::ThreadTrace& trace_;
  std::vector<Lane> lanes_;    ///< two for each device: in, out
  std::vector<bool> reaches_;  ///< by device and device: copies go straight
  std::size_t active_ = 0;     ///< flights that are not free
  bool polls_ = false;
};

}  // namespace

void copy_loop(Engine& engine, trace::ThreadTrace& trace) {
  CopyThread(engine, trace).run();
}

}  // namespace heddle
