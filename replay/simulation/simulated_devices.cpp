#include <algorithm>
#include <fmt/core.h>

#include "base/error.hpp"
#include "replay/simulation/simulated_node.hpp"

/// A node's devices: kernels in streams, and the ends of copies to and from their memory.
namespace heddle::replay {

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
    world_.post(Event::Kind::kernel_launched, device.manager_free_ns,
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
  world_.post(Event::Kind::kernel_noticed, world_.now_ns + ns_of(world_.machine.notice_s), number,
              id_);
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

void SimulatedNode::copy_ends(std::int32_t number) {
  const SimulatedCopy copy = copies_.take_ended(number);
  trace_.copied(copy.action, reason_of(copy), world_.job.tile_bytes(copy.action.tile),
                copy.posted_ns, copy.start_ns, world_.now_ns);
  if (copy.is_transfer) return transfer_ends(copy);
  copies_.release_ends(copy.action);
  protocol_.copy_finished(copy.action, actions_);
  collect();
}

}  // namespace heddle::replay
