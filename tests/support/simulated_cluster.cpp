#include "tests/support/simulated_cluster.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "base/assert.hpp"
#include "tests/support/simulated_cluster_state.hpp"

namespace heddle::simulation {

using protocol::Access;
using protocol::AccessMode;
using protocol::BlockRef;
using protocol::CopyAction;
using protocol::GrantAction;
using protocol::Operand;
using protocol::SendAction;
using protocol::Task;
using protocol::TileId;

namespace {

constexpr std::int32_t job_pool_base = 1000;  // pools of jobs, apart from those of matrices

bool touches(NodeId node, const Statement& statement) {
  return std::any_of(statement.accesses.begin(), statement.accesses.end(),
                     [&](const Access& a) { return a.home.node == node; });
}

bool only_reads_at(NodeId node, const Statement& statement) {
  return std::all_of(statement.accesses.begin(), statement.accesses.end(), [&](const Access& a) {
    return a.home.node != node || a.mode == AccessMode::read;
  });
}

/// A program as a node walks it.
NodeWalk walk_of(const Program& program, Walk walk, NodeId node) {
  NodeWalk steps;
  for (std::size_t s = 0; s < program.statements.size(); ++s) {
    const Statement& statement = program.statements[s];
    std::vector<Access> accesses = statement.accesses;
    if (walk == Walk::full) {
      for (Access& a : accesses) a.version = protocol::count_here;
    }
    if (statement.kind == Statement::Kind::release) {
      steps.push_back({Step::Kind::release, s, {accesses.front()}, {}, 0});
      continue;
    }
    if (walk != Walk::full && !touches(node, statement)) continue;
    const NodeId runs_on = accesses.front().home.node;
    if (walk == Walk::announced && runs_on != node && only_reads_at(node, statement)) {
      for (const Access& a : accesses) {
        if (a.home.node != node) continue;
        steps.push_back({Step::Kind::announce, s, {a}, runs_on, statement.priority});
      }
      continue;
    }
    steps.push_back({Step::Kind::append, s, std::move(accesses), {}, statement.priority});
  }
  return steps;
}

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
                     [&](const auto& running) { return reads(*running.task); }) ||
         std::any_of(node.ready.begin(), node.ready.end(),
                     [&](const auto& ready) { return reads(*ready.task); });
}

}  // namespace

SimulatedCluster::SimulatedCluster(const ClusterOptions& options,
                                   std::vector<SimulatedMatrix> matrices)
    : options_(options),
      matrices_(std::move(matrices)),
      random_(options.seed),
      reference_(matrices_) {
  for (std::int32_t n = 0; n < options_.nodes; ++n) {
    Node& node = *nodes_.emplace_back(std::make_unique<Node>());
    node.id = NodeId{n};
    node.protocol =
        std::make_unique<protocol::Protocol>(protocol::Protocol::Options{node.id, options_.places});
    for (std::size_t m = 0; m < matrices_.size(); ++m) {
      protocol::MatrixOptions matrix;
      matrix.tile_count = static_cast<std::int32_t>(matrices_[m].homes.size());
      matrix.temporary = matrices_[m].temporary;
      matrix.spare_count = matrices_[m].spare_count;
      matrix.classes = matrices_[m].classes;
      matrix.class_count = matrices_[m].class_count();
      for (std::int32_t p = 0; p < options_.places && !matrix.temporary; ++p) {
        matrix.pools.push_back(static_cast<std::int32_t>(m) * options_.places + p);
      }
      const auto count = static_cast<std::size_t>(matrix.tile_count);
      const protocol::MatrixId id = node.protocol->add_matrix(std::move(matrix));
      for (std::size_t t = 0; t < count && !matrices_[m].temporary; ++t) {
        const Location home = matrices_[m].homes[t];
        const TileId tile{id, static_cast<std::int32_t>(t)};
        if (home.node != node.id) continue;
        node.blocks.content(node.protocol->current_block(tile, home.place)) =
            Reference::initial(tile);
      }
    }
  }
  draw_speeds();
  fault_countdown_ = static_cast<std::int32_t>(random_() % 12);
}

SimulatedCluster::~SimulatedCluster() {
  if (outcome_.ok) return;
  for (const auto& node : nodes_) node->protocol->abandon();  // after a failure counts are off
}

