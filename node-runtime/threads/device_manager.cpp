#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <vector>

#include "node-runtime/threads/bell_notifier.hpp"
#include "node-runtime/threads/loops.hpp"
#include "node-runtime/threads/tile_operands.hpp"
#include "node-runtime/threads/trace_events.hpp"

namespace heddle {
namespace {

/// Kernels that one stream holds at a time: one runs, the others are behind it, so that the device
/// does not wait for the manager. More would only take the freedom to choose by priority.
constexpr std::size_t in_flight_per_stream = 3;
constexpr std::size_t stream_count = 2;

/// A task on its way through a stream.
struct Flight {
  protocol::Task* task = nullptr;
  std::unique_ptr<Event> event;
  std::int64_t info = 0;
  std::int64_t launched_ns = 0;
};

/// One compute stream and what it holds, oldest first: a stream works in order.
struct Lane {
  std::unique_ptr<Stream> stream;
  std::array<Flight, in_flight_per_stream> flights;
  std::size_t first = 0;
  std::size_t count = 0;
  std::int64_t free_since_ns = 0;  ///< end of the last finished kernel

  [[nodiscard]] Flight& oldest() { return flights.at(first); }
  [[nodiscard]] Flight& next() { return flights.at((first + count) % flights.size()); }
};

class DeviceManager {
 public:
  DeviceManager(Engine& engine, std::int32_t index, trace::ThreadTrace& trace)
      : engine_(engine),
        device_(*engine.options().devices[static_cast<std::size_t>(index)]),
        place_(index + 1),
        bell_(*engine.device_bells[static_cast<std::size_t>(index)]),
        notifier_(bell_),
        trace_(trace) {
    for (Lane& lane : lanes_) {
      lane.stream = device_.create_stream(StreamPriority::normal, &notifier_);
      for (Flight& flight : lane.flights) flight.event = device_.create_event();
    }
  }

  DeviceManager(const DeviceManager&) = delete;
  DeviceManager& operator=(const DeviceManager&) = delete;
  ~DeviceManager() {
    if (engine_.failed()) {
      for (Lane& lane : lanes_) lane.stream->abandon("the node has failed");
    }
  }

  void run() {
    for (;;) {
      const Doorbell::Ticket ticket = bell_.ticket();
      const bool collected = collect();
      const bool launched = launch();
      if (collected || launched) continue;
      if (engine_.stopping() && in_flight_ == 0) return;
      const std::int64_t from = trace::now_ns();
      // Without notices the events are polled; the pause bounds how late a finished kernel is seen.
      const bool poll = in_flight_ > 0 && !device_.info().notifies;
      bell_.wait(ticket, poll ? 20 : 0);
      trace_.wait(in_flight_ > 0 ? trace::WaitCause::other : trace::WaitCause::no_task, from,
                  trace::now_ns());
    }
  }

 private:
  /// FIREs what has finished.
  bool collect() {
    std::vector<protocol::Task*> finished;
    for (Lane& lane : lanes_) {
      for (; lane.count > 0; --lane.count, --in_flight_) {
        Flight& flight = lane.oldest();
        const EventState state = flight.event->query();
        if (state == EventState::pending) break;
        if (state == EventState::failed) {
          throw Error(ErrorCode::internal, flight.event->failure());
        }
        if (flight.info > 0) report_failure(*lane.stream, *flight.task, flight.info);
        const std::int64_t end = flight.event->completed_ns();
        record_task(trace_, *flight.task, std::max(flight.launched_ns, lane.free_since_ns), end);
        lane.free_since_ns = end;
        finished.push_back(flight.task);
        lane.first = (lane.first + 1) % lane.flights.size();
      }
    }
    if (!finished.empty()) engine_.finish(finished);
    return !finished.empty();
  }

