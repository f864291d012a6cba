/// Factorizes and solves the same problem again and again, on every grid of the nodes that run,
/// with other numbers of workers and devices, with messages and copies delayed at random, and
/// prints a hash of the bits of factor and solution. All hashes must be equal, here and for any
/// other number of nodes (DESIGN D4); bits_test.cpp compares.
///
///   mpiexec -n P bits_program devices|cpus REPEATS

#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <mpi.h>
#include <mutex>
#include <set>
#include <string>

#include "algorithms/cholesky/cholesky.hpp"
#include "algorithms/matrix/generators.hpp"
#include "algorithms/qr/qr.hpp"
#include "algorithms/solve/triangular.hpp"
#include "node-runtime/node.hpp"

namespace heddle {
namespace {

std::uint64_t mix(std::uint64_t h) {
  h = (h ^ h >> 33) * std::uint64_t{0xff51afd7ed558ccd};
  h = (h ^ h >> 33) * std::uint64_t{0xc4ceb9fe1a85ec53};
  return h ^ h >> 33;
}

/// Depends on each element's place and bits, not on who holds it.
std::uint64_t hash(Node& node, Matrix<double> matrix) {
  std::uint64_t sum = 0;
  std::mutex mutex;
  const TileLayout l = matrix.layout();
  matrix.for_each_tile([&](TileRow i, TileColumn c, TileView tile) {
    std::uint64_t here = 0;
    for (std::int64_t b = 0; b < tile.columns; ++b) {
      for (std::int64_t a = 0; a < tile.rows; ++a) {
        const auto row = static_cast<std::uint64_t>(l.row_begin(i) + a);
        const auto column = static_cast<std::uint64_t>(l.column_begin(c) + b);
        here += mix(mix(row << 32 | column) ^ std::bit_cast<std::uint64_t>(tile(a, b)));
      }
    }
    const std::lock_guard lock(mutex);
    sum += here;
  });
  std::array<double, 4> parts{};  // exact in doubles
  for (std::size_t p = 0; p < parts.size(); ++p) {
    parts[p] = static_cast<double>(sum >> (16 * p) & 0xffff);
  }
  node.all_reduce(parts, Reduction::sum);
  std::uint64_t total = 0;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    total += static_cast<std::uint64_t>(parts[p]) << (16 * p);
  }
  return total;
}

/// A tall matrix in virtual tiles, its factorization, and Q applied to something.
std::uint64_t run_qr(Node& node, QrTree tree) {
  const QrLayout layout{
      .tile = 32, .strip = 16, .small = 8, .virtual_tiles = 1, .inner = 12, .tree = tree};
  const QrMatrix q = qr_matrix(node, 139, 60, layout, node.facts().distribution);
  Matrix<double>(q.a).fill([](std::int64_t i, std::int64_t j) {
    return static_cast<double>((i * 31 + j * 17) % 101) - 50 + (i == j ? 100.0 : 0.0);
  });
  QrSides x = qr_sides(q, 5);
  x.x.fill([](std::int64_t i, std::int64_t j) { return 1.0 / static_cast<double>(1 + i + j); });
  for (const JobSpec& spec : {qr(q), apply_q_transposed(q, x), apply_q(q, x)}) {
    if (node.submit(spec).wait().status != JobResult::Status::done) {
      throw Error(ErrorCode::internal, "the QR job did not end well");
    }
  }
  return mix(hash(node, q.a)) ^ mix(hash(node, q.r) + 1) ^ hash(node, x.x);
}

std::uint64_t run(const std::string& yaml, const NodeFaults& faults) {
  Node node(Config::from_text(yaml, "bits"), MPI_COMM_WORLD, faults);
  GeneratorOptions generator;
  generator.n = 187;
  generator.condition = 1e3;
  const auto source = make_generator(generator);
  MatrixSpec spec;
  spec.rows = spec.columns = generator.n;
  spec.storage = Storage::lower;
  auto a = node.matrix<double>(spec);
  a.fill([&](std::int64_t i, std::int64_t j) {
    double value = 0;
    source->read(GlobalRow{i}, GlobalColumn{j}, {&value, 1, 1, 1});
    return value;
  });
  auto x = right_hand_sides(a, 5);
  x.fill([](std::int64_t i, std::int64_t j) { return 1.0 / static_cast<double>(1 + i + 3 * j); });
  Job factorization = node.submit(cholesky(a));
  Job solution = node.submit(solve_cholesky(a, x));
  if (factorization.wait().status != JobResult::Status::done ||
      solution.wait().status != JobResult::Status::done) {
    throw Error(ErrorCode::internal, "the job did not end well");
  }
  return mix(hash(node, a)) ^ hash(node, x) ^ mix(run_qr(node, QrTree::flat)) ^
         mix(run_qr(node, QrTree::binomial) + 1);
}

int run_all(bool devices, int repeats) {
  int rank = 0;
  int size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  std::set<std::uint64_t> hashes;
  int runs = 0;
  for (int rows = 1; rows <= size; ++rows) {
    if (size % rows != 0) continue;
    for (int r = 0; r < repeats; ++r) {
      NodeFaults faults;
      const std::int64_t seed = std::int64_t{r} + 1;
      faults.messages = {static_cast<std::uint64_t>(r % 2 == 0 ? 300 : 0),
                         static_cast<std::uint64_t>(seed)};
      faults.devices.delay_us_max = r % 3 == 0 ? 100 : 0;
      faults.devices.seed = static_cast<std::uint64_t>(seed);
      if (r % 4 == 1) faults.extra_blocks_max = 0;
      const std::string yaml = fmt::format(
          "layout: {{grid: [{}, {}], tile: 32, strip: 16, small: 8}}\n"
          "runtime: {{watchdog_seconds: 4, wait: {}, cpu_workers: {}, window: {}, devices: "
          "{{backend: {}{}, "
          "memory: 64MiB}}}}\n",
          rows, size / rows, r % 2 == 0 ? "adaptive" : "park", 1 + r % 3, r % 5 == 4 ? 3 : 4096,
          devices ? "emulated" : "none",
          devices ? fmt::format(", per_node: {}", 1 + r / 3 % 3) : "");
      hashes.insert(run(yaml, faults));
      ++runs;
    }
  }
  if (rank == 0) {
    for (const std::uint64_t h : hashes) fmt::print("{:016x} of {} runs\n", h, runs);
  }
  return hashes.size() == 1 ? 0 : 1;
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
  int status = 2;
  try {
    status = heddle::run_all(argc > 1 && std::string(argv[1]) == "devices",
                             argc > 2 ? std::atoi(argv[2]) : 20);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bits_program: {}\n", error.what());
    std::fflush(nullptr);
    std::_Exit(3);  // the other nodes may not come to MPI_Finalize
  }
  MPI_Finalize();
  return status;
}
