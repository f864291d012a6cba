/// Reductions of groups whose ranks are at random places: in the order of ranks they have the same
/// bits on all maps, in that of places the bits of its definition; each element of each rank.
/// Operations that do not commute keep the order of ranks.
///
///   mpiexec -n P group_order_program MAPS
///
/// Prints "all is well" on node 0.

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fmt/core.h>
#include <functional>
#include <initializer_list>
#include <mpi.h>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "node-runtime/collectives/execution/seal.hpp"
#include "node-runtime/collectives/group.hpp"
#include "node-runtime/collectives/group_core.hpp"
#include "node-runtime/node.hpp"
#include "node-runtime/node_internals.hpp"
#include "tests/collectives/reduce/own_functors.hpp"
#include "tests/collectives/schedule/places_bracket.hpp"
#include "tests/collectives/schedule/random_places.hpp"

namespace heddle {
namespace {

using collectives::GroupCore;
using collectives::Levels;
using collectives::Places;
using collectives::Rank;

/// Element i of a rank's input: of many magnitudes, so that each order has its own sum.
double value(int rank, std::int64_t i) {
  const std::uint64_t h =
      collectives::mixed(static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(i));
  return std::ldexp(static_cast<double>(h >> 12U), -static_cast<int>(h % 60));
}

double sum_in_ranks(int ranks, std::int64_t i) {
  std::vector<double> values;
  for (int r = 0; r < ranks; ++r) values.push_back(value(r, i));
  return collectives::balanced(values, 0, values.size(), std::plus<>());
}

double sum_in_places(const Places& places, std::int64_t i) {
  return collectives::places_bracket(
      places, Levels::Sockets::ignored, [i](int r) { return value(r, i); }, std::plus<>());
}

/// All nodes, as if they were at these places. Collective.
Group group_at(Node& node, const Places& places) {
  const auto messages = NodeInternals(node).user_messages();
  GroupCore::Options options{{},     Rank{node.rank()},
                             places, p2p::ChannelId{messages->next_channel()},
                             {},     std::chrono::seconds(30)};
  for (int r = 0; r < node.size(); ++r) options.nodes.emplace_back(r);
  messages->take_channels(options.channel.value() + 1);
  auto core = GroupCore::make(messages, std::move(options));
  core->set_up_board();
  return Group(core);
}

class Reductions {
 public:
  Reductions(Group group, Places places, std::string name)
      : group_(std::move(group)), places_(std::move(places)), name_(std::move(name)) {}

  void run(Order order) {
    order_ = order;
    expected_.clear();
    prefix_.clear();
    for (std::int64_t i = 0; i < counts[1]; ++i) {
      expected_.push_back(order == Order::ranks ? sum_in_ranks(group_.size(), i)
                                                : sum_in_places(places_, i));
      prefix_.push_back(sum_in_ranks(group_.rank() + 1, i));
    }
    for (const std::int64_t count : counts) {
      for (const char* way : {"auto", "reduce_broadcast", "scatter_gather", "chain", "binomial"}) {
        all_reduce(count, way);
      }
      for (const char* tree : {"auto", "flat", "chain", "binomial", "binary"}) reduce(count, tree);
      reduce_scatter(count);
      prefix(count);
    }
  }

 private:
  /// On the board, where there is one, and by messages.
  static constexpr std::int64_t counts[] = {40, 5000};

  [[nodiscard]] std::vector<double> input(std::int64_t count) const {
    std::vector<double> made;
    for (std::int64_t i = 0; i < count; ++i) made.push_back(value(group_.rank(), i));
    return made;
  }
  [[nodiscard]] CollectiveOptions options(const char* algorithm) const {
    CollectiveOptions made;
    made.order = order_;
    made.algorithm = algorithm;
    return made;
  }
  void check(const std::string& what, const std::vector<double>& found, std::int64_t first) const {
    for (std::size_t i = 0; i < found.size(); ++i) {
      const double wanted = expected_[static_cast<std::size_t>(first) + i];
      if (std::bit_cast<std::uint64_t>(found[i]) == std::bit_cast<std::uint64_t>(wanted)) continue;
      throw Error(ErrorCode::internal,
                  fmt::format("{}, {} in the order of {}: element {} is {}, not {}", name_, what,
                              name_of(order_), i, found[i], wanted));
    }
  }