  /// Gives ready tasks to the streams, always to the one with the least to do.
  bool launch() {
    bool launched = false;
    for (;;) {
      Lane& lane =
          *std::min_element(lanes_.begin(), lanes_.end(),
                            [](const Lane& a, const Lane& b) { return a.count < b.count; });
      if (lane.count == lane.flights.size()) return launched;
      protocol::Task* task = engine_.finish_and_take(nullptr, place_);
      if (task == nullptr) return launched;
      start(*lane.stream, lane.next(), *task);
      ++lane.count;
      ++in_flight_;
      launched = true;
    }
  }

  void start(Stream& stream, Flight& flight, protocol::Task& task) {
    flight.task = &task;
    flight.info = 0;
    flight.launched_ns = trace::now_ns();
    const auto& job = *static_cast<const JobRecord*>(task.job->context);
    if (!job.cancelled.load(std::memory_order_relaxed)) {
      const TaskTiles tiles(engine_.store(), task);
      for (std::uint8_t i = 0; i < task.operand_count; ++i) {
        const protocol::Operand& operand = task.operands[i];
        if (!operand.copy_from.valid()) continue;
        stream.copy({tiles[i].data, &device_},
                    {engine_.store().address(operand.copy_from), &device_},
                    engine_.store().shape(operand.tile).bytes());
      }
      const Kernel& kernel = *static_cast<const Kernel*>(task.work.kernel);
      const auto parameters = std::bit_cast<KernelParameters>(task.work.parameters);
      if (kernel.emulated != nullptr) {
        stream.launch(kernel, tiles.span(), parameters, &flight.info);
      } else {
        run_staged(stream, kernel, tiles, parameters, task, flight);
      }
    }
    stream.record(*flight.event);
  }

  /// A kernel that only the host has (reading files, checking input): its tiles go there and back.
  void run_staged(Stream& stream, const Kernel& kernel, const TaskTiles& tiles,
                  const KernelParameters& parameters, const protocol::Task& task, Flight& flight) {
    std::size_t doubles = 0;
    for (const TileView& tile : tiles.span()) {
      doubles += static_cast<std::size_t>(tile.rows * tile.columns);
    }
    if (staging_.size() < doubles) staging_.resize(doubles);
    std::vector<TileView> host(tiles.span().begin(), tiles.span().end());
    double* next = staging_.data();
    for (TileView& tile : host) {
      const auto bytes = static_cast<std::size_t>(tile.rows * tile.columns) * sizeof(double);
      if (bytes > 0) stream.copy({next, nullptr}, {tile.data, &device_}, bytes);
      tile.data = next;
      next += tile.rows * tile.columns;
    }
    stream.synchronize();
    flight.info = kernel.host({host, parameters});
    for (std::uint8_t i = 0; i < task.operand_count; ++i) {
      const auto bytes = static_cast<std::size_t>(host[i].rows * host[i].columns) * sizeof(double);
      if (task.operands[i].mode == protocol::AccessMode::read || bytes == 0) continue;
      stream.copy({tiles[i].data, &device_}, {host[i].data, nullptr}, bytes);
    }
    stream.synchronize();
  }

  void report_failure(Stream& stream, const protocol::Task& task, std::int64_t info) {
    const TaskTiles tiles(engine_.store(), task);
    const std::int64_t at = failing_element(tiles[0], task, info);
    double pivot = 0;
    stream.copy({&pivot, nullptr}, {tiles[0].data + at, &device_}, sizeof(double));
    stream.synchronize();
    engine_.numerical_failure(*static_cast<JobRecord*>(task.job->context),
                              task.work.info_base + info, pivot);
  }

  Engine& engine_;
  Device& device_;
  PlaceId place_;
  Doorbell& bell_;
  BellNotifier notifier_;
  trace::ThreadTrace& trace_;
  std::array<Lane, stream_count> lanes_;
  std::size_t in_flight_ = 0;
  std::vector<double> staging_;
};

}  // namespace

void device_manager_loop(Engine& engine, std::int32_t device, trace::ThreadTrace& trace) {
  DeviceManager(engine, device, trace).run();
}

}  // namespace heddle
