#include "tests/support/simulated_cluster.hpp"

#include <algorithm>
#include <deque>
#include <fmt/format.h>
#include <numeric>
#include <utility>

#include "base/assert.hpp"

namespace heddle::simulation {

using protocol::Access;
using protocol::AccessMode;
using protocol::BlockRef;
using protocol::CopyAction;
using protocol::GrantAction;
using protocol::InstanceKind;
using protocol::Operand;
using protocol::SendAction;
using protocol::Task;

namespace {

constexpr std::int32_t job_pool_base = 1000;  // pools of jobs, apart from those of matrices

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t h = a * 0x9E3779B97F4A7C15ULL ^ (b + 0x165667B19E3779F9ULL);
  h ^= h >> 29;
  h *= 0xBF58476D1CE4E5B9ULL;
  return h ^ (h >> 32);
}

std::uint64_t initial_content(std::int32_t matrix, std::int32_t tile) {
  return mix(static_cast<std::uint64_t>(matrix) + 77, static_cast<std::uint64_t>(tile));
}

}  // namespace

struct SimulatedCluster::JobState {
  Program program;
  std::size_t index = 0;
  /// What statement s reads through access a, and leaves there, in the sequential program.
  std::vector<std::vector<Content>> expected_in;
  std::vector<std::vector<Content>> expected_out;
  std::vector<std::int32_t> executions;
  std::set<std::int32_t> matrices;
};

/// Something on its way from one node to another.
struct SimulatedCluster::Event {
  enum class Kind : std::uint8_t { grant, payload };
  Kind kind = Kind::grant;
  std::int32_t from = 0;
  GrantAction grant;
  std::uint32_t tag = 0;
  Content data = 0;
  bool empty = false;
};

struct SimulatedCluster::Node {
  std::int32_t id = 0;
  std::unique_ptr<protocol::Protocol> protocol;
  protocol::Actions actions;
  std::vector<protocol::Job*> jobs;
  std::vector<std::size_t> position;  ///< next statement of each job
  std::vector<Task*> ready;
  std::vector<std::pair<Task*, std::vector<Content>>> running;
  std::vector<CopyAction> copies;
  std::vector<SendAction> sends;
  std::vector<protocol::Send*> sent;  ///< delivered, completion not yet reported
  std::vector<Event> inbox;
  std::vector<GrantAction> landings;  ///< by tag
  std::map<BlockRef, Content> blocks;
};

void Program::number_versions() {
  std::map<protocol::TileId, std::int32_t> writes;
  for (Statement& statement : statements) {
    for (Access& access : statement.accesses) access.version = Version{writes[access.tile]};
    if (statement.kind != Statement::Kind::task) continue;
    for (const Access& access : statement.accesses) {
      if (access.mode != AccessMode::read) ++writes[access.tile];
    }
  }
}

SimulatedCluster::SimulatedCluster(const ClusterOptions& options,
                                   std::vector<SimulatedMatrix> matrices)
    : options_(options), matrices_(std::move(matrices)), random_(options.seed) {
  for (std::int32_t n = 0; n < options_.nodes; ++n) {
    auto node = std::make_unique<Node>();
    node->id = n;
    node->protocol = std::make_unique<protocol::Protocol>(
        protocol::Protocol::Options{NodeId{n}, options_.places});
    for (std::size_t m = 0; m < matrices_.size(); ++m) {
      protocol::MatrixOptions matrix;
      matrix.tile_count = static_cast<std::int32_t>(matrices_[m].homes.size());
      matrix.temporary = matrices_[m].temporary;
      matrix.spare_count = matrices_[m].spare_count;
      for (std::int32_t p = 0; p < options_.places && !matrix.temporary; ++p) {
        matrix.pools.push_back(static_cast<std::int32_t>(m) * options_.places + p);
      }
      node->protocol->add_matrix(std::move(matrix));
    }
    nodes_.push_back(std::move(node));
  }
  for (std::size_t m = 0; m < matrices_.size(); ++m) {
    if (matrices_[m].temporary) continue;
    for (std::size_t t = 0; t < matrices_[m].homes.size(); ++t) {
      const Location home = matrices_[m].homes[t];
      const auto tile = static_cast<std::int32_t>(t);
      const auto matrix = static_cast<std::int32_t>(m);
      const Content value = initial_content(matrix, tile);
      reference_[{matrix, tile}] = value;
      Node& node = *nodes_[static_cast<std::size_t>(home.node.value())];
      node.blocks[{matrix * options_.places + home.place.value(), tile}] = value;
    }
  }
}

