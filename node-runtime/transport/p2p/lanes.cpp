#include "node-runtime/transport/p2p/lanes.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "base/error.hpp"

namespace heddle::p2p {

Lanes::Lanes(std::span<Device* const> devices, const Options& options, Notifier& notifier)
    : options_(options), notifier_(notifier) {
  for (Device* device : devices) {
    auto& lane = *lanes_.emplace_back(std::make_unique<Lane>(*device, options));
    // Messages are short beside kernels, and other nodes wait for them.
    for (Queues* queues : {&lane.out, &lane.out_by_copies, &lane.in}) {
      queues->all.resize(static_cast<std::size_t>(options.streams));
      for (Queue& queue : queues->all) {
        queue.stream = device->create_stream(StreamPriority::high, &notifier);
      }
    }
  }
}

Lanes::~Lanes() {
  HEDDLE_CHECK(is_idle(), "{} operations of devices are under way when their messages end",
               under_way_);
}

std::optional<LaneId> Lanes::owner_of(const void* address, std::int64_t bytes) const {
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    if (lanes_[i]->device.owns(address)) return LaneId{static_cast<std::int32_t>(i)};
  }
  // Host memory that is given back and becomes a device's lies elsewhere in all likelihood; long
  // messages do not rely on it. Relaxed: a page's number is all that there is to know.
  constexpr std::int64_t short_bytes = 65536;
  constexpr std::uintptr_t page_bytes = 4096;
  const std::uintptr_t page = reinterpret_cast<std::uintptr_t>(address) / page_bytes;
  if (bytes <= short_bytes && known_page(page).load(std::memory_order_relaxed) == page) {
    return std::nullopt;
  }
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    if (!lanes_[i]->device.adopt(address)) continue;
    // A library has allocated device memory: a page of the host may be a device's now.
    for (auto& known : host_pages_) known.store(0, std::memory_order_relaxed);
    return LaneId{static_cast<std::int32_t>(i)};
  }
  known_page(page).store(page, std::memory_order_relaxed);
  return std::nullopt;
}

std::optional<LaneId> Lanes::lane_on(const DeviceUuid& device) const {
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    if (lanes_[i]->device.info().uuid == device) return LaneId{static_cast<std::int32_t>(i)};
  }
  return std::nullopt;
}

void Lanes::pack(LaneId lane, const Elements& elements, StreamRange range, const Spot& to,
                 OperationId id) {
  Lane& on = at(lane);
  Queue& queue = next(on.out);
  on.packer.pack(*queue.stream, elements.plan, elements.count, elements.memory, range,
                 {to.address, to.device}, {options_.blocks_max, to.is_near, elements.on_host});
  queued(on, queue, id);
}

void Lanes::pack_and_copy(LaneId lane, const Elements& elements, StreamRange range,
                          std::byte* between, const Spot& to, OperationId id) {
  Lane& on = at(lane);
  Queue& queue = next(on.out_by_copies);
  on.packer.pack(*queue.stream, elements.plan, elements.count, elements.memory, range,
                 {between, &on.device}, {options_.blocks_max, true});
  queue.stream->copy({to.address, to.device}, {between, &on.device},
                     static_cast<std::size_t>(range.bytes));
  queued(on, queue, id);
}

void Lanes::unpack(LaneId lane, const Elements& elements, StreamRange range, const Spot& from,
                   OperationId id) {
  Lane& on = at(lane);
  Queue& queue = next(on.in);
  on.packer.unpack(*queue.stream, elements.plan, elements.count, range, {from.address, from.device},
                   elements.memory, {options_.blocks_max, from.is_near, elements.on_host});
  queued(on, queue, id);
}

void Lanes::transfer(LaneId lane, Direction direction, const Loops& from, const Loops& to,
                     OperationId id) {
  Lane& on = at(lane);
  Queue& queue = next(direction == Direction::out ? on.out : on.in);
  on.packer.transfer(*queue.stream, from.shape, {from.memory.address, from.memory.device}, to.shape,
                     {to.memory.address, to.memory.device}, {options_.blocks_max});
  queued(on, queue, id);
}

