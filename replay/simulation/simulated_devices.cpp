#include <algorithm>
#include <fmt/core.h>

#include "base/error.hpp"
#include "replay/simulation/simulated_node.hpp"

/// A node's devices: kernels in streams, and copies to and from their memory.
namespace heddle::replay {

using protocol::CopyAction;

namespace {

trace::CopyReason reason_of(const SimulatedCopy& copy) {
  if (!copy.is_transfer) return trace::CopyReason::access;
  return copy.action.to_place == host_place ? trace::CopyReason::write_back
                                            : trace::CopyReason::fetch;
}

}  // namespace

// ---- devices ---------------------------------------------------------------------------------

void SimulatedNode::launch(std::int32_t number) {
  Device& device = devices_[static_cast<std::size_t>(number)];
  for (;;) {
    const auto least = std::ranges::min_element(device.streams, {}, &DeviceStream::given);
    if (least->given >= world_.machine.stream_depth) break;
    protocol::Task* const task = next_of_device(number);
    if (task == nullptr) break;
    ++least->given;
    count_ready(number);
    device.manager_free_ns =
        std::max(world_.now_ns, device.manager_free_ns) + ns_of(world_.machine.launch_s);
    const auto stream = static_cast<std::int32_t>(least - device.streams.begin());
    post(Event::Kind::kernel_launched, device.manager_free_ns,
         kernels_.add({task, number, stream, 0}), id_);
  }
  if (memory_) ask_ahead(number);
}

/// After a device was given a task.
void SimulatedNode::count_ready(std::int32_t number) {
  const auto device = static_cast<std::size_t>(number);
  trace_.device_ready(number, ready_[device + 1]->count() + devices_[device].tasks.count(),
                      world_.now_ns);
}

void SimulatedNode::kernel_launched(std::int32_t number) {
  const SimulatedKernel& kernel = kernels_.at(number);
  DeviceStream& stream = devices_[static_cast<std::size_t>(kernel.device)]
                             .streams[static_cast<std::size_t>(kernel.stream)];
  stream.kernels.push_back(number);
  if (stream.kernels.size() == 1) run_next(kernel.device, kernel.stream);
}

void SimulatedNode::run_next(std::int32_t device_number, std::int32_t stream_number) {
  Device& device = devices_[static_cast<std::size_t>(device_number)];
  const DeviceStream& stream = device.streams[static_cast<std::size_t>(stream_number)];
  SimulatedKernel& kernel = kernels_.at(stream.kernels.front());
  const TaskKind& kind = world_.kind_of(*kernel.task);
  if (kind.seconds_device <= 0) {
    throw Error(ErrorCode::usage,
                fmt::format("machine '{}' has no time for kernel '{}' on {} x {} tiles on devices",
                            world_.machine.name, kind.kernel, kind.rows, kind.columns));
  }
  kernel.start_ns = world_.now_ns;
  if (device.running++ == 0) device.busy_since_ns = world_.now_ns;
  world_.begin_flow({FlowUser::Kind::kernel, id_, stream.kernels.front()},
                    kind.seconds_device * world_.share_of(*kernel.task, id_), device.rate,
                    device.rate);
}

void SimulatedNode::kernel_ends(std::int32_t number) {
  const SimulatedKernel& kernel = kernels_.at(number);
  Device& device = devices_[static_cast<std::size_t>(kernel.device)];
  DeviceStream& stream = device.streams[static_cast<std::size_t>(kernel.stream)];
  const TaskKind& kind = world_.kind_of(*kernel.task);
  trace_.device_ran(kernel.device, kernel.stream, *kernel.task, kind, kernel.start_ns,
                    world_.now_ns);
  if (--device.running == 0) {
    totals.busy_devices_s += static_cast<double>(world_.now_ns - device.busy_since_ns) * 1e-9;
  }
  ++totals.tasks;
  world_.result.flops += kind.flops;
  stream.kernels.pop_front();
  if (!stream.kernels.empty()) run_next(kernel.device, kernel.stream);
  post(Event::Kind::kernel_noticed, world_.now_ns + ns_of(world_.machine.notice_s), number, id_);
}

void SimulatedNode::kernel_noticed(std::int32_t number) {
  const SimulatedKernel kernel = kernels_.at(number);
  kernels_.remove(number);
  Device& device = devices_[static_cast<std::size_t>(kernel.device)];
  --device.streams[static_cast<std::size_t>(kernel.stream)].given;
  finished(*kernel.task);
  collect();
}

// ---- copies ----------------------------------------------------------------------------------

void SimulatedNode::post_copy(const CopyAction& action) {
  const std::int32_t number = lane_of(action);
  CopyLane& lane = lanes_[static_cast<std::size_t>(number)];
  lane.waiting.push_back(copies_.add({action, world_.now_ns, 0}));
  std::ranges::push_heap(lane.waiting, {},
                         [this](std::int32_t copy) { return copies_.at(copy).action.priority; });
  start_copies(number);
}

std::int32_t SimulatedNode::lane_of(const CopyAction& action) {
  const bool to_host = action.to_place == host_place;
  const std::int32_t device = (to_host ? action.from_place : action.to_place).value() - 1;
  return 2 * device + (to_host ? 1 : 0);
}

/// Assigns ends to the most urgent copies. If blocks move, a copy acquires its ends while the
/// previous one is in progress, as in the copy thread.
void SimulatedNode::next_copies(CopyLane& lane) {
  const std::size_t at_a_time = memory_ ? 2 : 1;
  const std::size_t running = lane.free_ns > world_.now_ns ? 1 : 0;
  while (!lane.waiting.empty() &&
         running + lane.acquired.size() + static_cast<std::size_t>(lane.acquiring) < at_a_time) {
    std::ranges::pop_heap(lane.waiting, {},
                          [this](std::int32_t copy) { return copies_.at(copy).action.priority; });
    const std::int32_t record = lane.waiting.back();
    lane.waiting.pop_back();
    ++lane.acquiring;
    acquire_ends(record);
  }
}

void SimulatedNode::start_copies(std::int32_t number) {
  CopyLane& lane = lanes_[static_cast<std::size_t>(number)];
  next_copies(lane);
  const bool has_waiting = !memory_ && !lane.waiting.empty();
  if ((!has_waiting && lane.acquired.empty() && lane.transfers.empty()) || lane.is_awaited) return;
  if (lane.free_ns > world_.now_ns) {
    lane.is_awaited = true;
    return post(Event::Kind::lane_is_free, lane.free_ns, number, id_);
  }
  std::int32_t record = 0;
  if (lane.transfers.empty()) {
    record = lane.acquired.front();
    lane.acquired.pop_front();
  } else {
    record = take_transfer(lane);
  }
  SimulatedCopy& copy = copies_.at(record);
  copy.start_ns = world_.now_ns;
  const Way& way = world_.machine.way(copy.action.from_place, copy.action.to_place);
  const std::uint64_t bytes = world_.job.tile_bytes(copy.action.tile);
  lane.free_ns = world_.now_ns + ns_of(static_cast<double>(bytes) / way.bytes_per_s);
  SimulationResult& result = world_.result;
  if (!copy.is_transfer) {
    ++result.copies;
    result.copied_bytes += bytes;
  } else if (copy.action.to_place == host_place) {
    ++result.write_backs;
    result.written_bytes += bytes;
  } else {
    ++result.fetches;
    result.fetched_bytes += bytes;
  }
  post(Event::Kind::copy_ends, lane.free_ns + ns_of(way.latency_s), record, id_);
  start_copies(number);
}

void SimulatedNode::lane_is_free(std::int32_t number) {
  lanes_[static_cast<std::size_t>(number)].is_awaited = false;
  start_copies(number);
}

void SimulatedNode::copy_ends(std::int32_t number) {
  const SimulatedCopy copy = copies_.at(number);
  copies_.remove(number);
  trace_.copied(copy.action, reason_of(copy), world_.job.tile_bytes(copy.action.tile),
                copy.posted_ns, copy.start_ns, world_.now_ns);
  if (copy.is_transfer) return transfer_ends(copy);
  release_ends(copy.action);
  protocol_.copy_finished(copy.action, actions_);
  collect();
}

}  // namespace heddle::replay