SimulatedCluster::~SimulatedCluster() {
  if (outcome_.ok) return;
  for (const auto& node : nodes_) node->protocol->abandon();  // after a failure counts are off
}

void SimulatedCluster::fail(std::string text) {
  if (!outcome_.ok) return;
  outcome_.ok = false;
  outcome_.failure = std::move(text);
}

SimulatedCluster::Content& SimulatedCluster::content(Node& node, BlockRef block) {
  const auto [found, added] = node.blocks.try_emplace(block, poisoned);
  return found->second;
}

/// The reference: the statements one after the other on one memory.
void SimulatedCluster::run_sequentially(JobState& job) {
  for (std::size_t s = 0; s < job.program.statements.size(); ++s) {
    const Statement& statement = job.program.statements[s];
    std::vector<Content> in;
    std::vector<Content> out;
    if (statement.kind == Statement::Kind::task) {
      Content sum = mix(job.index, s);
      for (const Access& a : statement.accesses) {
        const Content value =
            a.mode == AccessMode::write ? 0 : reference_[{a.tile.matrix.value(), a.tile.index}];
        in.push_back(value);
        sum = mix(sum, value);
      }
      for (std::size_t i = 0; i < statement.accesses.size(); ++i) {
        const Access& a = statement.accesses[i];
        out.push_back(a.mode == AccessMode::read ? 0 : mix(sum, i));
        if (a.mode != AccessMode::read) {
          reference_[{a.tile.matrix.value(), a.tile.index}] = out.back();
        }
      }
    }
    job.expected_in.push_back(std::move(in));
    job.expected_out.push_back(std::move(out));
  }
}

void SimulatedCluster::submit(Program program) {
  auto job = std::make_unique<JobState>();
  job->program = std::move(program);
  job->program.number_versions();
  job->index = jobs_.size();
  job->executions.resize(job->program.statements.size());
  for (const Statement& s : job->program.statements) {
    for (const Access& a : s.accesses) job->matrices.insert(a.tile.matrix.value());
  }
  run_sequentially(*job);
  for (auto& node : nodes_) {
    protocol::PoolPlan plan(NodeId{node->id}, options_.places);
    for (std::size_t m = 0; m < matrices_.size(); ++m) {
      if (matrices_[m].temporary) {
        plan.set_temporary(protocol::MatrixId{static_cast<std::int32_t>(m)});
      }
    }
    for (const Statement& s : job->program.statements) {
      std::vector<Access> accesses = s.accesses;
      if (!options_.pruned) {
        for (Access& a : accesses) a.version = protocol::count_here;
      }
      if (s.kind == Statement::Kind::release) {
        plan.release(accesses.front());
      } else if (!options_.pruned || touches(*node, s)) {
        plan.append(accesses);
      }
    }
    protocol::JobOptions handle;
    handle.window = options_.window;
    for (std::int32_t p = 0; p < options_.places; ++p) {
      const std::int32_t minimum = plan.minimum()[static_cast<std::size_t>(p)];
      handle.pools.push_back(
          {job_pool_base + static_cast<std::int32_t>(job->index) * options_.places + p,
           minimum + options_.extra_blocks, minimum});
    }
    node->jobs.push_back(&node->protocol->begin_job(handle));
    node->position.push_back(0);
  }
  jobs_.push_back(std::move(job));
}

bool SimulatedCluster::touches(const Node& node, const Statement& statement) const {
  return std::any_of(statement.accesses.begin(), statement.accesses.end(),
                     [&](const Access& a) { return a.home.node.value() == node.id; });
}

bool SimulatedCluster::may_generate(const Node& node, std::size_t j) const {
  const protocol::Job& handle = *node.jobs[j];
  if (handle.generation_ended || handle.window_is_full()) return false;
  for (std::size_t before = 0; before < j; ++before) {
    if (node.jobs[before] == nullptr || node.jobs[before]->generation_ended) continue;
    for (const std::int32_t m : jobs_[j]->matrices) {
      if (jobs_[before]->matrices.contains(m)) return false;
    }
  }
  return true;
}

