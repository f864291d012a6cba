#pragma once

#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "node-runtime/topology/mapping/mapping_problem.hpp"

namespace heddle::test {

/// A problem of `used` slots on `gpus` GPUs without any traffic; slots may share GPUs as they like.
inline MappingProblem empty_problem(std::int32_t used, std::int32_t gpus, std::size_t terms) {
  MappingProblem problem;
  problem.used = used;
  problem.gpus = gpus;
  problem.per_gpu = (used + gpus - 1) / gpus;
  problem.slots = gpus * problem.per_gpu;
  const auto slots = static_cast<std::size_t>(problem.slots);
  const auto count = static_cast<std::size_t>(gpus);
  problem.terms.assign(terms,
                       {std::vector<double>(slots * slots), std::vector<double>(count * count)});
  problem.unary.assign(slots * count, 0);
  problem.group.assign(slots, MappingProblem::no_group);
  for (std::int32_t i = used; problem.per_gpu > 1 && i < problem.slots; ++i) {
    problem.group[static_cast<std::size_t>(i)] = 1000;
  }
  return problem;
}

/// Flows between some pairs, whole numbers, so that many placements cost the same.
inline void add_random_flows(MappingProblem& problem, std::mt19937_64& random) {
  for (MappingProblem::Term& term : problem.terms) {
    for (std::int32_t i = 0; i < problem.used; ++i) {
      for (std::int32_t j = 0; j < problem.used; ++j) {
        if (i != j && below(random, 3) > 0) term.flow[problem.of_slots(i, j)] = below(random, 10);
      }
    }
  }
}

inline void add_random_unary(MappingProblem& problem, std::mt19937_64& random) {
  for (std::int32_t i = 0; i < problem.used; ++i) {
    for (std::int32_t a = 0; a < problem.gpus; ++a) {
      problem.unary[problem.of_gpus(i, a)] = below(random, 20);
    }
  }
}

/// Pairs of slots are two devices of one node.
inline void add_nodes_of_two(MappingProblem& problem) {
  for (std::int32_t i = 0; i + 1 < problem.used && problem.gpus > 1; i += 2) {
    problem.group[static_cast<std::size_t>(i)] = i;
    problem.group[static_cast<std::size_t>(i + 1)] = i;
  }
}

/// Distances of any kind, the same both ways or not.
inline void add_random_distances(MappingProblem& problem, std::mt19937_64& random,
                                 bool is_symmetric) {
  for (MappingProblem::Term& term : problem.terms) {
    for (std::int32_t a = 0; a < problem.gpus; ++a) {
      for (std::int32_t b = 0; b < a; ++b) {
        term.distance[problem.of_gpus(a, b)] = 1 + below(random, 5);
        term.distance[problem.of_gpus(b, a)] =
            is_symmetric ? term.distance[problem.of_gpus(a, b)] : 1 + below(random, 5);
      }
    }
  }
}

/// Distances of a random tree: GPUs are split again and again, nearer ones with smaller distances.
inline void add_tree_distances(MappingProblem& problem, std::mt19937_64& random,
                               const std::vector<std::int32_t>& gpus,
                               const std::vector<double>& greatest) {
  if (gpus.size() < 2) return;
  std::vector<std::vector<std::int32_t>> parts(2 + static_cast<std::size_t>(below(random, 2)));
  for (std::size_t k = 0; k < gpus.size(); ++k) {
    const std::size_t part =
        k < 2 ? k
              : static_cast<std::size_t>(below(random, static_cast<std::int32_t>(parts.size())));
    parts[part].push_back(gpus[k]);
  }
  std::vector<double> inner = greatest;
  for (double& distance : inner) distance *= 0.25 * (1 + below(random, 3));
  for (std::size_t p = 0; p < parts.size(); ++p) {
    for (std::size_t q = 0; q < parts.size(); ++q) {
      if (p == q) continue;
      for (const std::int32_t a : parts[p]) {
        for (const std::int32_t b : parts[q]) {
          for (std::size_t t = 0; t < problem.terms.size(); ++t) {
            problem.terms[t].distance[problem.of_gpus(a, b)] = greatest[t];
          }
        }
      }
    }
    add_tree_distances(problem, random, parts[p], inner);
  }
}

inline void add_tree_distances(MappingProblem& problem, std::mt19937_64& random) {
  std::vector<std::int32_t> gpus;
  for (std::int32_t a = 0; a < problem.gpus; ++a) gpus.push_back(a);
  std::vector<double> greatest;
  for (std::size_t t = 0; t < problem.terms.size(); ++t)
    greatest.push_back(16 + 8.0 * static_cast<double>(t));
  add_tree_distances(problem, random, gpus, greatest);
}

/// The least cost of all allowed placements, each of which is tried.
inline double least_cost_of_all(const MappingProblem& problem) {
  double least = std::numeric_limits<double>::infinity();
  Placement placement(static_cast<std::size_t>(problem.slots), -1);
  std::vector<std::int32_t> taken(static_cast<std::size_t>(problem.gpus));
  const auto place = [&](const auto& self, std::int32_t slot) -> void {
    if (slot == problem.slots) {
      if (problem.allows(placement)) least = std::min(least, problem.cost(placement));
      return;
    }
    for (std::int32_t gpu = 0; gpu < problem.gpus; ++gpu) {
      if (taken[static_cast<std::size_t>(gpu)] == problem.per_gpu) continue;
      ++taken[static_cast<std::size_t>(gpu)];
      placement[static_cast<std::size_t>(slot)] = gpu;
      self(self, slot + 1);
      --taken[static_cast<std::size_t>(gpu)];
      // Empty slots are alike.
      if (slot >= problem.used && problem.per_gpu == 1) break;
    }
    placement[static_cast<std::size_t>(slot)] = -1;
  };
  place(place, 0);
  return least;
}

}  // namespace heddle::test
