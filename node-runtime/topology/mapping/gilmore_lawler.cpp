#include "node-runtime/topology/mapping/gilmore_lawler.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>

namespace heddle {

double linear_assignment(std::span<const double> costs, std::size_t rows, std::size_t columns) {
  // Rows join one after the other; potentials keep all reduced costs at 0 or above. Index 0 is a
  // column that stands for "not assigned".
  constexpr double infinity = std::numeric_limits<double>::infinity();
  std::vector<double> row_potential(rows + 1);
  std::vector<double> column_potential(columns + 1);
  std::vector<std::size_t> row_of(columns + 1);
  std::vector<std::size_t> before(columns + 1);
  std::vector<double> slack(columns + 1);
  std::vector<bool> is_visited(columns + 1);
  for (std::size_t row = 1; row <= rows; ++row) {
    row_of[0] = row;
    std::ranges::fill(slack, infinity);
    is_visited.assign(columns + 1, false);
    std::size_t column = 0;
    while (row_of[column] != 0) {
      is_visited[column] = true;
      const std::size_t from = row_of[column];
      double least = infinity;
      std::size_t next = 0;
      for (std::size_t c = 1; c <= columns; ++c) {
        if (is_visited[c]) continue;
        const double reduced =
            costs[(from - 1) * columns + c - 1] - row_potential[from] - column_potential[c];
        if (reduced < slack[c]) {
          slack[c] = reduced;
          before[c] = column;
        }
        if (slack[c] < least) {
          least = slack[c];
          next = c;
        }
      }
      for (std::size_t c = 0; c <= columns; ++c) {
        if (is_visited[c]) {
          row_potential[row_of[c]] += least;
          column_potential[c] -= least;
        } else {
          slack[c] -= least;
        }
      }
      column = next;
    }
    for (; column != 0; column = before[column]) row_of[column] = row_of[before[column]];
  }
  return -column_potential[0];
}

double gilmore_lawler_bound(const MappingProblem& problem, std::span<const std::int32_t> placed) {
  std::vector<std::int32_t> open;  // slots
  std::vector<std::int32_t> room(static_cast<std::size_t>(problem.gpus), problem.per_gpu);
  double fixed = 0;
  for (std::int32_t i = 0; i < problem.used; ++i) {
    const std::int32_t a = placed[static_cast<std::size_t>(i)];
    if (a < 0) {
      open.push_back(i);
      continue;
    }
    --room[static_cast<std::size_t>(a)];
    fixed += problem.unary_at(i, a);
    for (std::int32_t j = 0; j < i; ++j) {
      const std::int32_t b = placed[static_cast<std::size_t>(j)];
      if (b >= 0) fixed += problem.pair(i, j, a, b);
    }
  }
  if (open.empty()) return fixed;
  std::vector<std::int32_t> places;  // a GPU for each slot that it can still take
  for (std::int32_t a = 0; a < problem.gpus; ++a) {
    places.insert(places.end(), static_cast<std::size_t>(room[static_cast<std::size_t>(a)]), a);
  }

  const std::size_t rows = open.size();
  const std::size_t columns = places.size();
  std::vector<double> costs(rows * columns);
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < columns; ++c) {
      double cost = problem.unary_at(open[r], places[c]);
      for (std::int32_t j = 0; j < problem.used; ++j) {
        const std::int32_t b = placed[static_cast<std::size_t>(j)];
        if (b >= 0) cost += problem.pair(open[r], j, places[c], b);
      }
      costs[r * columns + c] = cost;
    }
  }
  const std::size_t others = rows - 1;
  std::vector<double> flows(rows * others);
  std::vector<double> distances(columns * (columns - 1));
  for (const MappingProblem::Term& term : problem.terms) {
    for (std::size_t r = 0; r < rows; ++r) {
      double* const row = flows.data() + r * others;
      std::size_t at = 0;
      for (std::size_t q = 0; q < rows; ++q) {
        if (q != r) row[at++] = term.flow[problem.of_slots(open[r], open[q])];
      }
      std::sort(row, row + others, std::greater<>());
    }
    for (std::size_t c = 0; c < columns; ++c) {
      double* const row = distances.data() + c * (columns - 1);
      std::size_t at = 0;
      for (std::size_t d = 0; d < columns; ++d) {
        if (d != c) row[at++] = term.distance[problem.of_gpus(places[c], places[d])];
      }
      std::sort(row, row + (columns - 1));
    }
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t c = 0; c < columns; ++c) {
        double least = 0;
        for (std::size_t k = 0; k < others; ++k) {
          least += flows[r * others + k] * distances[c * (columns - 1) + k];
        }
        costs[r * columns + c] += least;
      }
    }
  }
  return fixed + linear_assignment(costs, rows, columns);
}

double gilmore_lawler_bound(const MappingProblem& problem) {
  const std::vector<std::int32_t> none(static_cast<std::size_t>(problem.slots), -1);
  return gilmore_lawler_bound(problem, none);
}

}  // namespace heddle