void SimulatedCluster::walk(Node& node, JobState& job, const Statement& statement,
                            protocol::Job& handle) {
  std::vector<Access> accesses = statement.accesses;
  if (!options_.pruned) {
    for (Access& a : accesses) a.version = protocol::count_here;
  }
  if (statement.kind == Statement::Kind::release) {
    node.protocol->release(handle, accesses.front(), node.actions);
    return;
  }
  if (options_.pruned && !touches(node, statement)) return;
  protocol::Work work;
  work.parameters[0] = job.index;
  work.parameters[1] = static_cast<std::uint64_t>(&statement - job.program.statements.data());
  node.protocol->append(handle, work, statement.priority, accesses, node.actions);
}

void SimulatedCluster::generate(Node& node, std::size_t j) {
  JobState& job = *jobs_[j];
  protocol::Job& handle = *node.jobs[j];
  if (node.position[j] == job.program.statements.size()) {
    node.protocol->end_generation(handle, node.actions);
  } else {
    walk(node, job, job.program.statements[node.position[j]++], handle);
  }
  collect(node);
}

/// Takes over what the protocol wants done.
void SimulatedCluster::collect(Node& node) {
  protocol::Actions& a = node.actions;
  for (const BlockRef block : a.freed) content(node, block) = poisoned;
  node.ready.insert(node.ready.end(), a.ready.begin(), a.ready.end());
  node.copies.insert(node.copies.end(), a.copies.begin(), a.copies.end());
  for (const GrantAction& grant : a.grants) {
    const auto tag = static_cast<std::uint32_t>(node.landings.size());
    node.landings.push_back(grant);
    Event event;
    event.kind = Event::Kind::grant;
    event.from = node.id;
    event.grant = grant;
    event.tag = tag;
    nodes_[static_cast<std::size_t>(grant.from.value())]->inbox.push_back(event);
  }
  for (const SendAction& send : a.sends) {
    if (!sent_
             .insert({send.job.value(), send.tile.matrix.value(), send.tile.index,
                      send.number.value(), send.to.value()})
             .second) {
      fail(fmt::format("version {} of tile {} travels to node {} twice", send.number.value(),
                       send.tile.index, send.to.value()));
    }
    node.sends.push_back(send);
  }
  a.clear();
  HEDDLE_EXPENSIVE(node.protocol->is_valid());
}

void SimulatedCluster::start_task(Node& node, Task& task) {
  std::vector<Content> seen;
  const JobState& job = *jobs_[task.work.parameters[0]];
  const std::size_t s = task.work.parameters[1];
  for (std::uint8_t i = 0; i < task.operand_count; ++i) {
    Operand& operand = task.operands[i];
    outcome_.kinds_seen.insert(operand.kind);
    if (operand.mode == AccessMode::write) {
      seen.push_back(0);
      continue;
    }
    if (operand.copy_from.valid()) content(node, operand.block) = content(node, operand.copy_from);
    seen.push_back(content(node, operand.block));
    if (seen.back() != job.expected_in[s][i] && !any_cancelled_) {
      fail(fmt::format("node {}: statement {} of job {} reads a wrong version of tile {}", node.id,
                       s, job.index, operand.tile.index));
    }
  }
  const Statement& statement = job.program.statements[s];
  if (statement.accesses.front().home != Location{NodeId{node.id}, task.place}) {
    fail(fmt::format("statement {} runs at the wrong place", s));
  }
  node.running.emplace_back(&task, std::move(seen));
}

void SimulatedCluster::finish_task(Node& node, Task& task) {
  JobState& job = *jobs_[task.work.parameters[0]];
  const std::size_t s = task.work.parameters[1];
  const auto entry = std::find_if(node.running.begin(), node.running.end(),
                                  [&](const auto& r) { return r.first == &task; });
  for (std::uint8_t i = 0; i < task.operand_count; ++i) {
    Operand& operand = task.operands[i];
    if (operand.mode == AccessMode::read) {
      if (content(node, operand.block) != entry->second[i]) {
        fail(fmt::format("node {}: tile {} was overwritten while statement {} read it", node.id,
                         operand.tile.index, s));
      }
    } else {
      content(node, operand.block) = job.expected_out[s][i];
    }
  }
  node.running.erase(entry);
  ++job.executions[s];
  ++outcome_.tasks;
  node.protocol->task_finished(task, node.actions);
  collect(node);
}

