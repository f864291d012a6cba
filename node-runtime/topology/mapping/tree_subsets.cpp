#include "node-runtime/topology/mapping/tree_subsets.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <limits>
#include <map>
#include <vector>

#include "base/assert.hpp"

namespace heddle {
namespace {

/// A set of slots, one bit for each.
using Slots = std::uint32_t;

constexpr double infinity = std::numeric_limits<double>::infinity();
/// Bytes of all tables together.
constexpr double table_bytes_max = 512.0 * 1024 * 1024;

/// How many slots a part of the tree gets.
struct Range {
  std::int32_t least = 0;
  std::int32_t most = 0;
  [[nodiscard]] bool has(std::int32_t count) const { return least <= count && count <= most; }
};

/// Costs of sets for one kind of vertex. `merged[k]`: the first k + 1 children together, without
/// what they send each other; the last one is the whole vertex.
struct Table {
  std::vector<Range> ranges;
  std::vector<std::vector<double>> merged;
};

double binomial(std::int32_t n, std::int32_t k) {
  double value = 1;
  for (std::int32_t i = 0; i < k; ++i) value = value * (n - i) / (i + 1);
  return value;
}

/// The next larger number with as many bits.
Slots next_with_as_many(Slots bits) {
  const Slots lowest = bits & (~bits + 1);
  const Slots ripple = bits + lowest;
  return ripple | (((bits ^ ripple) / lowest) >> 2U);
}

class SubsetSearch {
 public:
  SubsetSearch(const MappingProblem& problem, const CostTree& tree)
      : problem_(problem),
        tree_(tree),
        sets_(std::size_t{1} << static_cast<unsigned>(problem.used)) {}

  [[nodiscard]] double steps() const {
    double steps = 0;
    double tables = static_cast<double>(problem_.terms.size());
    std::map<std::int32_t, bool> seen;
    for (const CostTree::Vertex& vertex : tree_.vertices) {
      if (!seen.try_emplace(vertex.kind, true).second) continue;
      tables += static_cast<double>(std::max<std::size_t>(1, vertex.children.size()));
      std::int32_t leaves = 0;
      for (const std::int32_t child : vertex.children) {
        const Range own = range_of(at(child).leaves);
        leaves += at(child).leaves;
        const Range both = range_of(leaves);
        for (std::int32_t all = both.least; all <= both.most; ++all) {
          for (std::int32_t part = own.least; part <= std::min(all, own.most); ++part) {
            steps += binomial(problem_.used, all) * binomial(all, part);
          }
        }
      }
    }
    return tables * static_cast<double>(sets_ * sizeof(double)) > table_bytes_max ? infinity
                                                                                  : steps;
  }

  [[nodiscard]] Placement cheapest() {
    add_flows();
    for (const CostTree::Vertex& vertex : tree_.vertices) {
      if (tables_.contains(vertex.kind)) continue;
      tables_[vertex.kind] = vertex.children.empty() ? leaf_table(vertex.gpu) : inner_table(vertex);
    }
    placement_.assign(static_cast<std::size_t>(problem_.slots), -1);
    HEDDLE_CHECK(tables_[tree_.root().kind].merged.back()[sets_ - 1] < infinity,
                 "no placement fits");
    deal_out(tree_.root(), static_cast<Slots>(sets_ - 1));
    fill_empty();
    return placement_;
  }

 private:
  [[nodiscard]] const CostTree::Vertex& at(std::int32_t vertex) const {
    return tree_.vertices[static_cast<std::size_t>(vertex)];
  }
  [[nodiscard]] const Table& table(const CostTree::Vertex& vertex) const {
    return tables_.at(vertex.kind);
  }

  /// Slots of a part with so many leaves: as many as its GPUs must and can have, and all others
  /// too.
  [[nodiscard]] Range range_of(std::int32_t leaves) const {
    const std::int32_t others = problem_.gpus - leaves;
    const std::int32_t least = problem_.per_gpu - 1;
    return {std::max({0, leaves * least, problem_.used - others * problem_.per_gpu}),
            std::min({problem_.used, leaves * problem_.per_gpu, problem_.used - others * least})};
  }