Lanes::Queues& Lanes::works_of(Lane& lane) {
  if (!lane.works.all.empty()) return lane.works;
  std::vector<Queue> made(static_cast<std::size_t>(options_.streams));
  for (Queue& queue : made) {
    queue.stream = lane.device.create_stream(StreamPriority::high, &notifier_);
  }
  lane.works.all = std::move(made);
  return lane.works;
}

/// Waits for what a work had queued before it threw. If that fails, the next operation of the
/// stream shows it.
void Lanes::settle(Stream& stream) {
  try {
    stream.synchronize();
  } catch (const Error&) {
    return;
  }
}

void Lanes::watch(LaneId lane, std::shared_ptr<const Event> event, OperationId id) {
  at(lane).watched.push_back({std::move(event), id});
  ++under_way_;
}

void Lanes::forget(LaneId lane, OperationId id) {
  Lane& on = at(lane);
  const auto found = std::ranges::find(on.watched, id, &Watched::id);
  if (found == on.watched.end()) return;
  on.forgotten.push_back(std::move(found->event));
  on.watched.erase(found);
  --under_way_;
}

void Lanes::poll_watched(Lane& lane, std::vector<Ended>& ended) {
  const auto is_over = [&](const Watched& one) {
    const EventState state = one.event->query();
    if (state == EventState::pending) return false;
    std::optional<std::string> failure;
    if (state == EventState::failed) failure.emplace(one.event->failure());
    ended.push_back({one.id, std::move(failure)});
    return true;
  };
  under_way_ -= static_cast<std::int64_t>(std::erase_if(lane.watched, is_over));
  std::erase_if(lane.forgotten,
                [](const auto& event) { return event->query() != EventState::pending; });
}

Lanes::Queue& Lanes::next(Queues& queues) {
  queues.next = (queues.next + 1) % queues.all.size();
  return queues.all[queues.next];
}

void Lanes::queued(Lane& lane, Queue& queue, OperationId id) {
  if (queue.events.empty()) queue.events.push_back(lane.device.create_event(EventTiming::off));
  std::unique_ptr<Event> event = std::move(queue.events.back());
  queue.events.pop_back();
  queue.stream->record(*event);
  queue.operations.push_back({std::move(event), id});
  ++under_way_;
}

void Lanes::poll(std::vector<Ended>& ended) {
  if (under_way_ == 0) return;
  for (const auto& lane : lanes_) {
    for (Queues* queues : {&lane->out, &lane->out_by_copies, &lane->in, &lane->works}) {
      for (Queue& queue : queues->all) poll(*lane, queue, ended);
    }
    poll_watched(*lane, ended);
  }
}

void Lanes::poll(Lane& lane, Queue& queue, std::vector<Ended>& ended) {
  while (!queue.operations.empty()) {
    Queued& oldest = queue.operations.front();
    const EventState state = oldest.event->query();
    if (state == EventState::pending) return;
    if (state == EventState::failed) {
      under_way_ -= static_cast<std::int64_t>(queue.operations.size());
      return fail(lane, queue, ended);
    }
    ended.push_back({oldest.id, std::nullopt});
    queue.events.push_back(std::move(oldest.event));
    queue.operations.pop_front();
    --under_way_;
  }
}

/// Replaces a failed stream, whose operations have failed with it.
void Lanes::fail(Lane& lane, Queue& queue, std::vector<Ended>& ended) const {
  const std::string why = queue.operations.front().event->failure();
  queue.stream->abandon(why);  // completes the records behind it
  queue.stream.reset();
  for (Queued& operation : queue.operations) {
    ended.push_back({operation.id, why});
    operation.event.reset();
  }
  queue.operations.clear();
  queue.events.clear();
  queue.stream = lane.device.create_stream(StreamPriority::high, &notifier_);
}

void Lanes::abandon() {
  for (const auto& lane : lanes_) {
    lane->watched.clear();
    for (Queues* queues : {&lane->out, &lane->out_by_copies, &lane->in, &lane->works}) {
      for (Queue& queue : queues->all) {
        if (queue.stream != nullptr) queue.stream->abandon("the messages between nodes have ended");
        queue.stream.reset();
        queue.operations.clear();
      }
    }
  }
  under_way_ = 0;
}

}  // namespace heddle::p2p
