#include "tests/support/simulated_cluster.hpp"

#include <algorithm>
#include <fmt/core.h>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "base/assert.hpp"
#include "base/error.hpp"
#include "tests/support/simulated_cluster_state.hpp"

namespace heddle::simulation {

using protocol::Access;
using protocol::AccessMode;
using protocol::BlockRef;
using protocol::TileId;

namespace {

bool touches(NodeId node, const Statement& statement) {
  return std::any_of(statement.accesses.begin(), statement.accesses.end(),
                     [&](const Access& a) { return a.home.node == node; });
}

bool only_reads_at(NodeId node, const Statement& statement) {
  return std::all_of(statement.accesses.begin(), statement.accesses.end(), [&](const Access& a) {
    return a.home.node != node || a.mode == AccessMode::read;
  });
}

/// The versions that a node publishes as the program begins: all that its tiles have and that are
/// read before they are written.
void publish_first(const Program& program, NodeId node, NodeWalk& steps) {
  std::set<TileId> seen;
  for (const Statement& statement : program.statements) {
    if (statement.kind != Statement::Kind::task) continue;
    for (const Access& a : statement.accesses) {
      if (a.home.node != node || !seen.insert(a.tile).second || a.mode == AccessMode::write)
        continue;
      steps.push_back({Step::Kind::publish, 0, {a}, {}, 0});
    }
  }
}

/// A program as a node walks it.
NodeWalk walk_of(const Program& program, Walk walk, NodeId node) {
  NodeWalk steps;
  if (walk == Walk::published) publish_first(program, node, steps);
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
    const bool reads_elsewhere = runs_on != node && only_reads_at(node, statement);
    if (walk == Walk::published && reads_elsewhere) continue;
    if (walk == Walk::announced && reads_elsewhere) {
      for (const Access& a : accesses) {
        if (a.home.node != node) continue;
        steps.push_back({Step::Kind::announce, s, {a}, runs_on, statement.priority});
      }
      continue;
    }
    steps.push_back({Step::Kind::append, s, std::move(accesses), {}, statement.priority});
    if (walk != Walk::published) continue;
    for (Access a : statement.accesses) {
      if (a.home.node != node || a.mode == AccessMode::read) continue;
      ++a.version;
      steps.push_back({Step::Kind::publish, 0, {a}, {}, 0});
    }
  }
  return steps;
}

/// The versions from elsewhere that a node's tasks read, each with the place of the first of them.
std::map<std::pair<TileId, Version>, PlaceId> first_readers_of(const Program& program,
                                                               const NodeWalk& walk, NodeId node) {
  std::map<std::pair<TileId, Version>, PlaceId> readers;
  for (const Step& step : walk) {
    if (step.kind != Step::Kind::append) continue;
    const Statement& statement = program.statements[step.statement];
    const Location runs_at = statement.accesses.front().home;
    if (runs_at.node != node) continue;
    for (const Access& a : statement.accesses) {
      if (a.home.node == node || a.mode == AccessMode::write) continue;
      readers.emplace(std::pair{a.tile, a.version}, runs_at.place);
    }
  }
  return readers;
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
    node.protocol = std::make_unique<protocol::Protocol>(
        protocol::Protocol::Options{node.id, options_.places, options_.seed % 2 == 0});
    for (std::size_t m = 0; m < matrices_.size(); ++m) {
      protocol::MatrixOptions matrix;
      matrix.tile_count = static_cast<std::int32_t>(matrices_[m].homes.size());
      matrix.temporary = matrices_[m].temporary;
      matrix.spare_count = matrices_[m].spare_count;
      matrix.classes = matrices_[m].class_table();
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
  if (options_.ways != Ways::announced) {
    walked.readers = readers_of(program, options_.seed, options_.walk == Walk::published);
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
  if (!walked.readers.empty()) {
    job.ways = std::make_shared<ReaderWays>(std::move(walked.readers), options_.ways,
                                            options_.nodes, options_.seed);
  }
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
        case Step::Kind::publish:  // what is sent takes no block
          break;
        case Step::Kind::release:
          plan.release(step.accesses.front());
          break;
      }
    }
    job.minimum.push_back(plan.minimum());
    job.first_readers.push_back(first_readers_of(job.program, job.walks[n], nodes_[n]->id));
  }
}

const std::vector<std::int32_t>& SimulatedCluster::planned_minimum(NodeId node) const {
  return jobs_.back()->minimum[static_cast<std::size_t>(node.value())];
}

PlaceId SimulatedCluster::place_of(BlockRef block) const {
  return PlaceId{own_pool(block) % options_.places};
}