  /// For each term and set what its slots send each other.
  void add_flows() {
    for (const MappingProblem::Term& term : problem_.terms) {
      std::vector<double> sums(sets_);
      for (std::size_t set = 1; set < sets_; ++set) {
        const auto i = std::countr_zero(set);
        const std::size_t rest = set & (set - 1);
        double sum = sums[rest];
        for (std::size_t left = rest; left != 0; left &= left - 1) {
          const auto j = std::countr_zero(left);
          sum += term.flow[problem_.of_slots(i, j)] + term.flow[problem_.of_slots(j, i)];
        }
        sums[set] = sum;
      }
      flows_.push_back(std::move(sums));
    }
  }

  /// What the slots of a set would cost at the vertex's distances.
  [[nodiscard]] double inner_cost(const CostTree::Vertex& vertex, Slots set) const {
    double cost = 0;
    for (std::size_t t = 0; t < flows_.size(); ++t) cost += vertex.distances[t] * flows_[t][set];
    return cost;
  }

  [[nodiscard]] bool may_share(Slots set) const {
    for (Slots left = set; left != 0; left &= left - 1) {
      const std::int32_t one = problem_.group[static_cast<std::size_t>(std::countr_zero(left))];
      if (one == MappingProblem::no_group) continue;
      for (Slots right = left & (left - 1); right != 0; right &= right - 1) {
        if (problem_.group[static_cast<std::size_t>(std::countr_zero(right))] == one) return false;
      }
    }
    return true;
  }

  /// Calls `visit` for each set with a number of slots in the range.
  template <class Visit>
  void for_sets(const Range& range, const Visit& visit) const {
    for (std::int32_t count = range.least; count <= range.most; ++count) {
      if (count == 0) {
        visit(Slots{0});
        continue;
      }
      for (Slots set = (Slots{1} << static_cast<unsigned>(count)) - 1; set < sets_;
           set = next_with_as_many(set)) {
        visit(set);
      }
    }
  }

  [[nodiscard]] Table leaf_table(std::int32_t gpu) const {
    Table table{{range_of(1)}, {std::vector<double>(sets_, infinity)}};
    for_sets(table.ranges[0], [&](Slots set) {
      if (!may_share(set)) return;
      double cost = 0;
      for (Slots left = set; left != 0; left &= left - 1) {
        cost += problem_.unary_at(std::countr_zero(left), gpu);
      }
      table.merged[0][set] = cost;
    });
    return table;
  }

  /// A child's cost less what its parent's distances count for the slots within it.
  [[nodiscard]] std::vector<double> reduced(const CostTree::Vertex& vertex,
                                            const CostTree::Vertex& child) const {
    std::vector<double> costs = table(child).merged.back();
    for_sets(range_of(child.leaves), [&](Slots set) { costs[set] -= inner_cost(vertex, set); });
    return costs;
  }

  [[nodiscard]] Table inner_table(const CostTree::Vertex& vertex) const {
    Table table;
    std::int32_t leaves = 0;
    std::vector<double> costs;
    for (std::size_t k = 0; k < vertex.children.size(); ++k) {
      const CostTree::Vertex& child = at(vertex.children[k]);
      if (k == 0 || child.kind != at(vertex.children[k - 1]).kind) costs = reduced(vertex, child);
      leaves += child.leaves;
      table.ranges.push_back(range_of(leaves));
      if (k == 0) {
        table.merged.push_back(costs);
        continue;
      }
      std::vector<double> merged(sets_, infinity);
      for_sets(table.ranges[k], [&](Slots set) {
        merged[set] = best_part(vertex, k, set, table.merged[k - 1], costs).cost;
      });
      table.merged.push_back(std::move(merged));
    }
    std::vector<double>& whole = table.merged.back();
    for_sets(table.ranges.back(), [&](Slots set) { whole[set] += inner_cost(vertex, set); });
    return table;
  }

