/// Groups of a program that drives an endpoint itself, without a Node: on a board and by messages,
/// parts of the world, operations under way together, and a member that does not call.
///
///   mpiexec -n P driven_world_program
///
/// Prints "all is well" on node 0.

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fmt/core.h>
#include <mpi.h>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "node-runtime/collectives/driven_world.hpp"
#include "node-runtime/transport/p2p/endpoint.hpp"
#include "node-runtime/transport/p2p/mpi/mpi_wire.hpp"

namespace heddle {
namespace {

void expect(bool is_right, const std::string& what) {
  if (!is_right) throw Error(ErrorCode::internal, what);
}

/// Sums of many sizes, in either form; rank r gives r + i.
void sum(const Group& group, std::int64_t count) {
  std::vector<double> blocking(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < blocking.size(); ++i) {
    blocking[i] = group.rank() + static_cast<double>(i);
  }
  std::vector<double> begun = blocking;
  group.all_reduce({blocking.data(), count, Scalar::float64}, ReduceOperation::sum());
  const Collective second =
      group.begin_all_reduce({begun.data(), count, Scalar::float64}, ReduceOperation::sum());
  const Collective third = group.begin_barrier();
  third.wait();
  second.wait();
  const double ranks = group.size() * (group.size() - 1) / 2.0;
  for (std::size_t i = 0; i < blocking.size(); ++i) {
    const double wanted = ranks + group.size() * static_cast<double>(i);
    expect(blocking[i] == wanted && begun[i] == wanted,
           fmt::format("element {} of {}: {} and {}, not {}", i, count, blocking[i], begun[i],
                       wanted));
  }
}

void exchange(const Group& world) {
  for (const std::int64_t count : {0, 1, 100, 5000, 300000}) sum(world, count);
  const Group half = world.split(world.rank() % 2, -world.rank());
  sum(half, 1000);
  std::vector<std::int64_t> all(static_cast<std::size_t>(world.size()));
  const std::int64_t own = 7 * world.rank();
  world.all_gather({&own, 1, Scalar::int64}, {all.data(), 1, Scalar::int64});
  for (std::size_t r = 0; r < all.size(); ++r) {
    expect(all[r] == 7 * static_cast<std::int64_t>(r), "all_gather");
  }
}

/// The last one does not call: the others are told, and so is it when it comes.
void miss(const Group& group) {
  if (group.size() == 1) return;
  try {
    double x = 1;
    if (group.rank() != group.size() - 1) {
      group.begin_all_reduce({&x, 1, Scalar::float64}, ReduceOperation::sum()).wait();
    } else {
      std::vector<double> other(10);
      for (;;) group.begin_broadcast({other.data(), 10, Scalar::float64}, group.rank()).wait();
    }
  } catch (const Error& error) {
    const std::string text = error.what();
    expect(text.find("all_reduce of 1 elements") != std::string::npos, text);
    return;
  }
  expect(false, "calls that do not fit together have an end");
}

void run(p2p::Endpoint& endpoint, int own, int nodes, bool has_board) {
  DrivenWorld::Options options;
  options.patience = std::chrono::seconds(3);
  options.rates.levels.fill({1e-6, 1e9, 4096, 2e-6, 1e9});
  options.rates.reduced_bytes_per_s = 1e9;
  if (has_board) {
    options.places.emplace(std::vector<collectives::RankPlace>(static_cast<std::size_t>(nodes)));
  }
  DrivenWorld world(endpoint, own, nodes, std::move(options));
  exchange(world.group());
  const Group other = world.group().split(0, own);
  if (has_board) miss(other);
  sum(world.group(), 10);
  world.end();
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
  int status = 0;
  int own = 0;
  int nodes = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &own);
  MPI_Comm_size(MPI_COMM_WORLD, &nodes);
  try {
    for (const bool has_board : {false, true}) {
      const heddle::p2p::Endpoint::Options sizes;
      heddle::p2p::MpiWire wire(MPI_COMM_WORLD, {sizes.window_bytes(), true});
      heddle::p2p::Endpoint endpoint(wire, sizes, [] {});
      heddle::run(endpoint, own, nodes, has_board);
      // Without devices nothing is mapped that would have to be closed.
      MPI_Barrier(MPI_COMM_WORLD);
    }
    if (own == 0) fmt::print("all is well\n");
  } catch (const std::exception& error) {
    fmt::print("{}\n", error.what());
    status = 1;
  }
  std::fflush(nullptr);
  if (status != 0) MPI_Abort(MPI_COMM_WORLD, status);
  MPI_Finalize();
  return status;
}