void SimulatedCluster::finish_copy(Node& node, const CopyAction& copy) {
  content(node, copy.to) = content(node, copy.from);
  ++outcome_.copies;
  node.protocol->copy_finished(copy, node.actions);
  collect(node);
}

void SimulatedCluster::deliver(Node& node, Event& event) {
  if (event.kind == Event::Kind::grant) {
    const GrantAction& g = event.grant;
    node.protocol->grant_arrived(g.job, g.tile, g.number, NodeId{event.from}, event.tag,
                                 node.actions);
  } else {
    const GrantAction& landing = node.landings[event.tag];
    if (!event.empty) content(node, landing.block) = event.data;
    node.protocol->data_arrived(*landing.record, event.empty, node.actions);
  }
  collect(node);
}

/// One event, chosen at random among all that could happen now. False if there is none.
bool SimulatedCluster::step() {
  struct Choice {
    Node* node;
    int kind;
    std::size_t index;
  };
  std::vector<Choice> choices;
  for (auto& owner : nodes_) {
    Node& node = *owner;
    const auto add = [&](int kind, std::size_t count) {
      for (std::size_t i = 0; i < count; ++i) choices.push_back({&node, kind, i});
    };
    for (std::size_t j = 0; j < jobs_.size(); ++j) {
      if (may_generate(node, j)) choices.push_back({&node, 0, j});
    }
    add(1, node.ready.size());
    add(2, node.running.size());
    add(3, node.copies.size());
    add(4, node.sends.size());
    add(5, node.sent.size());
    add(6, node.inbox.size());
  }
  if (choices.empty()) return false;
  const Choice chosen = choices[random_() % choices.size()];
  Node& node = *chosen.node;
  const auto take = [&](auto& list) {
    auto value = list[chosen.index];
    list[chosen.index] = list.back();
    list.pop_back();
    return value;
  };
  switch (chosen.kind) {
    case 0:
      generate(node, chosen.index);
      break;
    case 1:
      start_task(node, *take(node.ready));
      break;
    case 2:
      finish_task(node, *node.running[chosen.index].first);
      break;
    case 3:
      finish_copy(node, take(node.copies));
      break;
    case 4: {
      const SendAction send = take(node.sends);
      Event event;
      event.kind = Event::Kind::payload;
      event.from = node.id;
      event.tag = send.tag;
      event.data = content(node, send.block);
      event.empty = send.empty;
      nodes_[static_cast<std::size_t>(send.to.value())]->inbox.push_back(event);
      node.sent.push_back(send.record);
      ++outcome_.messages;
      break;
    }
    case 5:
      node.protocol->send_finished(*take(node.sent), node.actions);
      collect(node);
      break;
    default: {
      Event event = take(node.inbox);
      deliver(node, event);
    }
  }
  return true;
}

Outcome SimulatedCluster::run() {
  while (outcome_.ok && step()) {
    if (options_.cancel_probability > 0 &&
        std::uniform_real_distribution<>(0, 1)(random_) < options_.cancel_probability) {
      const std::size_t j = random_() % jobs_.size();
      Node& node = *nodes_[random_() % nodes_.size()];
      if (!node.jobs[j]->drained) {
        node.protocol->cancel(*node.jobs[j]);
        any_cancelled_ = true;  // what later jobs read is undefined from here on
      }
    }
  }
  if (outcome_.ok) check_end();
  return outcome_;
}

