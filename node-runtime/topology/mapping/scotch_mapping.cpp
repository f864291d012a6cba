#include "node-runtime/topology/mapping/scotch_mapping.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fmt/format.h>
#include <mutex>

// After <cstdio>, which it does not include.
#include <scotch.h>

namespace heddle {
namespace {

/// SCOTCH counts in whole numbers, perhaps of 32 bits: sums of flow x distance stay below 2^31.
constexpr double flow_scale = 20'000;
constexpr double distance_scale = 1'000;

/// One term for both: flows and distances of a mean message.
struct PlainGraphs {
  std::vector<double> flow;
  std::vector<double> distance;
};

PlainGraphs plain_graphs(const MappingProblem& problem) {
  PlainGraphs plain;
  plain.flow.resize(static_cast<std::size_t>(problem.slots) *
                    static_cast<std::size_t>(problem.slots));
  plain.distance.resize(static_cast<std::size_t>(problem.gpus) *
                        static_cast<std::size_t>(problem.gpus));
  for (const MappingProblem::Term& term : problem.terms) {
    // A term weighs as much as it costs on average over all placements.
    double flows = 0;
    double distances = 0;
    for (const double flow : term.flow) flows += flow;
    for (const double distance : term.distance) distances += distance;
    if (flows == 0 || distances == 0) continue;
    for (std::size_t k = 0; k < plain.flow.size(); ++k) {
      plain.flow[k] += term.flow[k] * distances;
    }
    for (std::size_t k = 0; k < plain.distance.size(); ++k) {
      plain.distance[k] += term.distance[k] * flows;
    }
  }
  return plain;
}

/// A graph in the form that SCOTCH reads: vertex v has the neighbours ends[starts[v]] to
/// ends[starts[v + 1] - 1].
struct EdgeLists {
  std::vector<SCOTCH_Num> starts{0};
  std::vector<SCOTCH_Num> ends;
  std::vector<SCOTCH_Num> loads;
};

EdgeLists edge_lists(const std::vector<double>& matrix, std::int32_t size, double scale,
                     bool is_complete) {
  const auto both_ways = [&](std::int32_t a, std::int32_t b) {
    const auto at = [&](std::int32_t row, std::int32_t column) {
      return matrix[static_cast<std::size_t>(row) * static_cast<std::size_t>(size) +
                    static_cast<std::size_t>(column)];
    };
    return at(a, b) + at(b, a);
  };
  double greatest = 0;
  for (std::int32_t a = 0; a < size; ++a) {
    for (std::int32_t b = 0; b < size; ++b) greatest = std::max(greatest, both_ways(a, b));
  }
  EdgeLists lists;
  for (std::int32_t a = 0; a < size; ++a) {
    for (std::int32_t b = 0; b < size; ++b) {
      const double load = greatest > 0 ? both_ways(a, b) / greatest : 0;
      if (a == b || (load == 0 && !is_complete)) continue;
      lists.ends.push_back(b);
      lists.loads.push_back(static_cast<SCOTCH_Num>(std::max(1.0, std::round(load * scale))));
    }
    lists.starts.push_back(static_cast<SCOTCH_Num>(lists.ends.size()));
  }
  return lists;
}

/// One of SCOTCH's objects, with the call that ends it.
template <class T, int (*Init)(T*), void (*Exit)(T*)>
class Owned {
 public:
  Owned() : is_made_(Init(&object_) == 0) {}
  ~Owned() {
    if (is_made_) Exit(&object_);
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  [[nodiscard]] bool is_made() const { return is_made_; }
  [[nodiscard]] T* get() { return &object_; }

 private:
  T object_;
  bool is_made_;
};
using OwnedGraph = Owned<SCOTCH_Graph, SCOTCH_graphInit, SCOTCH_graphExit>;
using OwnedArch = Owned<SCOTCH_Arch, SCOTCH_archInit, SCOTCH_archExit>;
using OwnedStrategy = Owned<SCOTCH_Strat, SCOTCH_stratInit, SCOTCH_stratExit>;
using OwnedContext = Owned<SCOTCH_Context, SCOTCH_contextInit, SCOTCH_contextExit>;

bool build(SCOTCH_Graph* graph, EdgeLists& lists) {
  const auto vertices = static_cast<SCOTCH_Num>(lists.starts.size() - 1);
  return SCOTCH_graphBuild(graph, 0, vertices, lists.starts.data(), nullptr, nullptr, nullptr,
                           static_cast<SCOTCH_Num>(lists.ends.size()), lists.ends.data(),
                           lists.loads.data()) == 0;
}

ScotchResult failed(const char* call) {
  return {{}, fmt::format("{} failed", call)};
}

ScotchResult map_graphs(EdgeLists& flows, EdgeLists& distances, std::uint64_t seed) {
  const auto number = static_cast<SCOTCH_Num>(seed & 0x3fffffffU);
  SCOTCH_randomSeed(number);  // what SCOTCH_archBuild draws from
  SCOTCH_randomReset();
  OwnedContext context;  // outlives the graph that is bound to it
  OwnedGraph target;
  OwnedArch arch;
  OwnedStrategy arch_strategy;
  OwnedGraph source;
  OwnedGraph bound;
  OwnedStrategy strategy;
  if (!target.is_made() || !arch.is_made() || !arch_strategy.is_made() || !source.is_made() ||
      !bound.is_made() || !strategy.is_made() || !context.is_made()) {
    return failed("an Init function");
  }
  if (!build(target.get(), distances) || !build(source.get(), flows)) {
    return failed("SCOTCH_graphBuild");
  }
  if (SCOTCH_archBuild(arch.get(), target.get(), 0, nullptr, arch_strategy.get()) != 0) {
    return failed("SCOTCH_archBuild");
  }
  if (SCOTCH_contextOptionSetNum(context.get(), SCOTCH_OPTIONNUMDETERMINISTIC, 1) != 0 ||
      SCOTCH_contextThreadSpawn(context.get(), 1, nullptr) != 0) {
    return failed("a context function");
  }
  SCOTCH_contextRandomSeed(context.get(), number);
  if (SCOTCH_contextBindGraph(context.get(), source.get(), bound.get()) != 0) {
    return failed("SCOTCH_contextBindGraph");
  }
  std::vector<SCOTCH_Num> parts(flows.starts.size() - 1);
  if (SCOTCH_graphMap(bound.get(), arch.get(), strategy.get(), parts.data()) != 0) {
    return failed("SCOTCH_graphMap");
  }
  ScotchResult result;
  for (const SCOTCH_Num part : parts) result.gpu_of.push_back(static_cast<std::int32_t>(part));
  return result;
}

}  // namespace

ScotchResult scotch_mapping(const MappingProblem& problem, std::uint64_t seed) {
  if (SCOTCH_numSizeof() != static_cast<int>(sizeof(SCOTCH_Num))) {
    return {
        {},
        fmt::format("heddle was built for SCOTCH with numbers of {} bytes, and the library has {}",
                    sizeof(SCOTCH_Num), SCOTCH_numSizeof())};
  }
  const PlainGraphs plain = plain_graphs(problem);
  EdgeLists flows = edge_lists(plain.flow, problem.slots, flow_scale, false);
  EdgeLists distances = edge_lists(plain.distance, problem.gpus, distance_scale, true);
  if (flows.ends.empty() || problem.gpus < 2) return {{}, "there is nothing to map"};
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  return map_graphs(flows, distances, seed);
}

}  // namespace heddle