/// Most seeds treat all events alike; the others starve kinds of events or nodes until hardly
/// anything else can happen, or rush them.
void SimulatedCluster::draw_speeds() {
  constexpr std::array<double, 4> choices{1, 1, 30, 1e-6};
  const bool by_kind = random_() % 2 == 0;
  const bool by_node = random_() % 3 == 0;
  std::array<double, kind_count> kinds{};
  for (double& speed : kinds) speed = by_kind ? choices[random_() % 4] : 1;
  for (auto& node : nodes_) {
    const double speed = by_node ? choices[random_() % 4] : 1;
    for (std::size_t k = 0; k < kind_count; ++k) node->speeds[k] = speed * kinds[k];
  }
}

void SimulatedCluster::fail(Check check, std::string text) {
  if (!outcome_.ok) return;
  outcome_.ok = false;
  outcome_.check = check;
  outcome_.failure = std::move(text);
}

/// True when the fault of these options is to be injected here and now.
bool SimulatedCluster::inject(Fault fault) {
  if (options_.fault != fault || outcome_.fault_injected || fault_countdown_-- > 0) return false;
  outcome_.fault_injected = true;
  return true;
}

// ---- jobs and generation ---------------------------------------------------------------------

void SimulatedCluster::submit(Program program) {
  program.number_versions();
  WalkedProgram walked;
  for (const auto& node : nodes_) {
    walked.walks.push_back(walk_of(program, options_.walk, node->id));
  }
  walked.program = std::move(program);
  submit(std::move(walked));
}

void SimulatedCluster::submit(WalkedProgram walked) {
  HEDDLE_CHECK(walked.walks.size() == nodes_.size(), "{} walks", walked.walks.size());
  JobState& job = *jobs_.emplace_back(std::make_unique<JobState>());
  job.program = std::move(walked.program);
  job.walks = std::move(walked.walks);
  job.executions.resize(job.program.statements.size());
  for (const Statement& s : job.program.statements) {
    for (const Access& a : s.accesses) {
      (a.mode == AccessMode::read ? job.read : job.written).insert(a.tile.matrix);
    }
  }
  reference_.run(job.program);
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    protocol::PoolPlan plan(nodes_[n]->id, options_.places);
    for (std::size_t m = 0; m < matrices_.size(); ++m) {
      if (matrices_[m].temporary) {
        plan.set_temporary(protocol::MatrixId{static_cast<std::int32_t>(m)});
      }
    }
    for (const Step& step : job.walks[n]) {
      switch (step.kind) {
        case Step::Kind::append:
          plan.append(step.accesses);
          break;
        case Step::Kind::announce:
          plan.append_alien_reader(step.accesses.front(), step.reader);
          break;
        case Step::Kind::release:
          plan.release(step.accesses.front());
          break;
      }
    }
    job.minimum.push_back(plan.minimum());
  }
}

const std::vector<std::int32_t>& SimulatedCluster::planned_minimum(NodeId node) const {
  return jobs_.back()->minimum[static_cast<std::size_t>(node.value())];
}

const NodeWalk& SimulatedCluster::walk_of_node(const Node& node, std::size_t j) const {
  return jobs_[j]->walks[static_cast<std::size_t>(node.id.value())];
}

bool SimulatedCluster::may_generate(const Node& node, std::size_t j) const {
  if (j >= node.jobs.size()) return j == node.jobs.size();
  if (node.jobs[j] == nullptr) return false;
  const protocol::Job& handle = *node.jobs[j];
  if (handle.generation_ended || handle.window_is_full()) return false;
  for (std::size_t before = 0; before < j; ++before) {
    if (node.jobs[before] == nullptr || node.jobs[before]->generation_ended) continue;
    if (jobs_[j]->conflicts_with(*jobs_[before])) return false;
  }
  return true;
}

std::size_t SimulatedCluster::nth_to_generate(const Node& node, std::size_t n) const {
  for (std::size_t j = 0;; ++j) {
    if (may_generate(node, j) && n-- == 0) return j;
  }
}

void SimulatedCluster::generate(Node& node, std::size_t j) {
  if (j == node.jobs.size()) {
    begin(node, j);
  } else if (node.position[j] == walk_of_node(node, j).size()) {
    node.protocol->end_generation(*node.jobs[j], node.actions);
  } else {
    append(node, j);
  }
  collect(node);
}

