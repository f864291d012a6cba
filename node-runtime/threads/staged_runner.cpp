#include "node-runtime/threads/staged_runner.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <memory>

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

namespace {

/// Columns of a tile that pass at a time: enough for the link's rate.
std::int64_t columns_at_a_time(std::int64_t rows) {
  constexpr std::int64_t elements = (std::int64_t{4} << 20) / sizeof(double);
  return std::max<std::int64_t>(1, elements / std::max<std::int64_t>(1, rows));
}

/// Ranges of a tile that pay for one more worker, whose memory is page-locked the first time.
constexpr std::int64_t each_min = 4;

bool is_by_columns(const protocol::Task& task) {
  return kernel_of(task).is_by_columns && task.operand_count == 1 &&
         !task.operands[0].copy_from.valid();
}

}  // namespace

std::size_t StagedRunner::bytes_by_columns(std::int64_t rows, std::int64_t columns) {
  return static_cast<std::size_t>(rows * std::min(columns_at_a_time(rows), columns)) *
         sizeof(double);
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
    Device& owner = *engine_.options().devices[device];
    if (is_by_columns(task)) {
      run_by_columns(task);
    } else {
      run_kernel(task, owner, side_of(device, std::max<std::size_t>(bytes, 1)));
    }
  }
  // The manager has acquired its tiles.
  engine_.store().cache(task.place).release(TaskUses(engine_.store(), task).span());
  record_task(trace, task, start, trace::now_ns());
}

void StagedRunner::run_by_columns(protocol::Task& task) {
  const TileView tile = TaskTiles(engine_.store(), task)[0];
  HEDDLE_DEBUG(tile.leading == std::max<std::int64_t>(1, tile.rows), "a tile with gaps");
  const std::int64_t at_a_time = columns_at_a_time(tile.rows);
  const std::int64_t ranges = (tile.columns + at_a_time - 1) / at_a_time;
  StagedRanges::Work work{&task, tile.columns, at_a_time,
                          static_cast<std::int32_t>(std::max<std::int64_t>(1, ranges / each_min))};
  const bool is_shared = task.operands[0].mode == protocol::AccessMode::write && ranges > 1;
  if (is_shared) {
    engine_.staged_ranges.open(work);
    engine_.bells.cpu.ring(work.helpers_max);
  }
  // Whatever happens here, helpers are waited for: they know the work.
  const auto close = [&](const StagedRanges::Work*) {
    if (is_shared) engine_.staged_ranges.close(work);
  };
  const std::unique_ptr<StagedRanges::Work, decltype(close)> guard(&work, close);
  for (std::int64_t first = work.take(); first < tile.columns; first = work.take()) {
    run_range(task, first, work.at_a_time);
  }
}

bool StagedRunner::help(trace::ThreadTrace& trace) {
  StagedRanges::Work* const work = engine_.staged_ranges.join();
  if (work == nullptr) return false;
  const auto leave = [this](StagedRanges::Work* joined) { engine_.staged_ranges.leave(*joined); };
  const std::unique_ptr<StagedRanges::Work, decltype(leave)> guard(work, leave);
  const std::int64_t start = trace::now_ns();
  const std::int64_t first = work->take();
  if (first < work->columns) run_range(*work->task, first, work->at_a_time);
  trace.add_busy(trace::now_ns() - start);
  return true;
}

void StagedRunner::run_range(protocol::Task& task, std::int64_t first, std::int64_t at_a_time) {
  if (job_of(task).cancelled.load(std::memory_order_relaxed)) return;
  const TileView tile = TaskTiles(engine_.store(), task)[0];
  const auto device = static_cast<std::size_t>(task.place.value()) - 1;
  Device& owner = *engine_.options().devices[device];
  const Side& side =
      side_of(device, std::max<std::size_t>(1, bytes_by_columns(tile.rows, tile.columns)));
  const std::int64_t columns = std::min(at_a_time, tile.columns - first);
  const TileView part{side.memory, tile.rows, columns, tile.leading};
  double* const there = tile.data + first * tile.leading;
  const std::size_t bytes = static_cast<std::size_t>(tile.rows * columns) * sizeof(double);
  if (task.operands[0].mode != protocol::AccessMode::write && bytes > 0) {
    side.stream->copy({part.data, nullptr}, {there, &owner}, bytes);
    side.stream->synchronize();
  }
  const Kernel& kernel = kernel_of(task);
  const auto parameters = parameters_of(task);
  const std::int64_t info =
      engine_.executor().run_kernel(task, worker_, kernel, {{&part, 1}, parameters, first});
  if (info > 0) {
    engine_.numerical_failure(job_of(task), task.work.info_base + info,
                              failing_pivot(task, part, info));
  }
  const bool is_over = job_of(task).cancelled.load(std::memory_order_relaxed);
  if (is_over || kernel.leaves_tile || bytes == 0) return;
  side.stream->copy({there, &owner}, {part.data, nullptr}, bytes);
  side.stream->synchronize();
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
