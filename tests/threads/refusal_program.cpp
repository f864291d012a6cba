/// Two nodes begin a job for whose copies node 1 has no memory. Node 1 is refused, and node 0,
/// which has begun the job, is told so at once.
///
///   mpiexec -n 2 refusal_program job|stream
///
/// Each node prints how it ended.

#include <cstdio>
#include <cstdlib>
#include <fmt/core.h>
#include <mpi.h>
#include <string>

#include "node-runtime/node.hpp"
#include "node-runtime/node_facts.hpp"
#include "node-runtime/node_faults.hpp"
#include "node-runtime/threads/program.hpp"

namespace heddle {
namespace {

constexpr std::int64_t tile = 64;

std::int64_t do_nothing(const KernelArguments& /*arguments*/) {
  return 0;
}
constexpr Kernel idle{.name = "idle", .host = do_nothing};

Program tasks_of_node_1(TaskStream& tasks, Matrix<double> a) {
  co_await tasks.insert(
      idle, {read_write(a(TileRow{1}, TileColumn{0})), read(a(TileRow{0}, TileColumn{0}))});
}

void run(Node& node, bool as_stream) {
  MatrixSpec spec(2 * tile, tile);
  spec.layout.tile = tile;
  spec.distribution = node.facts().distribution;
  spec.spare_count = 0;
  const auto a = node.matrix<double>(spec);
  if (as_stream) {
    UserStream stream = node.stream("user", {a});
    stream.end().wait();
    return;
  }
  JobSpec job;
  job.name = "copies";
  job.matrices = {a.id()};
  job.keep_alive = {a.state()};
  job.program = [a](TaskStream& tasks) { return tasks_of_node_1(tasks, a); };
  node.submit(std::move(job)).wait();
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  heddle::NodeFaults faults;
  // Two nodes of one host have half of it each: a tile has room there, a copy of another has not.
  if (rank == 1) faults.host_memory_bytes = 2 * 1.5 * sizeof(double) * heddle::tile * heddle::tile;
  const auto config = heddle::Config::from_text(
      "layout: {grid: [2, 1]}\nruntime: {cpu_workers: 1, devices: {backend: none}}\n", "refusal");
  heddle::Node node(config, MPI_COMM_WORLD, &faults);
  try {
    heddle::run(node, argc > 1 && std::string(argv[1]) == "stream");
    fmt::print("node {}: done\n", rank);
  } catch (const heddle::Error& error) {
    fmt::print("node {}: status {}: {}\n", rank, exit_status(error.code()), error.what());
  }
  std::fflush(nullptr);
  node.stop();
  // The launcher ends all when one ends without finalizing: not before each has said how it did.
  MPI_Barrier(MPI_COMM_WORLD);
  std::_Exit(0);  // a node has failed: nobody finalizes MPI
}
