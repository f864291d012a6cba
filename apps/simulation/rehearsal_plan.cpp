#include "apps/simulation/rehearsal_plan.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kernels/kernels.hpp"

namespace heddle {
namespace {

using protocol::Access;
using protocol::TileId;

/// Where no time is asked for.
class NoClock final : public KernelClock {
 public:
  [[nodiscard]] double seconds(const KernelCase& /*what*/, Runner /*runner*/) override { return 1; }
  [[nodiscard]] std::string source() const override { return {}; }
};

/// Tasks that begin between a copy's arrival and its first use, as with a panel.
constexpr std::int32_t lead = 64;
/// Operands begin at cache lines.
constexpr std::int64_t line_elements = 8;

/// What can be run again and again on any numbers.
bool is_update(const Kernel& kernel) {
  const auto updates = {&kernel::gsmm, &kernel::syrk, &kernel::unmqr, &kernel::tsmqr,
                        &kernel::ttmqr};
  return std::ranges::find(updates, &kernel) != updates.end();
}

class Planner final : private replay::WalkSink {
 public:
  Planner(const SimulatedFactorization& what, NodeId node, std::int64_t elements_max)
      : program_(what, clock_, false), node_(node), elements_max_(elements_max) {}

  [[nodiscard]] RehearsalPlan plan(const BeginOrder& order) {
    const auto walk = program_.walk(node_, *this);
    while (has_room() && walk->advance()) {
    }
    if (own_elements() > elements_max_) {
      std::erase_if(tasks_, [](const Met& met) { return !is_update(*met.what.kernel); });
    }
    put_in(order);
    meet_tiles();
    place_own();
    place_copies();
    find_conflicts();
    return std::move(plan_);
  }

 private:
  struct Met {
    std::int64_t item = 0;
    CaseKey what;
    std::vector<Access> accesses;
    float idle_s = 0;
  };
  /// A copy's content.
  using Content = std::pair<TileId, Version>;
  struct Uses {
    std::int32_t first = 0;
    std::int32_t last = 0;
    std::int64_t elements = 0;
    RehearsalPlan::Ones ones{};
  };

  void append(replay::TaskKindId id, std::int32_t /*priority*/,
              std::span<const Access> accesses) override {
    ++items_;
    const bool is_whole = program_.kinds()[static_cast<std::size_t>(id.value())].fine == nullptr;
    if (accesses.front().home.place != host_place || !is_whole) return;
    tasks_.push_back(
        {items_, CaseKey::of(program_.case_of(id)), {accesses.begin(), accesses.end()}});
  }
  void release(const Access& /*access*/) override {}
  [[nodiscard]] bool has_room() const override { return std::ssize(tasks_) < rehearsed_tasks_max; }

  [[nodiscard]] bool is_copied(const Access& access) const { return access.home.node != node_; }
  [[nodiscard]] static std::int64_t elements_of(const CaseKey& kind, std::size_t operand) {
    return kind.operands.at(operand).rows * kind.operands.at(operand).columns;
  }
  [[nodiscard]] std::int64_t own_elements() const {
    std::set<TileId> met;
    std::int64_t sum = 0;
    for (const Met& task : tasks_) {
      for (std::size_t i = 0; i < task.accesses.size(); ++i) {
        const Access& access = task.accesses[i];
        if (!is_copied(access) && met.insert(access.tile).second) sum += elements_of(task.what, i);
      }
    }
    return sum;
  }
  [[nodiscard]] std::int32_t kind_of(const CaseKey& key) {
    const auto found = std::ranges::find(plan_.kinds, key);
    const auto at = static_cast<std::int32_t>(found - plan_.kinds.begin());
    if (found == plan_.kinds.end()) plan_.kinds.push_back(key);
    return at;
  }
  [[nodiscard]] std::int64_t take(std::int64_t elements) {
    const std::int64_t at = plan_.elements;
    plan_.elements += (elements + line_elements - 1) / line_elements * line_elements;
    return at;
  }

  void put_in(const BeginOrder& order) {
    std::unordered_map<std::int64_t, std::size_t> ranks;
    for (std::size_t i = 0; i < order.size(); ++i) ranks.emplace(order[i].item, i);
    const auto rank = [&](const Met& task) {
      const auto known = ranks.find(task.item);
      return known == ranks.end() ? order.size() : known->second;
    };
    for (Met& task : tasks_) {
      if (const std::size_t at = rank(task); at < order.size()) task.idle_s = order[at].idle_s;
    }
    std::ranges::stable_sort(tasks_, {}, rank);
  }