  struct Part {
    Slots set = 0;
    double cost = infinity;
  };

  /// The slots of `set` that child k gets when it and those before it share them best.
  [[nodiscard]] Part best_part(const CostTree::Vertex& vertex, std::size_t k, Slots set,
                               const std::vector<double>& before,
                               const std::vector<double>& child) const {
    const Range range = range_of(at(vertex.children[k]).leaves);
    const std::int32_t kind = at(vertex.children[k]).kind;
    // If all are equal, the one with the first slot may be the last one.
    const bool takes_first = at(vertex.children[0]).kind == kind && set != 0;
    const Slots first = takes_first ? set & (~set + 1) : 0;
    const Slots rest = set & ~first;
    const std::int32_t taken = takes_first ? 1 : 0;
    std::vector<Slots>& bits = bits_;
    bits.clear();
    for (Slots left = rest; left != 0; left &= left - 1) bits.push_back(left & (~left + 1));
    const auto count = static_cast<std::int32_t>(bits.size());
    Part best;
    const auto look_at = [&](Slots part) {
      const double cost = before[set & ~part] + child[part];
      if (cost < best.cost) best = {part, cost};
    };
    for (std::int32_t size = std::max(range.least - taken, 0);
         size <= std::min(range.most - taken, count); ++size) {
      if (size == 0) {
        look_at(first);
        continue;
      }
      const Slots end = Slots{1} << static_cast<unsigned>(count);
      for (Slots chosen = (Slots{1} << static_cast<unsigned>(size)) - 1; chosen < end;
           chosen = next_with_as_many(chosen)) {
        Slots part = first;
        for (Slots left = chosen; left != 0; left &= left - 1) {
          part |= bits[static_cast<std::size_t>(std::countr_zero(left))];
        }
        look_at(part);
      }
    }
    return best;
  }

  void deal_out(const CostTree::Vertex& vertex, Slots set) {
    if (vertex.children.empty()) {
      for (Slots left = set; left != 0; left &= left - 1) {
        placement_[static_cast<std::size_t>(std::countr_zero(left))] = vertex.gpu;
      }
      return;
    }
    for (std::size_t k = vertex.children.size(); k-- > 0;) {
      const CostTree::Vertex& child = at(vertex.children[k]);
      Slots part = set;
      if (k > 0)
        part = best_part(vertex, k, set, table(vertex).merged[k - 1], reduced(vertex, child)).set;
      deal_out(child, part);
      set &= ~part;
    }
  }

  void fill_empty() {
    std::int32_t empty = problem_.used;
    for (std::int32_t gpu = 0; gpu < problem_.gpus; ++gpu) {
      const auto taken = static_cast<std::int32_t>(std::ranges::count(placement_, gpu));
      for (std::int32_t k = taken; k < problem_.per_gpu; ++k) {
        placement_[static_cast<std::size_t>(empty++)] = gpu;
      }
    }
  }

  const MappingProblem& problem_;
  const CostTree& tree_;
  std::size_t sets_;
  std::vector<std::vector<double>> flows_;
  std::map<std::int32_t, Table> tables_;  ///< by kind
  Placement placement_;
  mutable std::vector<Slots> bits_;  ///< of the set that best_part() looks at
};

}  // namespace

std::optional<Placement> cheapest_on_tree(const MappingProblem& problem, const CostTree& tree,
                                          double steps_max) {
  if (problem.used > tree_slots_max) return std::nullopt;
  SubsetSearch search(problem, tree);
  if (search.steps() > steps_max) return std::nullopt;
  Placement placement = search.cheapest();
  HEDDLE_CHECK(problem.allows(placement), "{} slots on {} GPUs", problem.used, problem.gpus);
  return placement;
}

}  // namespace heddle