void SimulatedCluster::check_end() {
  for (std::size_t j = 0; j < jobs_.size(); ++j) {
    for (auto& node : nodes_) {
      if (!node->jobs[j]->drained) {
        std::string text = fmt::format("node {}: job {} does not advance", node->id, j);
        for (auto& other : nodes_) {
          text += fmt::format("\n  node {}: {}", other->id, other->protocol->blockage().text);
        }
        return fail(std::move(text));
      }
    }
    for (std::size_t s = 0; s < jobs_[j]->executions.size(); ++s) {
      const bool is_task = jobs_[j]->program.statements[s].kind == Statement::Kind::task;
      if (jobs_[j]->executions[s] != (is_task ? 1 : 0)) {
        return fail(
            fmt::format("statement {} of job {} ran {} times", s, j, jobs_[j]->executions[s]));
      }
    }
  }
  for (auto& node : nodes_) {
    if (node->protocol->records_in_use() != 0) {
      return fail(
          fmt::format("node {}: {} records are left", node->id, node->protocol->records_in_use()));
    }
    outcome_.renamings += node->protocol->renamings();
    for (std::size_t m = 0; m < matrices_.size(); ++m) {
      for (std::size_t t = 0; t < matrices_[m].homes.size() && !matrices_[m].temporary; ++t) {
        const Location home = matrices_[m].homes[t];
        if (home.node.value() != node->id || any_cancelled_) continue;
        const auto matrix = static_cast<std::int32_t>(m);
        const auto tile = static_cast<std::int32_t>(t);
        const BlockRef block =
            node->protocol->current_block({protocol::MatrixId{matrix}, tile}, home.place);
        if (content(*node, block) != reference_[{matrix, tile}]) {
          return fail(fmt::format("tile {} of matrix {} ends with a wrong version", tile, matrix));
        }
      }
    }
  }
}

Program random_program(const RandomProgramOptions& options,
                       const std::vector<SimulatedMatrix>& matrices, std::mt19937_64& random) {
  const auto chance = [&](double p) { return std::uniform_real_distribution<>(0, 1)(random) < p; };
  std::vector<protocol::TileId> tiles;
  for (std::size_t m = 0; m < matrices.size(); ++m) {
    for (std::size_t t = 0; t < matrices[m].homes.size(); ++t) {
      tiles.push_back(
          {protocol::MatrixId{static_cast<std::int32_t>(m)}, static_cast<std::int32_t>(t)});
    }
  }
  const auto matrix_of = [&](protocol::TileId t) -> const SimulatedMatrix& {
    return matrices[static_cast<std::size_t>(t.matrix.value())];
  };
  std::set<protocol::TileId> alive;     // temporaries that have content
  std::set<protocol::TileId> released;  // versions that may not be read again
  Program program;
  for (std::int32_t n = 0; n < options.tasks; ++n) {
    Statement statement;
    std::shuffle(tiles.begin(), tiles.end(), random);
    const auto count =
        static_cast<std::size_t>(1 + random() % static_cast<std::uint64_t>(options.accesses_max));
    for (std::size_t i = 0; i < tiles.size() && statement.accesses.size() < count; ++i) {
      const protocol::TileId tile = tiles[i];
      const bool empty = matrix_of(tile).temporary && !alive.contains(tile);
      const bool unreadable = empty || released.contains(tile);
      Access access{tile, matrix_of(tile).homes[static_cast<std::size_t>(tile.index)],
                    AccessMode::read};
      if (statement.accesses.empty() || chance(options.minor_output)) {
        access.mode =
            unreadable || chance(options.write_only) ? AccessMode::write : AccessMode::read_write;
      } else if (unreadable) {
        continue;
      }
      if (access.mode != AccessMode::read) {
        alive.insert(tile);
        released.erase(tile);
      }
      statement.accesses.push_back(access);
    }
    statement.priority = static_cast<std::int32_t>(random() % 8);
    program.statements.push_back(statement);
    if (chance(options.release)) {
      const Access& a = statement.accesses[random() % statement.accesses.size()];
      Statement release;
      release.kind = Statement::Kind::release;
      release.accesses = {a};
      program.statements.push_back(release);
      released.insert(a.tile);
      alive.erase(a.tile);
    }
  }
  for (const protocol::TileId tile : alive) {
    if (!matrix_of(tile).temporary) continue;
    Statement release;
    release.kind = Statement::Kind::release;
    release.accesses = {{tile, matrix_of(tile).homes[static_cast<std::size_t>(tile.index)]}};
    program.statements.push_back(release);
  }
  return program;
}

}  // namespace heddle::simulation
