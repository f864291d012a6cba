#include "apps/simulation/rehearsal_plan.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

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

/// Copies come so many tasks before they are needed, as a panel does.
constexpr std::int32_t lead = 64;
/// Operands begin at cache lines.
constexpr std::int64_t line_elements = 8;

class Planner final : private replay::WalkSink {
 public:
  Planner(const SimulatedFactorization& what, const Kernel& kernel, NodeId node,
          std::int64_t elements_max)
      : program_(what, clock_, false), kernel_(kernel), node_(node), elements_max_(elements_max) {}

  [[nodiscard]] RehearsalPlan plan(const BeginOrder& order) {
    const auto walk = program_.walk(node_, *this);
    while (has_room() && walk->advance()) {
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
    std::int32_t kind = 0;
    std::vector<Access> accesses;
  };
  /// A copy's content.
  using Content = std::pair<TileId, Version>;
  struct Uses {
    std::int32_t first = 0;
    std::int32_t last = 0;
    std::int64_t elements = 0;
  };

  void append(replay::TaskKindId id, std::int32_t /*priority*/,
              std::span<const Access> accesses) override {
    ++items_;
    const KernelCase what = program_.case_of(id);
    if (what.kernel != &kernel_ || accesses.front().home.place != host_place) return;
    tasks_.push_back({items_, kind_of(CaseKey::of(what)), {accesses.begin(), accesses.end()}});
  }
  void announce(const Access& /*access*/, NodeId /*reader*/, std::int32_t /*priority*/) override {
    ++items_;
  }
  void release(const Access& /*access*/) override {}
  [[nodiscard]] bool has_room() const override { return std::ssize(tasks_) < rehearsed_tasks_max; }

  [[nodiscard]] bool is_copied(const Access& access) const { return access.home.node != node_; }
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
    for (const std::int64_t item : order) ranks.emplace(item, ranks.size());
    const auto rank = [&](const Met& task) {
      const auto known = ranks.find(task.item);
      return known == ranks.end() ? ranks.size() : known->second;
    };
    std::ranges::stable_sort(tasks_, {}, rank);
  }

  void meet_tiles() {
    for (const Met& met : tasks_) {
      const auto number = static_cast<std::int32_t>(plan_.tasks.size());
      plan_.tasks.emplace_back().kind = met.kind;
      const CaseKey& kind = plan_.kinds[static_cast<std::size_t>(met.kind)];
      for (std::size_t i = 0; i < met.accesses.size(); ++i) {
        const Access& access = met.accesses[i];
        const std::int64_t elements = kind.operands.at(i).rows * kind.operands.at(i).columns;
        if (!is_copied(access)) {
          own_.try_emplace(access.tile, elements);
          continue;
        }
        const auto [known, is_new] = copied_.try_emplace(Content{access.tile, access.version},
                                                         Uses{number, number, elements});
        known->second.last = number;
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

  /// By where operands are, not by tiles: some lie upon each other.
  void find_conflicts() {
    constexpr std::int64_t cell = 512;  // elements
    struct Last {
      std::int32_t write = -1;
      std::int32_t use = -1;
    };
    std::vector<Last> cells(static_cast<std::size_t>(plan_.elements / cell + 1));
    for (std::size_t t = 0; t < plan_.tasks.size(); ++t) {
      RehearsalPlan::Task& task = plan_.tasks[t];
      const CaseKey& kind = plan_.kinds[static_cast<std::size_t>(task.kind)];
      const auto for_cells = [&](std::size_t operand, const auto& act) {
        const OperandShape& shape = kind.operands.at(operand);
        const std::int64_t from = task.at.at(operand);
        const bool writes = tasks_[t].accesses[operand].mode != protocol::AccessMode::read;
        for (std::int64_t c = from / cell; c * cell < from + shape.rows * shape.columns; ++c) {
          act(cells[static_cast<std::size_t>(c)], writes);
        }
      };
      for (std::size_t i = 0; i < kind.operand_count; ++i) {
        for_cells(i, [&](const Last& last, bool writes) {
          task.behind = std::max(task.behind, writes ? last.use : last.write);
        });
      }
      for (std::size_t i = 0; i < kind.operand_count; ++i) {
        for_cells(i, [&](Last& last, bool writes) {
          last.use = static_cast<std::int32_t>(t);
          if (writes) last.write = last.use;
        });
      }
    }
  }

  NoClock clock_;
  SimulatedProgram program_;
  const Kernel& kernel_;
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

RehearsalPlan plan_rehearsal(const SimulatedFactorization& what, const Kernel& kernel, NodeId node,
                             const BeginOrder& order, std::int64_t elements_max) {
  return Planner(what, kernel, node, elements_max).plan(order);
}

}  // namespace heddle