  void meet_tiles() {
    for (const Met& met : tasks_) {
      const auto number = static_cast<std::int32_t>(plan_.tasks.size());
      RehearsalPlan::Task& task = plan_.tasks.emplace_back();
      task.kind = kind_of(met.what);
      task.idle_s = met.idle_s;
      for (std::size_t i = 0; i < met.accesses.size(); ++i) {
        const Access& access = met.accesses[i];
        const std::int64_t elements = elements_of(met.what, i);
        if (!is_copied(access)) {
          if (own_.try_emplace(access.tile, elements).second) plan_.pass = number + 1;
          continue;
        }
        const auto [known, is_new] = copied_.try_emplace(Content{access.tile, access.version},
                                                         Uses{number, number, elements});
        known->second.last = number;
        if (known->second.ones.count == 0) known->second.ones = ones_of(met.what, i);
        if (is_new) in_order_.push_back(known->first);
      }
    }
  }

  /// In the order of the program's matrices, as in a node's memory.
  void place_own() {
    std::int64_t most = 0;
    for (const auto& [tile, elements] : own_) most = std::max(most, elements);
    std::int64_t end = 0;
    for (auto& [tile, elements] : own_) {
      const bool fits = plan_.elements + elements <= std::max(most, elements_max_);
      if (!fits) plan_.elements = 0;
      elements = take(elements);
      end = std::max(end, plan_.elements);
    }
    plan_.elements = end;
    for (std::size_t t = 0; t < plan_.tasks.size(); ++t) {
      for (std::size_t i = 0; i < tasks_[t].accesses.size(); ++i) {
        const Access& operand = tasks_[t].accesses[i];
        if (!is_copied(operand)) plan_.tasks[t].at.at(i) = own_.at(operand.tile);
      }
    }
  }

  void place_copies() {
    struct Block {
      std::int32_t last = 0;  ///< task that uses it
      std::int64_t at = 0;
      auto operator<=>(const Block&) const = default;
    };
    std::map<std::int64_t, std::set<Block>> blocks;  // by size, the one that is free first first
    std::map<Content, std::int64_t> places;
    for (const Content& content : in_order_) {
      const Uses& uses = copied_.at(content);
      std::set<Block>& alike = blocks[uses.elements];
      RehearsalPlan::Copy& copy = plan_.copies.emplace_back();
      copy.elements = uses.elements;
      copy.ones = uses.ones;
      if (!alike.empty() && alike.begin()->last < uses.first - lead) {
        copy.at = alike.begin()->at;
        copy.behind = alike.begin()->last;
        alike.erase(alike.begin());
      } else {
        copy.at = take(uses.elements);
      }
      alike.insert({uses.last, copy.at});
      places[content] = copy.at;
    }
    std::size_t there = 0;
    for (std::size_t t = 0; t < plan_.tasks.size(); ++t) {
      const auto is_of_later = [&](std::size_t copy) {
        return copied_.at(in_order_[copy]).first > static_cast<std::int32_t>(t);
      };
      while (there < in_order_.size() && !is_of_later(there)) ++there;
      plan_.tasks[t].copies = static_cast<std::int32_t>(there);
      for (std::size_t i = 0; i < tasks_[t].accesses.size(); ++i) {
        const Access& operand = tasks_[t].accesses[i];
        if (is_copied(operand)) {
          plan_.tasks[t].at.at(i) = places.at({operand.tile, operand.version});
        }
      }
    }
  }

