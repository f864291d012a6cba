#include "node-runtime/topology/mapping/cost_tree.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

namespace heddle {
namespace {

constexpr double same_distance = 1e-9;

class TreeBuilder {
 public:
  explicit TreeBuilder(const MappingProblem& problem) : problem_(problem) {
    for (const MappingProblem::Term& term : problem.terms) {
      double greatest = 0;
      for (const double distance : term.distance) greatest = std::max(greatest, distance);
      scales_.push_back(greatest > 0 ? 1 / greatest : 0);
    }
  }

  [[nodiscard]] std::optional<CostTree> build() {
    std::vector<std::int32_t> all(static_cast<std::size_t>(problem_.gpus));
    std::iota(all.begin(), all.end(), 0);
    if (!problem_.is_symmetric() || add(all) < 0) return std::nullopt;
    return std::move(tree_);
  }

 private:
  /// All terms together. Of trees with the same splits the sum is a tree with all of them.
  [[nodiscard]] double distance(std::int32_t a, std::int32_t b) const {
    double sum = 0;
    for (std::size_t t = 0; t < scales_.size(); ++t) {
      sum += scales_[t] * problem_.terms[t].distance[problem_.of_gpus(a, b)];
    }
    return sum;
  }

  /// Adds the tree of these GPUs and gives its number, or -1 if there is none.
  std::int32_t add(const std::vector<std::int32_t>& gpus) {
    if (gpus.size() == 1) return add_leaf(gpus.front());
    double greatest = 0;
    for (const std::int32_t a : gpus) {
      for (const std::int32_t b : gpus) greatest = std::max(greatest, distance(a, b));
    }
    // GPUs are below one child if they are nearer than the farthest pair.
    std::vector<std::vector<std::int32_t>> parts;
    for (const std::int32_t gpu : gpus) {
      const auto part = std::ranges::find_if(parts, [&](const std::vector<std::int32_t>& one) {
        return distance(one.front(), gpu) < greatest * (1 - same_distance);
      });
      if (part == parts.end()) {
        parts.push_back({gpu});
      } else {
        part->push_back(gpu);
      }
    }
    CostTree::Vertex vertex;
    vertex.distances = distances(parts[0][0], parts.size() > 1 ? parts[1][0] : parts[0][0]);
    if (!are_alike(parts, vertex.distances)) return -1;
    // Where all GPUs are alike at no distance from each other, each is a part of its own.
    for (const std::vector<std::int32_t>& part : parts) {
      const std::int32_t child = part.size() < gpus.size() ? add(part) : -1;
      if (child < 0) return -1;
      vertex.children.push_back(child);
    }
    std::ranges::stable_sort(vertex.children, {},
                             [&](std::int32_t child) { return kind_of(child); });
    vertex.leaves = static_cast<std::int32_t>(gpus.size());
    std::vector<std::int32_t> kinds;
    for (const std::int32_t child : vertex.children) kinds.push_back(kind_of(child));
    const auto number = static_cast<std::int32_t>(inner_kinds_.size() + leaf_kinds_.size());
    vertex.kind = inner_kinds_.try_emplace({kinds, vertex.distances}, number).first->second;
    tree_.vertices.push_back(std::move(vertex));
    return static_cast<std::int32_t>(tree_.vertices.size() - 1);
  }

  std::int32_t add_leaf(std::int32_t gpu) {
    std::vector<double> costs;
    for (std::int32_t i = 0; i < problem_.used; ++i) costs.push_back(problem_.unary_at(i, gpu));
    CostTree::Vertex leaf;
    leaf.gpu = gpu;
    const auto number = static_cast<std::int32_t>(inner_kinds_.size() + leaf_kinds_.size());
    leaf.kind = leaf_kinds_.try_emplace(costs, number).first->second;
    tree_.vertices.push_back(std::move(leaf));
    return static_cast<std::int32_t>(tree_.vertices.size() - 1);
  }

  [[nodiscard]] std::int32_t kind_of(std::int32_t vertex) const {
    return tree_.vertices[static_cast<std::size_t>(vertex)].kind;
  }

  [[nodiscard]] std::vector<double> distances(std::int32_t a, std::int32_t b) const {
    std::vector<double> all;
    for (const MappingProblem::Term& term : problem_.terms) {
      all.push_back(term.distance[problem_.of_gpus(a, b)]);
    }
    return all;
  }

  /// Whether every pair of different parts has these distances.
  [[nodiscard]] bool are_alike(const std::vector<std::vector<std::int32_t>>& parts,
                               const std::vector<double>& expected) const {
    for (std::size_t p = 0; p < parts.size(); ++p) {
      for (std::size_t q = 0; q < p; ++q) {
        for (const std::int32_t a : parts[p]) {
          for (const std::int32_t b : parts[q]) {
            const std::vector<double> found = distances(a, b);
            for (std::size_t t = 0; t < found.size(); ++t) {
              if (std::abs(found[t] - expected[t]) >
                  same_distance * std::max(found[t], expected[t])) {
                return false;
              }
            }
          }
        }
      }
    }
    return true;
  }

  const MappingProblem& problem_;
  std::vector<double> scales_;
  CostTree tree_;
  std::map<std::pair<std::vector<std::int32_t>, std::vector<double>>, std::int32_t> inner_kinds_;
  std::map<std::vector<double>, std::int32_t> leaf_kinds_;
};

}  // namespace

std::optional<CostTree> cost_tree(const MappingProblem& problem) {
  return TreeBuilder(problem).build();
}

}  // namespace heddle