void SimulatedCluster::begin(Node& node, std::size_t j) {
  protocol::JobOptions options;
  options.window = options_.window;
  const auto& planned = jobs_[j]->minimum[static_cast<std::size_t>(node.id.value())];
  for (std::int32_t p = 0; p < options_.places; ++p) {
    const std::int32_t minimum = planned[static_cast<std::size_t>(p)];
    const std::int32_t capacity = std::max(0, minimum + options_.extra_blocks);
    options.pools.push_back({job_pool_base + static_cast<std::int32_t>(j) * options_.places + p,
                             capacity, std::min(minimum, capacity)});
  }
  node.jobs.push_back(&node.protocol->begin_job(options));
  node.position.push_back(0);
}

void SimulatedCluster::append(Node& node, std::size_t j) {
  const Step& step = walk_of_node(node, j)[node.position[j]++];
  protocol::Job& handle = *node.jobs[j];
  switch (step.kind) {
    case Step::Kind::append: {
      protocol::Work work;
      work.parameters = {j, step.statement};
      ++outcome_.walked;
      node.protocol->append(handle, work, step.priority, step.accesses, node.actions);
      break;
    }
    case Step::Kind::announce:
      ++outcome_.walked;
      node.protocol->append_alien_reader(handle, step.accesses.front(), step.reader, step.priority,
                                         node.actions);
      break;
    case Step::Kind::release:
      node.protocol->release(handle, step.accesses.front(), node.actions);
      break;
  }
  observe_items(handle, step);
}

void SimulatedCluster::observe_items(const protocol::Job& job, const Step& step) {
  // A step may leave a message and a minor output for each tile that it accesses.
  const auto items_max = static_cast<std::int32_t>(2 * step.accesses.size());
  if (job.unfinished > options_.window - 1 + items_max) {
    fail(Check::window,
         fmt::format("{} items are unfinished in a window of {}", job.unfinished, options_.window));
  }
  if (!job.items.linked()) return;
  const auto& last = *static_cast<const protocol::Item*>(job.items.previous);
  if (last.item_kind == protocol::Item::Kind::sink) {
    outcome_.kinds_seen.insert(protocol::InstanceKind::sink_minor_output);
  } else if (last.item_kind == protocol::Item::Kind::send) {
    outcome_.kinds_seen.insert(protocol::InstanceKind::internode_alien_input);
  }
}

// ---- what the protocol wants done ------------------------------------------------------------

void SimulatedCluster::collect(Node& node) {
  protocol::Actions& a = node.actions;
  for (const BlockRef block : a.freed) node.blocks.freed(block);
  for (Task* task : a.ready) take_ready(node, *task);
  for (const CopyAction& copy : a.copies) {
    node.blocks.begin_read(copy.from, {"a copy of tile", copy.tile.index});
    node.blocks.begin_write(copy.to, {"a copy of tile", copy.tile.index});
    node.copies.push_back({copy, inject(Fault::copy_before_source)});
  }
  for (const GrantAction& grant : a.grants) take_grant(node, grant);
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
  const ReadyTask ready{&task, task.work.parameters[0], task.work.parameters[1]};
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
    if (writes) {
      node.blocks.begin_write(block, {"statement", statement});
    } else {
      node.blocks.begin_read(block, {"statement", statement});
      if (inject(Fault::block_freed_early)) node.blocks.freed(block);
    }
  });
  node.ready.push_back(ready);
  if (inject(Fault::task_runs_twice)) node.ready.push_back(ready);
}