  void all_reduce(std::int64_t count, const char* way) {
    const auto sum = ReduceOperation::sum();
    std::vector<double> blocking = input(count);
    group_.all_reduce({blocking.data(), count, Scalar::float64}, sum, options(way));
    check(fmt::format("all_reduce by {}", way), blocking, 0);
    std::vector<double> begun = input(count);
    const Collective collective =
        group_.begin_all_reduce({begun.data(), count, Scalar::float64}, sum, options(way));
    collective.wait();
    check(fmt::format("begin_all_reduce by {}", way), begun, 0);
    const CollectiveReport report = collective.report();
    const bool is_predicted = report.predicted_ranks_s > 0 && report.predicted_places_s > 0;
    if (report.order != order_ || (group_.size() > 1 && !is_predicted)) {
      throw Error(ErrorCode::internal, fmt::format("{}: the report on its order", name_));
    }
  }
  void reduce(std::int64_t count, const char* tree) {
    for (int root = 0; root < group_.size(); ++root) {
      const std::vector<double> from = input(count);
      std::vector<double> to(static_cast<std::size_t>(count));
      group_.reduce({from.data(), count, Scalar::float64}, {to.data(), count, Scalar::float64},
                    ReduceOperation::sum(), root, options(tree));
      if (group_.rank() == root) check(fmt::format("reduce to {} by {}", root, tree), to, 0);
    }
  }
  void reduce_scatter(std::int64_t count) {
    const std::int64_t block = count / group_.size();
    const std::vector<double> from = input(block * group_.size());
    std::vector<double> to(static_cast<std::size_t>(block));
    group_.reduce_scatter({from.data(), block, Scalar::float64},
                          {to.data(), block, Scalar::float64}, ReduceOperation::sum(),
                          options("auto"));
    check("reduce_scatter", to, group_.rank() * block);
  }
  /// Keeps the order of ranks.
  void prefix(std::int64_t count) const {
    std::vector<double> all = input(count);
    group_.scan({all.data(), count, Scalar::float64}, ReduceOperation::sum(), options("auto"));
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i] == prefix_[i]) continue;
      throw Error(ErrorCode::internal,
                  fmt::format("{}: a scan of order {}", name_, name_of(order_)));
    }
  }

  Group group_;
  Places places_;
  std::string name_;
  Order order_ = Order::ranks;
  std::vector<double> expected_;
  std::vector<double> prefix_;
};

/// Exact operations have one result, and may take either order.
void check_exact(const Group& group) {
  for (const Order order : {Order::ranks, Order::places}) {
    std::vector<std::int64_t> sums(5000, group.rank() + 1);
    CollectiveOptions options;
    options.order = order;
    const Collective collective =
        group.begin_all_reduce({sums.data(), 5000, Scalar::int64}, ReduceOperation::sum(), options);
    collective.wait();
    const std::int64_t wanted = group.size() * (group.size() + 1) / 2;
    if (sums != std::vector<std::int64_t>(5000, wanted)) {
      throw Error(ErrorCode::internal, "a sum of integers");
    }
    const CollectiveReport report = collective.report();
    const double other = std::min(report.predicted_ranks_s, report.predicted_places_s);
    if (report.predicted_s > other) {
      throw Error(ErrorCode::internal, "an exact sum does not take the faster order");
    }
  }
}

/// Reductions by an operation that does not commute, which the order of places is asked for.
class OrderKept {
 public:
  OrderKept(Group group, std::string name) : group_(std::move(group)), name_(std::move(name)) {
    options_.order = Order::places;
    for (std::int64_t i = 0; i < counts[1]; ++i) {
      test::AffineMap all = map_of(0, i);
      for (int r = 1; r < group_.size(); ++r) all = test::ThenModulo{modulus}(all, map_of(r, i));
      expected_.push_back(all);
    }
  }

  void run() {
    for (const std::int64_t count : counts) {
      for (const char* way : {"auto", "reduce_broadcast", "scatter_gather", "binomial"}) {
        options_.algorithm = way;
        all_reduce(count);
      }
      options_.algorithm = "auto";
      for (int root = 0; root < group_.size(); ++root) reduce(count, root);
      reduce_scatter(count);
    }
  }

 private:
  /// On the board, where there is one, and by messages.
  static constexpr std::int64_t counts[] = {40, 5000};
  static constexpr std::uint32_t modulus = 1000003;

