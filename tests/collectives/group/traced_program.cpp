/// Groups of two nodes that do a known number of operations while a trace is written.
///
///   mpiexec -n 2 traced_program RUN [tasks]
///
/// The trace of RUN has: on all nodes 5 all_reduce at the host's board, 3 broadcasts as a chain, 2
/// scans on a device's stream and 4 rounds of an exchange; on node 1 a gather of a group of its
/// own; with "tasks" a factorization's tasks; behind the trace's end a barrier, which is not in it.

#include <cstdint>
#include <cstdio>
#include <exception>
#include <fmt/core.h>
#include <memory>
#include <mpi.h>
#include <string>
#include <vector>

#include "algorithms/cholesky/cholesky.hpp"
#include "algorithms/io/trace_file.hpp"
#include "node-runtime/collectives/group.hpp"
#include "node-runtime/device/device.hpp"
#include "node-runtime/matrix.hpp"
#include "node-runtime/node.hpp"

namespace heddle {
namespace {

void operate(Node& node, const Group& world) {
  const auto sum = ReduceOperation::sum();
  std::vector<double> few(8, 1);
  for (int i = 0; i < 5; ++i) world.all_reduce({few.data(), 8, Scalar::float64}, sum);
  std::vector<double> many(100000, 1);
  for (int i = 0; i < 3; ++i) {
    world.begin_broadcast({many.data(), 100000, Scalar::float64}, 0, {.algorithm = "chain"}).wait();
  }
  const auto stream = node.device(0).create_stream();
  for (int i = 0; i < 2; ++i) world.scan(*stream, {few.data(), 8, Scalar::float64}, sum);
  stream->synchronize();
  const int other = 1 - world.rank();
  const OutgoingPart out{other, {many.data(), 1000, Scalar::float64}};
  const IncomingPart in{other, {many.data() + 1000, 1000, Scalar::float64}};
  const Exchange exchange = world.exchange({&out, 1}, {&in, 1});
  for (int i = 0; i < 4; ++i) {
    exchange.begin();
    exchange.wait();
  }
  const Group last = world.subset({1});
  if (!last.is_member()) return;
  last.gather({few.data(), 1, Scalar::float64}, {many.data(), 1, Scalar::float64}, 0);
}

void factorize(Node& node) {
  constexpr std::int64_t n = 200;
  Matrix<double> a = node.matrix<double>(n, n, Storage::lower);
  a.fill([](std::int64_t i, std::int64_t j) { return i == j ? 2.0 * n : 1.0; });
  node.submit(cholesky(a)).wait();
}

void run(const std::string& path, bool has_tasks) {
  Node node(
      Config::from_text(fmt::format("runtime: {{cpu_workers: 1, devices: {{backend: emulated}}}}\n"
                                    "trace: {{file: {}}}",
                                    path),
                        "test"),
      MPI_COMM_WORLD);
  const Group world = node.group();
  TraceFile trace(node, path);
  operate(node, world);
  if (has_tasks) factorize(node);
  static_cast<void>(trace.finish());
  world.barrier();
  node.stop();
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
  int status = 0;
  try {
    heddle::run(argc > 1 ? argv[1] : "run", argc > 2 && std::string(argv[2]) == "tasks");
  } catch (const std::exception& error) {
    fmt::print("{}\n", error.what());
    status = 1;
  }
  std::fflush(nullptr);
  if (status != 0) MPI_Abort(MPI_COMM_WORLD, status);
  MPI_Finalize();
  return status;
}