Location SimulatedCluster::home_of(TileId tile) const {
  return matrices_[static_cast<std::size_t>(tile.matrix.value())]
      .homes[static_cast<std::size_t>(tile.index)];
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
  if (const auto ways = jobs_[j]->ways; ways != nullptr) {
    options.readers = [ways](TileId tile, Version number) { return ways->readers(tile, number); };
    options.route = [ways, me = node.id](std::span<const protocol::Reader> readers, NodeId home) {
      return ways->route(readers, home, me);
    };
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
    case Step::Kind::publish:
      publish(node, j, step.accesses.front());
      break;
    case Step::Kind::release:
      node.protocol->release(handle, step.accesses.front(), node.actions);
      break;
  }
  observe_items(handle, step);
}

/// A version that is read elsewhere.
void SimulatedCluster::publish(Node& node, std::size_t j, const Access& access) {
  if (jobs_[j]->ways == nullptr) return;
  const auto readers = jobs_[j]->ways->readers(access.tile, access.version);
  if (readers.empty()) return;
  node.protocol->publish(*node.jobs[j], access, readers, node.actions);
}

void SimulatedCluster::observe_items(const protocol::Job& job, const Step& step) {
  // A step may leave a minor output for each tile that it accesses.
  const auto items_max = static_cast<std::int32_t>(step.accesses.size());
  if (job.unfinished > options_.window - 1 + items_max) {
    fail(Check::window,
         fmt::format("{} items are unfinished in a window of {}", job.unfinished, options_.window));
  }
  if (!job.items.linked()) return;
  const auto& last = *static_cast<const protocol::Item*>(job.items.previous);
  if (last.item_kind == protocol::Item::Kind::sink) {
    outcome_.kinds_seen.insert(protocol::Sink::kind);
  }
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
      return node.ready.size() + node.acquired.size();
    case Kind::finish:
      return node.running.size();
    case Kind::copy:
      return copies_to_begin(node);
    case Kind::send:
      return node.sends.size();
    case Kind::sent:
      return node.sent.size();
    case Kind::receive:
      return node.inbox.size();
    case Kind::forget:
      return node.drained.size();
    case Kind::start_fine: {
      if (!node.fine) return 0;
      const auto workers = static_cast<std::size_t>(options_.fine_workers);
      return std::min(static_cast<std::size_t>(node.fine->ready_count()),
                      workers - node.fine_running.size());
    }
    case Kind::finish_fine:
      return node.fine_running.size();
    case Kind::transfer: {
      std::size_t count = 0;
      for (const SimulatedMemory& memory : node.memories) count += memory.transfers();
      return count;
    }
    case Kind::copied:
      return node.copying.size();
    case Kind::land:
      return node.arrivals.size();
  }
  return 0;
}

void SimulatedCluster::happen(Node& node, Kind kind, std::size_t index) {
  const auto take = [&](auto& list) {
    auto taken = std::move(list[index]);
    list[index] = list.back();
    list.pop_back();
    return taken;
  };
  switch (kind) {
    case Kind::generate:
      return generate(node, nth_to_generate(node, index));
    case Kind::start:
      if (index >= node.ready.size()) {
        index -= node.ready.size();
        return start_task(node, take(node.acquired));
      }
      if (inject(Fault::task_does_not_run)) {
        node.running.push_back({take(node.ready), {}});
        return;
      }
      if (nodes_.size() > 1 && inject(Fault::task_runs_elsewhere)) {
        const auto other = static_cast<std::size_t>(node.id.value() + 1) % nodes_.size();
        return acquire_task(*nodes_[other], take(node.ready));
      }
      return acquire_task(node, take(node.ready));
    case Kind::finish:
      return finish_task(node, index);
    case Kind::copy:
      return begin_copy(node, take(node.copies));
    case Kind::send:
      return post_payload(node, take(node.sends));
    case Kind::sent:
      return finish_sending(node, index);
    case Kind::receive:
      return deliver(node, take(node.inbox));
    case Kind::forget: {
      const std::size_t j = take(node.drained);
      node.protocol->forget(*std::exchange(node.jobs[j], nullptr));
      return;
    }
    case Kind::start_fine:
      return start_fine_task(node);
    case Kind::finish_fine:
      return finish_fine_task(node, index);
    case Kind::transfer:
      return finish_transfer(node, index);
    case Kind::copied:
      return finish_copy(node, take(node.copying));
    case Kind::land:
      return land(node, index);
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
  if (outcome_.ok) serve_memories(*chosen_node);
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
  make_memories();
  try {
    while (outcome_.ok && step()) {
      if (options_.cancel_probability > 0) maybe_cancel();
    }
  } catch (const Error& refused) {
    fail(Check::progress, refused.what());  // by a device's memory
  }
  if (outcome_.ok) check_end();
  return outcome_;
}

}  // namespace heddle::simulation