  /// By where operands are, not by tiles: some lie upon each other. Between two of the places
  /// where operands begin or end, a task uses all elements or none.
  void find_conflicts() {
    const std::vector<std::int64_t> borders = borders_of_operands();
    struct Last {
      std::int32_t writer = -1;
      std::vector<std::int32_t> readers;  ///< since then
    };
    std::vector<Last> pieces(borders.size());
    const auto for_pieces = [&](std::size_t t, const auto& act) {
      for (std::size_t i = 0; i < tasks_[t].accesses.size(); ++i) {
        const std::int64_t from = plan_.tasks[t].at.at(i);
        const std::int64_t to = from + elements_of(tasks_[t].what, i);
        const bool writes = tasks_[t].accesses[i].mode != protocol::AccessMode::read;
        for (auto at = std::ranges::lower_bound(borders, from); at != borders.end() && *at < to;
             ++at) {
          act(pieces[static_cast<std::size_t>(at - borders.begin())], writes);
        }
      }
    };
    std::vector<std::int32_t> found;
    for (std::size_t t = 0; t < plan_.tasks.size(); ++t) {
      found.clear();
      for_pieces(t, [&](const Last& last, bool writes) {
        if (last.writer >= 0) found.push_back(last.writer);
        if (writes) found.insert(found.end(), last.readers.begin(), last.readers.end());
      });
      std::ranges::sort(found);
      const auto repeated = std::ranges::unique(found);
      found.erase(repeated.begin(), repeated.end());
      plan_.tasks[t].before_first = static_cast<std::int32_t>(plan_.before.size());
      plan_.before.insert(plan_.before.end(), found.begin(), found.end());
      plan_.tasks[t].before_last = static_cast<std::int32_t>(plan_.before.size());
      for_pieces(t, [&](Last& last, bool writes) {
        const auto number = static_cast<std::int32_t>(t);
        if (writes) {
          last.writer = number;
          last.readers.clear();
        } else if (last.writer != number) {
          last.readers.push_back(number);
        }
      });
    }
  }
  [[nodiscard]] std::vector<std::int64_t> borders_of_operands() const {
    std::set<std::int64_t> borders;
    for (std::size_t t = 0; t < tasks_.size(); ++t) {
      for (std::size_t i = 0; i < tasks_[t].accesses.size(); ++i) {
        const std::int64_t from = plan_.tasks[t].at.at(i);
        borders.insert({from, from + elements_of(tasks_[t].what, i)});
      }
    }
    return {borders.begin(), borders.end()};
  }

  NoClock clock_;
  SimulatedProgram program_;
  NodeId node_;
  std::int64_t elements_max_;
  RehearsalPlan plan_;
  std::int64_t items_ = 0;  ///< of the walk, so far
  std::vector<Met> tasks_;
  std::map<TileId, std::int64_t> own_;  ///< elements, then where the first one is
  std::map<Content, Uses> copied_;
  std::vector<Content> in_order_;  ///< of their first uses
};

}  // namespace

std::vector<BeginOrder> begin_orders(const replay::RunTrace& run, std::int32_t job) {
  std::vector<const replay::Task*> tasks;
  for (const replay::Task& task : run.tasks) {
    if (task.job == job) tasks.push_back(&task);
  }
  std::ranges::stable_sort(tasks, {}, [](const auto* task) { return task->time.start_ns; });
  std::vector<BeginOrder> orders(static_cast<std::size_t>(run.node_count));
  std::vector<std::int64_t> ends(run.threads.size(), 0);
  for (const replay::Task* task : tasks) {
    const NodeId node = run.at(task->thread).node;
    std::int64_t& end = ends[static_cast<std::size_t>(task->thread.value())];
    if (end == 0) end = tasks.front()->time.start_ns;
    const double idle_s = static_cast<double>(task->time.start_ns - end) * 1e-9;
    orders[static_cast<std::size_t>(node.value())].push_back(
        {static_cast<std::int64_t>(task->order),
         static_cast<float>(std::clamp(idle_s, 0.0, rehearsed_idle_max_s))});
    end = task->time.end_ns;
  }
  return orders;
}

RehearsalPlan::Ones ones_of(const CaseKey& kind, std::size_t operand) {
  const bool factors = kind.kernel == &kernel::potrf && operand == 0;
  const bool divides = kind.kernel == &kernel::trsm && operand == 1;
  if (!factors && !divides) return {};
  const auto offset = kind.parameters.as<kernel::PieceParameters>().offset;
  const OperandShape& shape = kind.operands.at(operand);
  return {offset, shape.rows + 1, shape.columns};
}

RehearsalPlan plan_rehearsal(const SimulatedFactorization& what, NodeId node,
                             const BeginOrder& order, std::int64_t elements_max) {
  return Planner(what, node, elements_max).plan(order);
}

}  // namespace heddle
