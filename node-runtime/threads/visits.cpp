#include "node-runtime/threads/visits.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/assert.hpp"
#include "node-runtime/threads/tile_operands.hpp"
#include "node-runtime/trace/recorder.hpp"

namespace heddle {

using protocol::AccessMode;
using protocol::Operand;
using protocol::Task;

Visits::Visits(Engine& engine, PlaceId place)
    : engine_(engine),
      device_(*engine.options().devices[static_cast<std::size_t>(place.value()) - 1]),
      cache_(engine.store().cache(place)),
      place_(place) {
  if (engine.options().devices.size() < 2 || !engine.options().lending) look_again_ns_ = never;
}

Visits::~Visits() {
  // After a failure tasks may still be there, and their blocks go with the device's memory.
  if (count() == 0) give_room_back();
}

std::size_t Visits::count() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(visits_, [](const Visit& visit) { return visit.task != nullptr; }));
}

Visits::Visit& Visits::visit_of(const Task& task) {
  Visit* const found = std::ranges::find(visits_, &task, &Visit::task);
  HEDDLE_CHECK(found != visits_.end(), "place {}: no such visit", place_.value());
  return *found;
}

void Visits::give_room_back() {
  if (room_bytes_ == 0) return;
  std::vector<ResidentBlock> blocks;
  for (const Blocks& some : room_) blocks.insert(blocks.end(), some.begin(), some.end());
  cache_.remove_pool(blocks);
  room_bytes_ = 0;
}

/// Blocks of at least that size. False: tasks are there whose blocks are smaller.
bool Visits::provide_room(std::size_t bytes) {
  if (bytes <= room_bytes_) return true;
  if (count() > 0) return false;
  give_room_back();
  const std::vector<std::size_t> sizes(tasks_max * protocol::accesses_max, bytes);
  const std::vector<ResidentBlock> blocks = cache_.add_pool(sizes, DeviceCache::PoolKind::spare);
  auto next = blocks.begin();
  for (Blocks& some : room_) {
    std::copy_n(next, some.size(), some.begin());
    next += static_cast<std::ptrdiff_t>(some.size());
  }
  room_bytes_ = bytes;
  return true;
}

Task* Visits::take(std::int64_t idle_since_ns) {
  if (look_again_ns_ == never || is_full()) return nullptr;
  const bool is_idle_anew = idle_since_ns != std::exchange(idle_since_ns_, idle_since_ns);
  const std::int64_t now_ns = trace::now_ns();
  if (!is_idle_anew && now_ns < look_again_ns_) return nullptr;
  const bool has_slept = now_ns - look_again_ns_ > pause_most_ns;  // there was no job
  if (is_idle_anew || has_slept) pause_ns_ = pause_least_ns;
  look_again_ns_ = now_ns + pause_ns_;
  Task* const task = engine_.has_surplus() ? look(idle_since_ns) : nullptr;
  if (task != nullptr) look_again_ns_ = 0;
  pause_ns_ = task == nullptr ? std::min(2 * pause_ns_, pause_most_ns) : pause_least_ns;
  return task;
}

/// Room comes first, as a task that is taken cannot be given back: for as many tiles of the largest
/// size as a task may have, or else none is asked for.
Task* Visits::look(std::int64_t idle_since_ns) {
  const auto free = std::ranges::find(visits_, nullptr, &Visit::task);
  // Where not all blocks fit, room is what tasks of this place wait for.
  if (!cache_.holds_all()) return nullptr;
  std::size_t bytes = 0;
  for (std::int32_t p = 1; p < engine_.store().places(); ++p) {
    bytes = std::max(bytes, engine_.store().cache(PlaceId{p}).largest_block_bytes());
  }
  if (bytes == 0 || !provide_room(bytes)) return nullptr;
  const Blocks& blocks = room_[static_cast<std::size_t>(free - visits_.begin())];
  free->count = blocks.size();
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    free->uses[i] = {blocks[i], AccessMode::write, {}};
  }
  if (!cache_.try_acquire(free->span())) return nullptr;
  Task* const task = engine_.take_visitor({place_, room_bytes_, idle_since_ns});
  const std::size_t wanted = task == nullptr ? 0 : task->operand_count;
  cache_.release_and_discard(free->span().subspan(wanted));
  free->count = wanted;
  free->task = task;
  return task;
}

void Visits::start(Stream& stream, const Task& task, std::int64_t* info) {
  const Visit& visit = visit_of(task);
  TileStore& store = engine_.store();
  Device& home = *engine_.options().devices[static_cast<std::size_t>(task.place.value()) - 1];
  const TaskTiles there(store, task);
  std::array<TileView, protocol::accesses_max> here;
  for (std::uint8_t i = 0; i < task.operand_count; ++i) {
    const Operand& operand = task.operands[i];
    here[i] = there[i];
    here[i].data = reinterpret_cast<double*>(cache_.address(visit.uses[i].block));
    const std::size_t bytes = store.shape(operand.tile).bytes();
    if (operand.mode == AccessMode::write || bytes == 0) continue;
    // A renamed output goes on from the old content.
    const void* from = operand.copy_from.valid() ? store.address(operand.copy_from)
                                                 : static_cast<const void*>(there[i].data);
    stream.copy({here[i].data, &device_}, {from, &home}, bytes);
  }
  stream.launch(kernel_of(task), {here.data(), task.operand_count}, parameters_of(task), info);
  for (std::uint8_t i = 0; i < task.operand_count; ++i) {
    const Operand& operand = task.operands[i];
    const std::size_t bytes = store.shape(operand.tile).bytes();
    if (operand.mode == AccessMode::read || bytes == 0) continue;
    stream.copy({there[i].data, &home}, {here[i].data, &device_}, bytes);
  }
}

void Visits::finish(const Task& task) {
  Visit& visit = visit_of(task);
  engine_.store().cache(task.place).release(TaskUses(engine_.store(), task).span());
  cache_.release_and_discard(visit.span());
  visit.task = nullptr;
}

}  // namespace heddle
