#include <algorithm>
#include <fmt/core.h>
#include <utility>

#include "tests/support/simulated_cluster_state.hpp"

/// The places of simulated nodes: which of them runs a ready task, and the devices' memories, where
/// whoever works on a block acquires it first, as the threads of a node do.
namespace heddle::simulation {

using protocol::Access;
using protocol::AccessMode;
using protocol::BlockRef;
using protocol::Operand;
using protocol::Task;

namespace {

/// The blocks of a task of a device's place, each once.
SimulatedMemory::Uses uses_of(SimulatedMemory& memory, const Task& task) {
  SimulatedMemory::Uses uses;
  const auto add = [&](BlockRef block, AccessMode mode, protocol::TileId tile) {
    const ResidentBlock resident = memory.resident(block);
    const bool is_known =
        std::ranges::any_of(uses, [&](const auto& use) { return use.block == resident; });
    if (!is_known) uses.push_back({resident, mode, tile});
  };
  for (std::uint8_t i = 0; i < task.operand_count; ++i) {
    const Operand& operand = task.operands[i];
    const bool is_renamed = operand.copy_from.valid();
    add(operand.block, is_renamed ? AccessMode::write : operand.mode, operand.tile);
    if (is_renamed) add(operand.copy_from, AccessMode::read, operand.tile);
  }
  return uses;
}

bool updates_a_frame(const SimulatedMemory& memory, const SimulatedMemory::Uses& uses) {
  return std::ranges::any_of(uses, [&](const auto& use) {
    return use.mode == AccessMode::read_write && memory.is_resident(use.block);
  });
}

bool reads_without_frame(const SimulatedMemory& memory, const SimulatedMemory::Uses& uses) {
  return std::ranges::any_of(uses, [&](const auto& use) {
    return use.mode != AccessMode::write && !memory.is_resident(use.block);
  });
}

/// The same, as if nothing were updated.
SimulatedMemory::Uses read_only(SimulatedMemory::Uses uses) {
  for (auto& use : uses) {
    if (use.mode == AccessMode::read_write) use.mode = AccessMode::read;
  }
  return uses;
}

}  // namespace

/// When all jobs are known: what the largest task needs decides.
void SimulatedCluster::make_memories() {
  std::size_t uses = 1;
  for (const auto& job : jobs_) {
    for (const Statement& s : job->program.statements) {
      // What is updated may be renamed: two blocks.
      const auto updates = std::ranges::count(s.accesses, AccessMode::read_write, &Access::mode);
      uses = std::max(uses, s.accesses.size() + static_cast<std::size_t>(updates));
    }
  }
  const auto devices = static_cast<std::size_t>(options_.places - 1);
  SimulatedMemory::Options options;
  // Copies hold an end while they wait for the one at another device.
  options.frames = SimulatedMemory::frames_min(uses, devices > 1 ? 2 * devices : 0) +
                   static_cast<std::size_t>(options_.extra_frames);
  options.dirty_share_max = static_cast<double>(random_() % 5) / 4;
  options.early_writes = static_cast<std::int32_t>(random_() % 4);
  options.overtakes_max = static_cast<std::int32_t>(random_() % 8);
  for (const auto& node : nodes_) {
    for (std::size_t d = 0; d < devices; ++d) node->memories.emplace_back(options);
    for (const BlockRef block : current_blocks(*node)) {
      if (place_of(block) == host_place) continue;
      memory_of(*node, place_of(block)).adopt(block, node->blocks.content(block));
    }
  }
}

SimulatedMemory& SimulatedCluster::memory_of(Node& node, PlaceId place) {
  return node.memories.at(static_cast<std::size_t>(place.value() - 1));
}

// ---- tasks -------------------------------------------------------------------------------------

/// Nobody weighs anything: whichever task is lent, and whenever, all must go well.
PlaceId SimulatedCluster::choose_place(const Task& task) {
  const bool may_lend = options_.placement == Placement::dynamic && task.place != host_place;
  return may_lend && random_() % 3 == 0 ? host_place : task.place;
}

void SimulatedCluster::acquire_task(Node& node, ReadyTask ready) {
  if (!admit(node, ready)) return;
  const PlaceId place = ready.task->place;
  if (place == host_place) return start_task(node, ready);
  if (ready.at == host_place) return acquire_lent_task(node, ready);
  ready.copy = Copy::frame;
  SimulatedMemory& memory = memory_of(node, place);
  const SimulatedMemory::Uses uses = uses_of(memory, *ready.task);
  if (memory.try_acquire(uses)) return start_task(node, ready);
  const bool is_missing = reads_without_frame(memory, uses);
  const auto ticket = memory.request(uses);
  if (is_missing && inject(Fault::device_task_early)) return start_task(node, ready);
  node.waiting_tasks.emplace(std::pair{place, ticket}, ready);
}

void SimulatedCluster::acquire_lent_task(Node& node, ReadyTask ready) {
  ready.copy = Copy::backing;
  const PlaceId place = ready.task->place;
  SimulatedMemory& memory = memory_of(node, place);
  SimulatedMemory::Uses uses = uses_of(memory, *ready.task);
  if (updates_a_frame(memory, uses) && inject(Fault::lent_write_not_left)) {
    ready.leaves_nothing = true;
    uses = read_only(std::move(uses));
  }
  const bool is_missing = memory.missing_backings(uses) > 0;
  const auto ticket = memory.request_host(uses);
  if (is_missing && inject(Fault::lent_task_early)) return start_task(node, ready);
  node.waiting_tasks.emplace(std::pair{place, ticket}, ready);
}

void SimulatedCluster::release_task(Node& node, const ReadyTask& task) {
  if (task.copy == Copy::only) return;
  SimulatedMemory& memory = memory_of(node, task.task->place);
  const SimulatedMemory::Uses uses = uses_of(memory, *task.task);
  if (task.copy == Copy::frame) {
    memory.release(uses);
  } else {
    memory.release_host(task.leaves_nothing ? read_only(uses) : uses);
  }
  for (std::uint8_t i = 0; i < task.task->operand_count; ++i) {
    check_copies(node, task.task->operands[i].block);
  }
}

// ---- copies and messages -----------------------------------------------------------------------

/// As many may hold one end while they wait for the other as the memories have room for.
std::size_t SimulatedCluster::copies_to_begin(const Node& node) const {
  const std::size_t limit = 2 * std::max<std::size_t>(1, node.memories.size());
  return node.copying.size() + node.waiting_copies.size() < limit ? node.copies.size() : 0;
}

void SimulatedCluster::begin_copy(Node& node, Copying copy) {
  const auto add_end = [&](PlaceId place, BlockRef block, AccessMode mode) {
    if (place == host_place) return;
    copy.ends.push_back({place, {memory_of(node, place).resident(block), mode, copy.action.tile}});
  };
  add_end(copy.action.from_place, copy.action.from, AccessMode::read);
  add_end(copy.action.to_place, copy.action.to, AccessMode::write);
  // In one order, so that two do not wait for each other's ends.
  std::ranges::sort(copy.ends, {}, &Copying::End::place);
  acquire_copy(node, std::move(copy));
}

void SimulatedCluster::acquire_copy(Node& node, Copying copy) {
  for (; copy.acquired < copy.ends.size(); ++copy.acquired) {
    const auto& [place, use] = copy.ends[copy.acquired];
    SimulatedMemory& memory = memory_of(node, place);
    if (memory.try_acquire({use})) continue;
    const auto ticket = memory.request({use});
    node.waiting_copies.emplace(std::pair{place, ticket}, std::move(copy));
    return;
  }
  node.copying.push_back(std::move(copy));
}

/// A message at a device is received as soon as its block can be reached, and has come then.
void SimulatedCluster::land(Node& node, std::size_t index) {
  Node::Arrival arrival = node.arrivals[index];
  const protocol::GrantAction& grant = node.landings[arrival.event.tag].grant;
  SimulatedMemory& memory = memory_of(node, place_of(grant.block));
  const SimulatedMemory::Use use{memory.resident(grant.block), AccessMode::write, grant.tile};
  if (!arrival.copy) {
    node.arrivals[index].copy = memory.reach(use);
    if (node.arrivals[index].copy) {
      return put(node, grant.block, *node.arrivals[index].copy, poisoned);
    }
    node.blocked_arrivals.push_back(arrival);
    node.arrivals.erase(node.arrivals.begin() + static_cast<std::ptrdiff_t>(index));
    return;
  }
  node.arrivals.erase(node.arrivals.begin() + static_cast<std::ptrdiff_t>(index));
  put(node, grant.block, *arrival.copy, arrival.event.data);
  memory.end_reach(use, *arrival.copy);
  finish_arrival(node, arrival.event);
}

// ---- memories ----------------------------------------------------------------------------------

void SimulatedCluster::finish_transfer(Node& node, std::size_t index) {
  for (SimulatedMemory& memory : node.memories) {
    if (index < memory.transfers()) {
      memory.finish_transfer(index);
      break;
    }
    index -= memory.transfers();
  }
  const auto retry = [](auto& blocked, auto& list) {
    list.insert(list.end(), blocked.begin(), blocked.end());
    blocked.clear();
  };
  retry(node.blocked_sends, node.sends);
  retry(node.blocked_arrivals, node.arrivals);
}

/// Whose blocks are there now goes on.
void SimulatedCluster::serve_memories(Node& node) {
  for (bool served = true; served;) {
    served = false;
    for (std::size_t m = 0; m < node.memories.size(); ++m) {
      const PlaceId place{static_cast<std::int32_t>(m) + 1};
      for (const auto ticket : node.memories[m].take_ready()) {
        served = true;
        if (auto copy = node.waiting_copies.extract({place, ticket})) {
          ++copy.mapped().acquired;
          acquire_copy(node, std::move(copy.mapped()));
        } else if (const auto task = node.waiting_tasks.extract({place, ticket})) {
          node.acquired.push_back(task.mapped());
        }
      }
    }
  }
}

void SimulatedCluster::put(Node& node, BlockRef block, Copy copy, Content content) {
  const PlaceId place = place_of(block);
  if (copy != Copy::only && place != host_place) memory_of(node, place).put(block, copy, content);
}

/// Who works on a copy must find the newest content there.
void SimulatedCluster::check_copy(Node& node, BlockRef block, Copy copy, const char* user) {
  if (copy == Copy::only || any_cancelled_) return;
  const Content newest = node.blocks.content(block);
  if (newest == poisoned) return;  // nobody wrote it
  if (memory_of(node, place_of(block)).content(block, copy) == newest) return;
  fail(Check::coherence,
       fmt::format("node {}: {} finds an old content in the {} of block {} of pool {}",
                   node.id.value(), user, copy == Copy::frame ? "frame" : "backing", block.index,
                   block.pool));
}

/// The directory must know where the newest content is.
void SimulatedCluster::check_copies(Node& node, BlockRef block) {
  const PlaceId place = place_of(block);
  const Content newest = node.blocks.content(block);
  if (place == host_place || any_cancelled_ || newest == poisoned) return;
  if (memory_of(node, place).agrees(block, newest)) return;
  fail(Check::coherence, fmt::format("node {}: block {} of pool {} is said to have its newest "
                                     "content where it is not",
                                     node.id.value(), block.index, block.pool));
}

/// At the end.
void SimulatedCluster::check_memories() {
  for (const auto& node : nodes_) {
    for (const BlockRef block : current_blocks(*node)) check_copies(*node, block);
    for (SimulatedMemory& memory : node->memories) {
      outcome_.fetches += memory.statistics().fetches;
      outcome_.write_backs += memory.statistics().write_backs;
      if (!memory.empties()) {
        fail(Check::leftovers, fmt::format("node {}: a frame is still held", node->id.value()));
      }
    }
    for (const BlockRef block : current_blocks(*node)) check_copies(*node, block);
  }
}

}  // namespace heddle::simulation