  /// Element i of a rank's input.
  [[nodiscard]] static test::AffineMap map_of(int rank, std::int64_t i) {
    const std::uint64_t h =
        collectives::mixed(static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(i));
    return {static_cast<std::uint32_t>(h % modulus), static_cast<std::uint32_t>(h / 7 % modulus)};
  }
  [[nodiscard]] std::vector<test::AffineMap> input(std::int64_t count) const {
    std::vector<test::AffineMap> made;
    for (std::int64_t i = 0; i < count; ++i) made.push_back(map_of(group_.rank(), i));
    return made;
  }
  void check(const std::string& what, const std::vector<test::AffineMap>& found,
             std::int64_t first) const {
    for (std::size_t i = 0; i < found.size(); ++i) {
      const test::AffineMap& wanted = expected_[static_cast<std::size_t>(first) + i];
      if (std::memcmp(&found[i], &wanted, sizeof wanted) == 0) continue;
      throw Error(ErrorCode::internal,
                  fmt::format("{}, {} of maps by {}: element {} is not in the order of ranks",
                              name_, what, options_.algorithm, i));
    }
  }

  void all_reduce(std::int64_t count) {
    std::vector<test::AffineMap> blocking = input(count);
    group_.all_reduce({blocking.data(), 2 * count, Scalar::uint32}, operation_, options_);
    check("all_reduce", blocking, 0);
    std::vector<test::AffineMap> begun = input(count);
    const Collective collective =
        group_.begin_all_reduce({begun.data(), 2 * count, Scalar::uint32}, operation_, options_);
    collective.wait();
    check("begin_all_reduce", begun, 0);
    if (collective.report().order == Order::ranks) return;
    throw Error(ErrorCode::internal, fmt::format("{}: the report on an order kept", name_));
  }
  void reduce(std::int64_t count, int root) {
    const std::vector<test::AffineMap> from = input(count);
    std::vector<test::AffineMap> to(from.size());
    group_.reduce({from.data(), 2 * count, Scalar::uint32}, {to.data(), 2 * count, Scalar::uint32},
                  operation_, root, options_);
    if (group_.rank() == root) check(fmt::format("reduce to {}", root), to, 0);
  }
  void reduce_scatter(std::int64_t count) {
    const std::int64_t block = count / group_.size();
    const std::vector<test::AffineMap> from = input(block * group_.size());
    std::vector<test::AffineMap> to(static_cast<std::size_t>(block));
    group_.reduce_scatter({from.data(), 2 * block, Scalar::uint32},
                          {to.data(), 2 * block, Scalar::uint32}, operation_, options_);
    check("reduce_scatter", to, group_.rank() * block);
  }

  Group group_;
  std::string name_;
  ReduceOperation operation_ = test::then_modulo(modulus);
  CollectiveOptions options_;
  std::vector<test::AffineMap> expected_;
};

void run(Node& node, int maps) {
  for (int map = 1; map <= maps; ++map) {
    std::mt19937 random(static_cast<std::uint32_t>(map));
    const Places places(collectives::random_places(random, node.size()));
    const Group group = group_at(node, places);
    for (const Order order : {Order::ranks, Order::places}) {
      Reductions(group, places, fmt::format("map {}", map)).run(order);
    }
    check_exact(group);
    OrderKept(group, fmt::format("map {}", map)).run();
  }
  // One host, on which the ranks are the other way round: the board has both orders.
  std::vector<collectives::RankPlace> reversed(static_cast<std::size_t>(node.size()));
  for (int r = 0; r < node.size(); ++r) {
    reversed[static_cast<std::size_t>(r)].socket = node.size() - r;
  }
  const Group group = group_at(node, Places(reversed));
  for (const Order order : {Order::places, Order::ranks}) {
    Reductions(group, Places(reversed), "reversed").run(order);
  }
  OrderKept(group, "reversed").run();
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
  int status = 0;
  try {
    heddle::Node node(
        heddle::Config::from_text("runtime: {cpu_workers: 1, devices: {backend: none}}", "test"),
        MPI_COMM_WORLD);
    heddle::run(node, argc > 1 ? std::atoi(argv[1]) : 20);
    node.stop();
    if (node.rank() == 0) fmt::print("all is well\n");
  } catch (const std::exception& error) {
    fmt::print("{}\n", error.what());
    status = 1;
  }
  std::fflush(nullptr);
  if (status != 0) MPI_Abort(MPI_COMM_WORLD, status);
  MPI_Finalize();
  return status;
}
