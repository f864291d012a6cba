#include <algorithm>
#include <fmt/core.h>

#include "tests/support/simulated_cluster_state.hpp"

/// What must hold when nothing is left to do.
namespace heddle::simulation {

using protocol::BlockRef;
using protocol::TileId;

void SimulatedCluster::check_end() {
  check_progress();
  check_executions();
  check_leftovers();
  check_memories();
  if (!any_cancelled_) check_results();
}

void SimulatedCluster::check_progress() {
  for (const auto& node : nodes_) {
    const bool forgotten = std::all_of(node->jobs.begin(), node->jobs.end(),
                                       [](const protocol::Job* job) { return job == nullptr; });
    if (forgotten && node->jobs.size() == jobs_.size()) continue;
    std::string text = fmt::format("node {} does not advance", node->id.value());
    for (const auto& other : nodes_) {
      text += fmt::format("\n  node {}: {}", other->id.value(), other->protocol->blockage());
    }
    return fail(Check::progress, std::move(text));
  }
}

void SimulatedCluster::check_executions() {
  for (std::size_t j = 0; j < jobs_.size(); ++j) {
    for (std::size_t s = 0; s < jobs_[j]->executions.size(); ++s) {
      const bool is_task = jobs_[j]->program.statements[s].kind == Statement::Kind::task;
      if (jobs_[j]->executions[s] == (is_task ? 1 : 0)) continue;
      return fail(Check::executions, fmt::format("statement {} of job {} ran {} times", s, j,
                                                 jobs_[j]->executions[s]));
    }
  }
}

/// The blocks where the tiles of a node are now.
std::set<BlockRef> SimulatedCluster::current_blocks(const Node& node) const {
  std::set<BlockRef> blocks;
  for (std::size_t m = 0; m < matrices_.size(); ++m) {
    if (matrices_[m].temporary) continue;
    for (std::size_t t = 0; t < matrices_[m].homes.size(); ++t) {
      if (matrices_[m].homes[t].node != node.id) continue;
      const protocol::MatrixId matrix{static_cast<std::int32_t>(m)};
      blocks.insert(node.protocol->current_block({matrix, static_cast<std::int32_t>(t)},
                                                 matrices_[m].homes[t].place));
    }
  }
  return blocks;
}

void SimulatedCluster::check_leftovers() {
  for (const auto& node : nodes_) {
    const std::size_t left = node->protocol->records_in_use();
    if (left != 0) {
      fail(Check::leftovers, fmt::format("node {}: {} records are left", node->id.value(), left));
    }
    if (node->fine && node->fine->divided_count() != 0) {
      fail(Check::leftovers, fmt::format("node {}: {} tasks are still divided", node->id.value(),
                                         node->fine->divided_count()));
    }
    if (!node->blocks.idle()) {
      fail(Check::leftovers, fmt::format("node {}: a block is still in use", node->id.value()));
    }
    const BlockRef block = node->blocks.not_given_up(current_blocks(*node));
    if (block.valid()) {
      fail(Check::leftovers, fmt::format("node {}: block {} of pool {} was never freed",
                                         node->id.value(), block.index, block.pool));
    }
    outcome_.renamings += node->protocol->renamings();
  }
}

void SimulatedCluster::check_results() {
  for (const auto& node : nodes_) {
    for (std::size_t m = 0; m < matrices_.size(); ++m) {
      if (matrices_[m].temporary) continue;
      for (std::size_t t = 0; t < matrices_[m].homes.size(); ++t) {
        const Location home = matrices_[m].homes[t];
        if (home.node != node->id) continue;
        const TileId tile{protocol::MatrixId{static_cast<std::int32_t>(m)},
                          static_cast<std::int32_t>(t)};
        const BlockRef block = node->protocol->current_block(tile, home.place);
        if (node->blocks.content(block) == reference_.last(tile)) continue;
        return fail(Check::results,
                    fmt::format("tile {} of matrix {} ends with a wrong version", t, m));
      }
    }
  }
}

}  // namespace heddle::simulation
