#include "node-runtime/threads/staged_runner.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "node-runtime/threads/tile_operands.hpp"
#include "node-runtime/threads/trace_events.hpp"

namespace heddle {

StagedRunner::~StagedRunner() {
  for (std::size_t d = 0; d < sides_.size(); ++d) {
    Side& side = sides_[d];
    if (side.stream != nullptr && engine_.failed()) side.stream->abandon("the node has failed");
    side.stream.reset();
    if (side.memory != nullptr) engine_.options().devices[d]->free_host(side.memory);
  }
}

StagedRunner::Side& StagedRunner::side_of(std::size_t device, std::size_t bytes) {
  Side& side = sides_[device];
  Device& owner = *engine_.options().devices[device];
  if (side.stream == nullptr) side.stream = owner.create_stream();
  if (side.bytes < bytes) {
    if (side.memory != nullptr) owner.free_host(std::exchange(side.memory, nullptr));
    side.bytes = 0;
    side.memory = static_cast<double*>(owner.allocate_host(bytes));
    side.bytes = bytes;
  }
  return side;
}

void StagedRunner::run(protocol::Task& task, trace::ThreadTrace& trace) {
  const auto& job = job_of(task);
  const std::int64_t start = trace::now_ns();
  if (!job.cancelled.load(std::memory_order_relaxed)) {
    std::size_t bytes = 0;
    for (std::uint8_t i = 0; i < task.operand_count; ++i) {
      bytes += engine_.store().shape(task.operands[i].tile).bytes();
    }
    const auto device = static_cast<std::size_t>(task.place.value()) - 1;
    run_kernel(task, *engine_.options().devices[device],
               side_of(device, std::max<std::size_t>(bytes, 1)));
  }
  // The manager has acquired its tiles.
  engine_.store().cache(task.place).release(TaskUses(engine_.store(), task).span());
  record_task(trace, task, start, trace::now_ns());
}

void StagedRunner::run_kernel(protocol::Task& task, Device& device, Side& side) {
  const TaskTiles tiles(engine_.store(), task);
  std::array<TileView, protocol::accesses_max> host;
  double* next = side.memory;
  for (std::uint8_t i = 0; i < task.operand_count; ++i) {
    const protocol::Operand& operand = task.operands[i];
    host[i] = tiles[i];
    host[i].data = next;
    host[i].leading = std::max<std::int64_t>(1, host[i].rows);
    next += host[i].rows * host[i].columns;
    const std::size_t bytes = engine_.store().shape(operand.tile).bytes();
    if (operand.mode == protocol::AccessMode::write || bytes == 0) continue;
    // A renamed output goes on from the old content.
    const void* from = operand.copy_from.valid() ? engine_.store().address(operand.copy_from)
                                                 : static_cast<const void*>(tiles[i].data);
    side.stream->copy({host[i].data, nullptr}, {from, &device}, bytes);
  }
  side.stream->synchronize();
  const auto parameters = parameters_of(task);
  const Kernel& kernel = kernel_of(task);
  const std::int64_t info = engine_.executor().run_kernel(
      task, worker_, kernel, {{host.data(), task.operand_count}, parameters});
  if (info > 0) {
    engine_.numerical_failure(job_of(task), task.work.info_base + info,
                              failing_pivot(task, host[0], info));
  }
  for (std::uint8_t i = 0; i < task.operand_count; ++i) {
    const std::size_t bytes = engine_.store().shape(task.operands[i].tile).bytes();
    if (task.operands[i].mode == protocol::AccessMode::read || bytes == 0) continue;
    side.stream->copy({tiles[i].data, &device}, {host[i].data, nullptr}, bytes);
  }
  side.stream->synchronize();
}

}  // namespace heddle