void SimulatedCluster::take_grant(Node& node, GrantAction grant) {
  if (options_.fault == Fault::block_handed_out_twice) {
    const BlockRef other = node.blocks.written_block_in(grant.block.pool, grant.block);
    if (other.valid() && inject(Fault::block_handed_out_twice)) grant.block = other;
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

void SimulatedCluster::take_send(Node& node, const SendAction& send) {
  const MessageName name{node.id, send.to, send.job, send.tile, send.number};
  if (!outcome_.messages.insert(name).second ||
      (inject(Fault::send_repeated) && !outcome_.messages.insert(name).second)) {
    fail(Check::messages, fmt::format("version {} of tile {} travels to node {} twice",
                                      send.number.value(), send.tile.index, send.to.value()));
  }
  node.blocks.begin_read(send.block, {"a message with tile", send.tile.index});
  node.sends.push_back(send);
}

// ---- events ----------------------------------------------------------------------------------

void SimulatedCluster::start_task(Node& node, const ReadyTask& ready) {
  const auto [task_record, j, s] = ready;
  JobState& job = *jobs_[j];
  if (++job.executions[s] != 1) {
    fail(Check::executions, fmt::format("statement {} of job {} runs twice", s, j));
    return;
  }
  Task& task = *task_record;
  if (job.program.statements[s].accesses.front().home != Location{node.id, task.place}) {
    fail(Check::place, fmt::format("statement {} runs at the wrong place", s));
  }
  outcome_.tasks.emplace(node.id, j, s);
  std::vector<Content> seen;
  for (std::uint8_t i = 0; i < task.operand_count; ++i) {
    Operand& operand = task.operands[i];
    outcome_.kinds_seen.insert(operand.kind);
    if (operand.mode == AccessMode::write) {
      seen.push_back(0);
      continue;
    }
    const BlockRef from = operand.copy_from.valid() ? operand.copy_from : operand.block;
    seen.push_back(node.blocks.content(from));
    if (seen.back() != reference_.read_by(j, s, i) && !any_cancelled_) {
      fail(Check::reads, fmt::format("node {}: statement {} of job {} reads a wrong version of "
                                     "tile {}",
                                     node.id.value(), s, j, operand.tile.index));
    }
  }
  node.running.push_back({&task, std::move(seen)});
}

void SimulatedCluster::finish_task(Node& node, std::size_t index) {
  const Node::Running running = std::move(node.running[index]);
  node.running.erase(node.running.begin() + static_cast<std::ptrdiff_t>(index));
  Task& task = *running.task;
  const std::size_t j = task.work.parameters[0];
  const std::size_t s = task.work.parameters[1];
  for (std::uint8_t i = 0; i < task.operand_count && !running.seen.empty(); ++i) {
    const Operand& operand = task.operands[i];
    Content& content = node.blocks.content(operand.block);
    if (operand.mode != AccessMode::read) {
      content = reference_.left_by(j, s, i);
      const BlockRef old = operand.copy_from;
      // Looked at for this fault alone: after others, tasks that ended may be among the ready ones.
      if (options_.fault == Fault::old_version_overwritten && old.valid() &&
          is_read_by_a_task(node, old) && inject(Fault::old_version_overwritten)) {
        node.blocks.content(old) = content;
      }
    } else if (content != running.seen[i]) {
      fail(Check::reads, fmt::format("node {}: tile {} was overwritten while statement {} read it",
                                     node.id.value(), operand.tile.index, s));
    }
  }
  for_blocks(task, [&](BlockRef block, bool writes) {
    writes ? node.blocks.end_write(block) : node.blocks.end_read(block);
  });
  node.protocol->task_finished(task, node.actions);
  collect(node);
}

void SimulatedCluster::finish_copy(Node& node, const CopyAction& copy, bool too_early) {
  const Content content = too_early ? poisoned : node.blocks.content(copy.from);
  const auto job = static_cast<std::size_t>(copy.job.value());
  if (content != reference_.version(job, copy.tile, copy.number) && !any_cancelled_) {
    fail(Check::reads, fmt::format("node {}: a copy of tile {} is not version {}", node.id.value(),
                                   copy.tile.index, copy.number.value()));
  }
  node.blocks.content(copy.to) = content;
  node.blocks.end_read(copy.from);
  node.blocks.end_write(copy.to);
  ++outcome_.copies;
  if (inject(Fault::copy_report_lost)) return;
  node.protocol->copy_finished(copy, node.actions);
  collect(node);
}

void SimulatedCluster::post_payload(Node& node, const SendAction& send) {
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
  node.sent.push_back(send);
}

void SimulatedCluster::deliver(Node& node, const Event& event) {
  if (event.kind == Event::Kind::grant) {
    const GrantAction& g = event.grant;
    node.protocol->grant_arrived(g.job, g.tile, g.number, event.from, event.tag, node.actions);
    return collect(node);
  }
  Node::Landing& landing = node.landings[event.tag];
  const GrantAction& g = landing.grant;
  if (std::exchange(landing.delivered, true)) {
    return fail(Check::messages, fmt::format("node {}: tile {} version {} arrives twice",
                                             node.id.value(), g.tile.index, g.number.value()));
  }
  const auto job = static_cast<std::size_t>(g.job.value());
  if (event.data != reference_.version(job, g.tile, g.number) && !any_cancelled_) {
    fail(Check::reads, fmt::format("node {}: what arrived is not tile {} version {}",
                                   node.id.value(), g.tile.index, g.number.value()));
  }
  if (!event.empty) node.blocks.content(g.block) = event.data;
  node.blocks.end_write(g.block);
  node.protocol->data_arrived(*g.record, event.empty, node.actions);
  collect(node);
}

// ---- scheduler -------------------------------------------------------------------------------

std::size_t SimulatedCluster::possible(const Node& node, Kind kind) const {
  switch (kind) {
    case Kind::generate: {
      std::size_t count = 0;
      for (std::size_t j = 0; j < jobs_.size(); ++j) count += may_generate(node, j) ? 1U : 0U;
      return count;
    }
    case Kind::start:
      return node.ready.size();
    case Kind::finish:
      return node.running.size();
    case Kind::copy:
      return node.copies.size();
    case Kind::send:
      return node.sends.size();
    case Kind::sent:
      return node.sent.size();
    case Kind::receive:
      return node.inbox.size();
    case Kind::forget:
      return node.drained.size();
  }
  return 0;
}

void SimulatedCluster::happen(Node& node, Kind kind, std::size_t index) {
  const auto take = [&](auto& list) {
    const auto taken = list[index];
    list[index] = list.back();
    list.pop_back();
    return taken;
  };
  switch (kind) {
    case Kind::generate:
      return generate(node, nth_to_generate(node, index));
    case Kind::start:
      if (inject(Fault::task_does_not_run)) {
        node.running.push_back({take(node.ready).task, {}});
        return;
      }
      if (nodes_.size() > 1 && inject(Fault::task_runs_elsewhere)) {
        const auto other = static_cast<std::size_t>(node.id.value() + 1) % nodes_.size();
        return start_task(*nodes_[other], take(node.ready));
      }
      return start_task(node, take(node.ready));
    case Kind::finish:
      return finish_task(node, index);
    case Kind::copy: {
      const Node::Copying copy = take(node.copies);
      return finish_copy(node, copy.action, copy.too_early);
    }
    case Kind::send:
      return post_payload(node, take(node.sends));
    case Kind::sent: {
      const SendAction send = take(node.sent);
      node.blocks.end_read(send.block);
      node.protocol->send_finished(*send.record, node.actions);
      return collect(node);
    }
    case Kind::receive:
      return deliver(node, take(node.inbox));
    case Kind::forget: {
      const std::size_t j = take(node.drained);
      node.protocol->forget(*std::exchange(node.jobs[j], nullptr));
      return;
    }
  }
}

/// One event, chosen at random among all that could happen now. False if there is none.
bool SimulatedCluster::step() {
  std::array<double, kind_count> weights{};
  double total = 0;
  for (const auto& node : nodes_) {
    for (std::size_t k = 0; k < kind_count; ++k) {
      const double weight =
          node->speeds[k] * static_cast<double>(possible(*node, static_cast<Kind>(k)));
      weights[k] += weight;
      total += weight;
    }
  }
  if (total <= 0) return false;
  ++outcome_.steps;
  double left = std::uniform_real_distribution<>(0, total)(random_);
  Node* chosen_node = nullptr;
  Kind chosen_kind = Kind::generate;
  for (const auto& node : nodes_) {
    for (std::size_t k = 0; k < kind_count; ++k) {
      const auto count = possible(*node, static_cast<Kind>(k));
      if (count == 0) continue;
      chosen_node = node.get();  // the last possible one, should rounding use up nothing
      chosen_kind = static_cast<Kind>(k);
      left -= node->speeds[k] * static_cast<double>(count);
      if (left < 0) break;
    }
    if (left < 0) break;
  }
  happen(*chosen_node, chosen_kind, random_() % possible(*chosen_node, chosen_kind));
  return true;
}

void SimulatedCluster::maybe_cancel() {
  if (std::uniform_real_distribution<>(0, 1)(random_) >= options_.cancel_probability) return;
  Node& node = *nodes_[random_() % nodes_.size()];
  const std::size_t j = random_() % jobs_.size();
  if (j >= node.jobs.size() || node.jobs[j] == nullptr || node.jobs[j]->drained) return;
  node.protocol->cancel(*node.jobs[j]);
  any_cancelled_ = true;
}

Outcome SimulatedCluster::run() {
  while (outcome_.ok && step()) {
    if (options_.cancel_probability > 0) maybe_cancel();
  }
  if (outcome_.ok) check_end();
  return outcome_;
}

}  // namespace heddle::simulation
