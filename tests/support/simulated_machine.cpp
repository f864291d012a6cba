#include <algorithm>
#include <fmt/core.h>
#include <utility>

#include "base/assert.hpp"
#include "tests/support/simulated_cluster_state.hpp"

/// The machine under the simulated nodes: takes what the protocol wants done, does it when the
/// scheduler says so, and checks both against the sequential program.
namespace heddle::simulation {

using protocol::AccessMode;
using protocol::BlockRef;
using protocol::CopyAction;
using protocol::GrantAction;
using protocol::Operand;
using protocol::SendAction;
using protocol::Task;

namespace {

/// Calls `each` with every block that a ready task may touch and whether it writes it.
template <class Each>
void for_blocks(const Task& task, Each each) {
  for (std::uint8_t i = 0; i < task.operand_count; ++i) {
    const Operand& operand = task.operands[i];
    if (operand.copy_from.valid()) each(operand.copy_from, false);
    each(operand.block, operand.mode != AccessMode::read);
  }
}

/// True if a task that is running or about to run has the block as an input.
template <class Node>
bool is_read_by_a_task(const Node& node, BlockRef block) {
  const auto reads = [block](const Task& task) {
    for (std::uint8_t i = 0; i < task.operand_count; ++i) {
      const Operand& operand = task.operands[i];
      if (operand.mode == AccessMode::read && operand.block == block) return true;
    }
    return false;
  };
  return std::any_of(node.running.begin(), node.running.end(),
                     [&](const auto& running) { return reads(*running.of.task); }) ||
         std::any_of(node.ready.begin(), node.ready.end(),
                     [&](const auto& ready) { return reads(*ready.task); });
}

}  // namespace

/// What is done at a place must be done with the blocks of that place.
void SimulatedCluster::check_place(const Node& node, PlaceId place, BlockRef block,
                                   const char* user) {
  if (place_of(block) == place) return;
  fail(Check::place, fmt::format("node {}: {} is at place {}, its block {} of pool {} at place {}",
                                 node.id.value(), user, place.value(), block.index, block.pool,
                                 place_of(block).value()));
}

/// Where a message has to land: at the place of its tile, or of the first task that reads it.
PlaceId SimulatedCluster::landing_place(const Node& node, const GrantAction& grant) const {
  const Location home = home_of(grant.tile);
  if (home.node == node.id) return home.place;
  const JobState& job = *jobs_[static_cast<std::size_t>(grant.job.value())];
  return job.first_readers[static_cast<std::size_t>(node.id.value())].at(
      {grant.tile, grant.number});
}

void SimulatedCluster::collect(Node& node) {
  protocol::Actions& a = node.actions;
  for (const BlockRef block : a.freed) {
    node.blocks.freed(block);
    const PlaceId place = place_of(block);
    // Who frees what is in use is found below.
    const bool is_free = node.blocks.violation().empty();
    if (place != host_place && is_free) memory_of(node, place).discard(block);
  }
  for (Task* task : a.ready) take_ready(node, *task);
  for (const CopyAction& copy : a.copies) {
    check_place(node, copy.from_place, copy.from, "the source of a copy");
    check_place(node, copy.to_place, copy.to, "the destination of a copy");
    node.blocks.begin_read(copy.from, {"a copy of tile", copy.tile.index});
    node.blocks.begin_write(copy.to, {"a copy of tile", copy.tile.index});
    node.copies.push_back({copy, inject(Fault::copy_before_source), {}, 0});
  }
  for (const protocol::AskAction& ask : a.asks) tell(node, ask);
  for (const GrantAction& grant : a.grants) take_grant(node, grant);
  for (const protocol::OfferAction& offer : a.offers) tell(node, offer);
  for (const SendAction& send : a.sends) take_send(node, send);
  for (const protocol::Job* job : a.drained) {
    node.drained.push_back(static_cast<std::size_t>(job->id.value()));
  }
  a.clear();
  HEDDLE_EXPENSIVE(node.protocol->is_valid());
  if (!node.blocks.violation().empty()) {
    fail(Check::blocks, fmt::format("node {}: {}", node.id.value(), node.blocks.violation()));
  }
}

void SimulatedCluster::take_ready(Node& node, Task& task) {
  ReadyTask ready{&task, task.work.parameters[0], task.work.parameters[1], task.place};
  const auto statement = static_cast<std::int64_t>(ready.statement);
  for (std::uint8_t i = 0; i < task.operand_count; ++i) {
    const protocol::Operand& operand = task.operands[i];
    const SimulatedMatrix& matrix =
        matrices_[static_cast<std::size_t>(operand.tile.matrix.value())];
    if (matrix.temporary || operand.out == nullptr) continue;
    const BlockRef block = operand.out->block;
    const bool own = block.valid() && block.pool / options_.places == operand.tile.matrix.value();
    if (!own) continue;  // of a job's pool, or not there yet
    if (matrix.class_of_block(block.index) != matrix.class_of_tile(operand.tile.index)) {
      fail(Check::blocks, fmt::format("tile {} is renamed into block {}, which is of another size",
                                      operand.tile.index, block.index));
    }
  }
  for_blocks(task, [&](BlockRef block, bool writes) {
    check_place(node, task.place, block, "a task");
    if (writes) {
      node.blocks.begin_write(block, {"statement", statement});
    } else {
      node.blocks.begin_read(block, {"statement", statement});
      if (inject(Fault::block_freed_early)) node.blocks.freed(block);
    }
  });
  ready.at = choose_place(task);
  node.ready.push_back(ready);
  if (inject(Fault::task_runs_twice)) node.ready.push_back(ready);
}

void SimulatedCluster::take_grant(Node& node, GrantAction grant) {
  if (options_.fault == Fault::block_handed_out_twice) {
    const BlockRef other = node.blocks.written_block_in(grant.block.pool, grant.block);
    if (other.valid() && inject(Fault::block_handed_out_twice)) grant.block = other;
  }
  if (options_.places > 1 && inject(Fault::granted_elsewhere)) {
    grant.place = PlaceId{(grant.place.value() + 1) % options_.places};
  }
  check_place(node, grant.place, grant.block, "a message to receive");
  if (const PlaceId right = landing_place(node, grant); grant.place != right) {
    fail(Check::place,
         fmt::format("node {}: tile {} version {} lands at place {} and not {}", node.id.value(),
                     grant.tile.index, grant.number.value(), grant.place.value(), right.value()));
  }
  node.blocks.begin_write(grant.block, {"a message with tile", grant.tile.index});
  Event event;
  event.from = node.id;
  event.grant = grant;
  event.tag = static_cast<std::uint32_t>(node.landings.size());
  node.landings.push_back({grant});
  if (inject(Fault::grant_lost)) return;
  nodes_[static_cast<std::size_t>(grant.from.value())]->inbox.push_back(event);
}

void SimulatedCluster::tell(const Node& node, const protocol::AskAction& ask) {
  Event event;
  event.kind = Event::Kind::ask;
  event.from = node.id;
  event.grant = {ask.from, ask.job, ask.tile, ask.number, {}, {}};
  nodes_[static_cast<std::size_t>(ask.from.value())]->inbox.push_back(event);
}

void SimulatedCluster::tell(const Node& node, const protocol::OfferAction& offer) {
  Event event;
  event.kind = Event::Kind::offer;
  event.from = node.id;
  event.grant = {node.id, offer.job, offer.tile, offer.number, {}, {}};
  nodes_[static_cast<std::size_t>(offer.to.value())]->inbox.push_back(event);
}

void SimulatedCluster::take_send(Node& node, SendAction send) {
  const MessageName name{node.id, send.to, send.job, send.tile, send.number};
  if (!outcome_.messages.insert(name).second ||
      (inject(Fault::send_repeated) && !outcome_.messages.insert(name).second)) {
    fail(Check::messages, fmt::format("version {} of tile {} travels to node {} twice",
                                      send.number.value(), send.tile.index, send.to.value()));
  }
  outcome_.kinds_seen.insert(send.record->kind());
  if (send.record->task == nullptr && home_of(send.tile).node != node.id) ++outcome_.passed_on;
  if (options_.places > 1 && inject(Fault::sent_from_elsewhere)) {
    send.place = PlaceId{(send.place.value() + 1) % options_.places};
  }
  check_place(node, send.place, send.block, "a message to send");
  if (const Location home = home_of(send.tile); home.node == node.id && send.place != home.place) {
    fail(Check::place,
         fmt::format("node {}: tile {} version {} leaves from place {} and not {}", node.id.value(),
                     send.tile.index, send.number.value(), send.place.value(), home.place.value()));
  }
  if (send.behind != nullptr) {
    ++outcome_.passed_on_early;
    return node.behind.push_back(send);
  }
  node.blocks.begin_read(send.block, {"a message with tile", send.tile.index});
  node.sends.push_back(send);
}

// ---- what happens ------------------------------------------------------------------------------

/// Whether a ready task may run here, now for the first time.
bool SimulatedCluster::admit(Node& node, const ReadyTask& ready) {
  JobState& job = *jobs_[ready.job];
  if (++job.executions[ready.statement] != 1) {
    fail(Check::executions,
         fmt::format("statement {} of job {} runs twice", ready.statement, ready.job));
    return false;
  }
  const Location home{node.id, ready.task->place};
  if (job.program.statements[ready.statement].accesses.front().home != home) {
    fail(Check::place, fmt::format("statement {} runs at the wrong place", ready.statement));
    return false;
  }
  outcome_.tasks.emplace(node.id, ready.job, ready.statement);
  return true;
}

void SimulatedCluster::start_task(Node& node, const ReadyTask& ready) {
  const std::size_t j = ready.job;
  const std::size_t s = ready.statement;
  const Task& task = *ready.task;
  std::vector<Content> seen;
  for (std::uint8_t i = 0; i < task.operand_count; ++i) {
    const Operand& operand = task.operands[i];
    outcome_.kinds_seen.insert(operand.kind);
    if (operand.mode == AccessMode::write) {
      seen.push_back(0);
      continue;
    }
    const BlockRef from = operand.copy_from.valid() ? operand.copy_from : operand.block;
    check_copy(node, from, ready.copy, "a task");
    seen.push_back(node.blocks.content(from));
    if (seen.back() != reference_.read_by(j, s, i) && !any_cancelled_) {
      fail(Check::reads, fmt::format("node {}: statement {} of job {} reads a wrong version of "
                                     "tile {}",
                                     node.id.value(), s, j, operand.tile.index));
    }
  }
  for (std::uint8_t i = 0; i < task.operand_count; ++i) {
    const Operand& operand = task.operands[i];
    if (operand.mode != AccessMode::read) put(node, operand.block, ready.copy, poisoned);
  }
  node.running.push_back({ready, std::move(seen)});
  if (ready.copy == Copy::backing) ++outcome_.lent;
  if (ready.at == host_place && divide_task(node)) ++outcome_.divided;
}

void SimulatedCluster::finish_task(Node& node, std::size_t index) {
  const Node::Running running = std::move(node.running[index]);
  node.running.erase(node.running.begin() + static_cast<std::ptrdiff_t>(index));
  const ReadyTask& of = running.of;
  Task& task = *of.task;
  for (std::uint8_t i = 0; i < task.operand_count && !running.seen.empty(); ++i) {
    const Operand& operand = task.operands[i];
    Content& content = node.blocks.content(operand.block);
    if (operand.mode != AccessMode::read) {
      content = reference_.left_by(of.job, of.statement, i);
      put(node, operand.block, of.copy, content);
      const BlockRef old = operand.copy_from;
      // Looked at for this fault alone: after others, tasks that ended may be among the ready ones.
      if (options_.fault == Fault::old_version_overwritten && old.valid() &&
          is_read_by_a_task(node, old) && inject(Fault::old_version_overwritten)) {
        node.blocks.content(old) = content;
        for (const Copy copy : {Copy::frame, Copy::backing}) put(node, old, copy, content);
      }
      continue;
    }
    check_copy(node, operand.block, of.copy, "a task at its end");
    if (content != running.seen[i]) {
      fail(Check::reads, fmt::format("node {}: tile {} was overwritten while statement {} read it",
                                     node.id.value(), operand.tile.index, of.statement));
    }
  }
  release_task(node, of);
  for_blocks(task, [&](BlockRef block, bool writes) {
    writes ? node.blocks.end_write(block) : node.blocks.end_read(block);
  });
  node.protocol->task_finished(task, node.actions);
  collect(node);
}

void SimulatedCluster::finish_copy(Node& node, const Copying& copying) {
  const CopyAction& copy = copying.action;
  const auto side = [](PlaceId place) { return place == host_place ? Copy::only : Copy::frame; };
  check_copy(node, copy.from, side(copy.from_place), "a copy");
  const Content content = copying.too_early ? poisoned : node.blocks.content(copy.from);
  const auto job = static_cast<std::size_t>(copy.job.value());
  if (content != reference_.version(job, copy.tile, copy.number) && !any_cancelled_) {
    fail(Check::reads, fmt::format("node {}: a copy of tile {} is not version {}", node.id.value(),
                                   copy.tile.index, copy.number.value()));
  }
  node.blocks.content(copy.to) = content;
  put(node, copy.to, side(copy.to_place), content);
  for (const Copying::End& end : copying.ends) memory_of(node, end.place).release({end.use});
  check_copies(node, copy.to);
  node.blocks.end_read(copy.from);
  node.blocks.end_write(copy.to);
  ++outcome_.copies;
  if (inject(Fault::copy_report_lost)) return;
  node.protocol->copy_finished(copy, node.actions);
  collect(node);
}

void SimulatedCluster::post_payload(Node& node, const SendAction& send) {
  Copy copy = Copy::only;
  if (const PlaceId place = place_of(send.block); place != host_place && !send.empty) {
    SimulatedMemory& memory = memory_of(node, place);
    const auto reach = memory.reach({memory.resident(send.block), AccessMode::read, send.tile});
    if (!reach) return node.blocked_sends.push_back(send);
    copy = *reach;
    check_copy(node, send.block, copy, "a message");
  }
  Event event;
  event.kind = Event::Kind::payload;
  event.from = node.id;
  event.tag = send.tag;
  event.data = node.blocks.content(send.block);
  event.empty = send.empty;
  if (inject(Fault::payload_corrupted)) event.data ^= 1;
  auto& inbox = nodes_[static_cast<std::size_t>(send.to.value())]->inbox;
  if (!inject(Fault::payload_lost)) inbox.push_back(event);
  if (inject(Fault::payload_twice)) inbox.push_back(event);
  node.sent.push_back({send, copy});
}

void SimulatedCluster::finish_sending(Node& node, std::size_t index) {
  const auto [send, copy] = node.sent[index];
  node.sent.erase(node.sent.begin() + static_cast<std::ptrdiff_t>(index));
  if (copy != Copy::only) {
    check_copy(node, send.block, copy, "a message at its end");
    SimulatedMemory& memory = memory_of(node, place_of(send.block));
    memory.end_reach({memory.resident(send.block), AccessMode::read, send.tile}, copy);
  }
  node.blocks.end_read(send.block);
  node.protocol->send_finished(*send.record, node.actions);
  collect(node);
}

void SimulatedCluster::deliver(Node& node, const Event& event) {
  if (event.kind != Event::Kind::payload) {
    const GrantAction& g = event.grant;
    protocol::Protocol& p = *node.protocol;
    if (event.kind == Event::Kind::grant) {
      p.grant_arrived(g.job, g.tile, g.number, event.from, event.tag, g.asked, node.actions);
    } else if (event.kind == Event::Kind::ask) {
      p.ask_arrived(g.job, g.tile, g.number, event.from, node.actions);
    } else {
      p.offer_arrived(g.job, g.tile, g.number, event.from, node.actions);
    }
    return collect(node);
  }
  Node::Landing& landing = node.landings[event.tag];
  const GrantAction& g = landing.grant;
  if (std::exchange(landing.delivered, true)) {
    return fail(Check::messages, fmt::format("node {}: tile {} version {} arrives twice",
                                             node.id.value(), g.tile.index, g.number.value()));
  }
  if (place_of(g.block) == host_place) return finish_arrival(node, event);
  node.arrivals.push_back({event, {}});
}

/// What has come lies in its block.
void SimulatedCluster::finish_arrival(Node& node, const Event& event) {
  const GrantAction& g = node.landings[event.tag].grant;
  const auto job = static_cast<std::size_t>(g.job.value());
  if (event.data != reference_.version(job, g.tile, g.number) && !any_cancelled_) {
    fail(Check::reads, fmt::format("node {}: what arrived is not tile {} version {}",
                                   node.id.value(), g.tile.index, g.number.value()));
  }
  if (!event.empty) node.blocks.content(g.block) = event.data;
  node.blocks.end_write(g.block);
  std::erase_if(node.behind, [&](SendAction send) {
    if (send.behind != g.record) return false;
    send.empty |= event.empty;
    node.blocks.begin_read(send.block, {"a message with tile", send.tile.index});
    node.sends.push_back(send);
    return true;
  });
  node.protocol->data_arrived(*g.record, event.empty, node.actions);
  collect(node);
}

}  // namespace heddle::simulation
