#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "node-runtime/threads/bell_notifier.hpp"
#include "node-runtime/threads/loops.hpp"

namespace heddle {
namespace {

/// Copies that one stream holds at a time; the others wait in the mailbox, where the urgent ones
/// overtake.
constexpr std::size_t in_flight_per_stream = 2;

/// One direction of one device: its mailbox and its stream (001 section 5.3).
struct Lane {
  Device* device = nullptr;
  std::unique_ptr<Stream> stream;
  std::vector<protocol::CopyAction> mailbox;  ///< a heap by priority; bounded by the jobs' pools
  struct Flight {
    protocol::CopyAction copy;
    std::unique_ptr<Event> event;
    std::int64_t posted_ns = 0;
    bool busy = false;
  };
  std::array<Flight, in_flight_per_stream> flights;
  std::int64_t free_since_ns = 0;  ///< end of the last finished copy

  /// The copy that the stream does next or is at; null without one.
  [[nodiscard]] Flight* oldest() {
    Flight* first = nullptr;
    for (Flight& flight : flights) {
      const bool earlier = first == nullptr || flight.posted_ns < first->posted_ns;
      if (flight.busy && earlier) first = &flight;
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
      : engine_(engine), notifier_(engine.copy_bell), trace_(trace) {
    lanes_.reserve(engine.options().devices.size() * 2);
    for (Device* device : engine.options().devices) {
      for (int direction = 0; direction < 2; ++direction) {
        Lane& lane = lanes_.emplace_back();
        lane.device = device;
        lane.stream = device->create_stream(StreamPriority::high, &notifier_);
        for (Lane::Flight& flight : lane.flights) flight.event = device->create_event();
        polls_ |= !device->info().notifies;
      }
    }
  }

  CopyThread(const CopyThread&) = delete;
  CopyThread& operator=(const CopyThread&) = delete;
  ~CopyThread() {
    if (!engine_.failed()) return;
    for (Lane& lane : lanes_) lane.stream->abandon("the node has failed");
  }

  void run() {
    for (;;) {
      const Doorbell::Ticket ticket = engine_.copy_bell.ticket();
      sort_mail();
      const bool collected = collect();
      const bool posted = post();
      if (collected || posted) continue;
      if (engine_.stopping() && in_flight_ == 0) return;
      const std::int64_t from = trace::now_ns();
      engine_.copy_bell.wait(ticket, polls_ && in_flight_ > 0 ? 20 : 0);
      trace_.wait(trace::WaitCause::copy, from, trace::now_ns());
    }
  }

 private:
  /// A copy to a device goes in by that device's stream, one to the host out by the source's.
  void sort_mail() {
    for (const protocol::CopyAction& copy : engine_.take_copies()) {
      const bool in = copy.to_place != host_place;
      const auto device = static_cast<std::size_t>((in ? copy.to_place : copy.from_place).value());
      Lane& lane = lanes_[(device - 1) * 2 + (in ? 0 : 1)];
      lane.mailbox.push_back(copy);
      std::push_heap(lane.mailbox.begin(), lane.mailbox.end(), less_urgent);
    }
  }

  bool collect() {
    std::vector<protocol::CopyAction> finished;
    for (Lane& lane : lanes_) {
      while (Lane::Flight* oldest = lane.oldest()) {
        Lane::Flight& flight = *oldest;
        const EventState state = flight.event->query();
        if (state == EventState::pending) break;
        if (state == EventState::failed) {
          throw Error(ErrorCode::internal, flight.event->failure());
        }
        flight.busy = false;
        --in_flight_;
        trace_copy(lane, flight);
        finished.push_back(flight.copy);
      }
    }
    if (!finished.empty()) engine_.copies_finished(finished);
    return !finished.empty();
  }

  bool post() {
    bool posted = false;
    for (Lane& lane : lanes_) {
      for (Lane::Flight& flight : lane.flights) {
        if (flight.busy || lane.mailbox.empty()) continue;
        std::pop_heap(lane.mailbox.begin(), lane.mailbox.end(), less_urgent);
        flight.copy = lane.mailbox.back();
        lane.mailbox.pop_back();
        flight.posted_ns = trace::now_ns();
        start(*lane.stream, flight);
        posted = true;
      }
    }
    return posted;
  }

  [[nodiscard]] const Device* device_of(PlaceId place) const {
    return place == host_place
               ? nullptr
               : engine_.options().devices[static_cast<std::size_t>(place.value()) - 1];
  }

  void start(Stream& stream, Lane::Flight& flight) {
    const protocol::CopyAction& copy = flight.copy;
    const TileView from = engine_.store().view(copy.tile, copy.from);
    const TileView to = engine_.store().view(copy.tile, copy.to);
    constexpr std::size_t element = sizeof(double);
    const CopyShape shape{static_cast<std::size_t>(from.rows) * element,
                          static_cast<std::size_t>(from.columns),
                          static_cast<std::size_t>(to.leading) * element,
                          static_cast<std::size_t>(from.leading) * element};
    if (from.rows > 0 && from.columns > 0) {
      stream.copy_strided({to.data, device_of(copy.to_place)},
                          {from.data, device_of(copy.from_place)}, shape);
    }
    stream.record(*flight.event);
    flight.busy = true;
    ++in_flight_;
  }

  void trace_copy(Lane& lane, const Lane::Flight& flight) {
    const protocol::CopyAction& copy = flight.copy;
    const std::size_t bytes = engine_.store().shape(copy.tile).bytes();
    engine_.count_copy(bytes);
    const std::int64_t end = flight.event->completed_ns();
    const std::int64_t start = std::max(flight.posted_ns, lane.free_since_ns);
    lane.free_since_ns = end;
    trace_.add_busy(end - start);
    trace_.copy({.job = copy.job.value(),
                 .tile = {copy.tile.matrix.value(), copy.tile.index},
                 .version = copy.number,
                 .from = copy.from_place,
                 .to = copy.to_place,
                 .bytes = bytes,
                 .posted_ns = flight.posted_ns,
                 .start_ns = start,
                 .end_ns = end});
  }

  Engine& engine_;
  BellNotifier notifier_;
  trace::ThreadTrace& trace_;
  std::vector<Lane> lanes_;  ///< two for each device: in, out
  std::size_t in_flight_ = 0;
  bool polls_ = false;
};

}  // namespace

void copy_loop(Engine& engine, trace::ThreadTrace& trace) {
  CopyThread(engine, trace).run();
}

}  // namespace heddle
