/// Factorizes and solves the same problem again and again, on every grid of the nodes that run,
/// with other numbers of workers and devices, with messages and copies delayed at random, and
/// prints a hash of the bits of factor and solution. All hashes must be equal, here and for any
/// other number of nodes (DESIGN D4); bits_test.cpp compares.
///
///   mpiexec -n P bits_program cpus|devices|lent|divided|divided-strips|out-of-core|cuda REPEATS
///
/// `lent`: CPU workers run some of the devices' tasks, whole. `divided`: CPU workers divide tasks
/// into fine ones. `divided-strips`: those of the strips, beside devices. `out-of-core`: on devices
/// whose memory holds the tiles in some runs and not in others, down to the least with which they
/// can work. `cuda`: the same on GPUs, which nodes may have to share.

#include <array>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fmt/core.h>
#include <memory>
#include <mpi.h>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "algorithms/cholesky/cholesky.hpp"
#include "algorithms/cholesky/inverses.hpp"
#include "algorithms/matrix/generators.hpp"
#include "algorithms/qr/qr_matrix.hpp"
#include "algorithms/solve/solve.hpp"
#include "node-runtime/memory/tile_store.hpp"
#include "node-runtime/node.hpp"
#include "node-runtime/node_facts.hpp"
#include "node-runtime/node_faults.hpp"
#include "node-runtime/node_internals.hpp"
#include "node-runtime/threads/engine.hpp"
#include "tests/threads/some_placement.hpp"

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

/// How the problem is cut. Devices whose memory shall not hold it need more tiles.
struct Size {
  std::string layout;
  QrLayout qr;
  std::int64_t rows;  ///< of the matrix to be QR-factorized
  std::int64_t columns;
};
const Size coarse{"tile: 32, strip: 16, small: 8",
                  {.tile = 32, .strip = 16, .small = 8, .virtual_tiles = 1, .inner = 12},
                  139,
                  60};
const Size whole{"tile: 32, strip: 16, small: 8, hierarchy: off", coarse.qr, 139, 60};
const Size fine{"tile: 16, strip: 8, small: 4",
                {.tile = 16, .strip = 8, .small = 4, .virtual_tiles = 1, .inner = 6},
                150,
                72};
const Size in_fine_tasks{"tile: 32, hierarchy: on, small: 11",
                         {.tile = 32, .fine = 11, .virtual_tiles = 2, .inner = 5},
                         139,
                         60};
const Size strips_in_fine_tasks{
    "tile: 32, strip: 16, small: 8, hierarchy: on",
    {.tile = 32, .strip = 16, .small = 8, .fine = 8, .virtual_tiles = 1, .inner = 5},
    139,
    60};
/// What devices have of `fine`.
constexpr std::size_t small_tile_bytes = 16 * 8 * sizeof(double);

/// A tall matrix in virtual tiles, its factorization, and Q applied to something.
std::uint64_t run_qr(Node& node, const Size& size, QrTree tree) {
  QrLayout layout = size.qr;
  layout.tree = tree;
  const QrMatrix q = qr_matrix(node, size.rows, size.columns, layout, node.facts().distribution);
  Matrix<double>(q.a).fill([](std::int64_t i, std::int64_t j) {
    return static_cast<double>((i * 31 + j * 17) % 101) - 50 + (i == j ? 100.0 : 0.0);
  });
  QrOperand x = qr_operand(q, 5);
  x.x.fill([](std::int64_t i, std::int64_t j) { return 1.0 / static_cast<double>(1 + i + j); });
  auto solution = right_hand_sides(q.r, 5);
  for (const JobSpec& spec : {qr(q), apply_q_transposed(q, x), solve_upper(q.r, solution, x.top),
                              apply_q(q, x), subtract_product(x.x, q.a, solution)}) {
    if (node.submit(spec).wait().status != JobResult::Status::done) {
      throw Error(ErrorCode::internal, "the QR job did not end well");
    }
  }
  return mix(hash(node, q.a)) ^ mix(hash(node, q.r) + 1) ^ hash(node, x.x) ^
         mix(hash(node, solution) + 2);
}

struct Result {
  std::uint64_t hash = 0;
  double evictions = 0;  ///< on all nodes
  double lent = 0;       ///< likewise
};

Result run(const std::string& yaml, const Size& size, const NodeFaults& faults) {
  Node node(Config::from_text(yaml, "bits"), MPI_COMM_WORLD, &faults);
  GeneratorOptions generator;
  generator.n = 187;
  generator.condition = 1e3;
  const auto source = make_generator(generator);
  MatrixSpec spec(generator.n, generator.n, Storage::lower);
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
  auto product = right_hand_sides(a, 5);
  product.fill([](std::int64_t i, std::int64_t j) { return static_cast<double>(i - j); });
  if (node.submit(subtract_symmetric_product(product, a, x)).wait().status !=
      JobResult::Status::done) {
    throw Error(ErrorCode::internal, "the product did not end well");
  }
  Result result;
  result.hash = mix(hash(node, a)) ^ hash(node, x) ^ mix(hash(node, product) + 3) ^
                mix(run_qr(node, size, QrTree::flat)) ^
                mix(run_qr(node, size, QrTree::binomial) + 1);
  result.evictions = static_cast<double>(NodeInternals(node).store().evictions());
  node.all_reduce({&result.evictions, 1}, Reduction::sum);
  result.lent = static_cast<double>(NodeInternals(node).engine().tasks_lent());
  node.all_reduce({&result.lent, 1}, Reduction::sum);
  node.stop();
  return result;
}

enum class Kind : std::uint8_t { cpus, devices, lent, divided, divided_strips, out_of_core, cuda };

std::optional<Kind> kind_named(const std::string& name) {
  if (name == "cpus") return Kind::cpus;
  if (name == "devices") return Kind::devices;
  if (name == "lent") return Kind::lent;
  if (name == "divided") return Kind::divided;
  if (name == "divided-strips") return Kind::divided_strips;
  if (name == "out-of-core") return Kind::out_of_core;
  if (name == "cuda") return Kind::cuda;
  return std::nullopt;
}

/// runtime.devices of the r-th run.
std::string devices_of(Kind kind, int r) {
  if (kind == Kind::cpus || kind == Kind::divided) return "{backend: none}";
  if (kind == Kind::devices || kind == Kind::lent || kind == Kind::divided_strips) {
    return fmt::format("{{backend: emulated, per_node: {}, memory: 64MiB}}", 1 + r / 3 % 3);
  }
  if (kind == Kind::out_of_core && r % 5 == 4) return "{backend: none}";
  const int count = kind == Kind::cuda ? 1 : 1 + r % 3;
  const std::uint64_t least =
      TileStore::least_device_bytes(small_tile_bytes, static_cast<std::size_t>(count));
  const std::uint64_t for_tiles = least * static_cast<std::uint64_t>(3 + r % 4) / 4;
  const std::uint64_t for_messages = for_tiles / 16 + 16384;
  const std::uint64_t memory = r % 4 == 0 ? std::uint64_t{64} << 20 : for_tiles + for_messages;
  return fmt::format("{{backend: {}, per_node: {}, memory: {}, streams: {}}}",
                     kind == Kind::cuda ? "cuda" : "emulated", count, memory, 1 + r % 4);
}

const Size& size_of(Kind kind) {
  switch (kind) {
    case Kind::cpus:
    case Kind::devices:
      return coarse;
    case Kind::lent:
      return whole;
    case Kind::divided:
      return in_fine_tasks;
    case Kind::divided_strips:
      return strips_in_fine_tasks;
    case Kind::out_of_core:
    case Kind::cuda:
      break;
  }
  return fine;
}

/// The hosts that nodes pretend to be on, in turns: one, a host each, and two on each.
std::vector<std::int32_t> hosts_of(int r, int nodes) {
  std::vector<std::int32_t> hosts;
  for (int n = 0; n < nodes; ++n) hosts.push_back(r % 3 == 0 ? 0 : r % 3 == 1 ? n : n / 2);
  return hosts;
}

/// From where readers have tiles, which is to make no difference.
constexpr std::array<const char*, 4> readers{"auto", "tree", "home", "tree"};

/// Ways of messages, likewise.
constexpr std::array<const char*, 6> paths{"auto", "message", "shared", "get", "put", "ring"};

int run_all(Kind kind, int repeats) {
  const bool is_small = kind == Kind::out_of_core || kind == Kind::cuda;
  const Size& problem = size_of(kind);
  int rank = 0;
  int size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  std::set<std::uint64_t> hashes;
  int runs = 0;
  double evictions = 0;
  double lent = 0;
  for (int rows = 1; rows <= size; ++rows) {
    if (size % rows != 0) continue;
    for (int r = 0; r < repeats; ++r) {
      NodeFaults faults;
      const std::int64_t seed = std::int64_t{r} + 1;
      faults.messages = {static_cast<std::uint64_t>(r % 2 == 0 ? 300 : 0),
                         static_cast<std::uint64_t>(seed)};
      faults.devices.delay_us_max = r % 3 == 0 ? (is_small ? 30 : 100) : 0;
      faults.devices.seed = static_cast<std::uint64_t>(seed);
      faults.devices.refuse_peers = is_small && r % 2 == 1;
      if (kind == Kind::lent) {
        faults.placement = std::make_shared<testing::SomePlacement>(static_cast<unsigned>(r) % 4);
        // In half of the runs tasks are lent whatever the timing: those of kernels that devices
        // lack.
        if (r % 2 == 0) {
          faults.device_runs = [](const Kernel& kernel) { return kernel.name == "gsmm"; };
        }
      }
      if (r % 4 == 1) faults.extra_blocks_max = 0;
      faults.hosts = hosts_of(r, size);
      const std::string yaml = fmt::format(
          "layout: {{grid: [{}, {}], {}}}\n"
          "runtime: {{watchdog_seconds: {}, wait: {}, cpu_workers: {}, window: {}, devices: {}, "
          "priorities: {}, placement: {}, messages: {{path: {}, readers: {}}}}}\n",
          rows, size / rows, problem.layout,
          kind == Kind::cuda ? 60 : 4,  // libraries take their time to begin
          r % 2 == 0 ? "adaptive" : "park", 1 + r % 3, r % 5 == 4 ? 3 : 4096, devices_of(kind, r),
          r % 4 == 2 ? "path" : "program", kind == Kind::lent ? "dynamic" : "static",
          paths.at(static_cast<std::size_t>(r) % paths.size()),
          readers.at(static_cast<std::size_t>(r) % readers.size()));
      const Result result = run(yaml, problem, faults);
      hashes.insert(result.hash);
      evictions += result.evictions;
      lent += result.lent;
      ++runs;
    }
  }
  if (rank == 0) {
    for (const std::uint64_t h : hashes) {
      fmt::print("{:016x} of {} runs, {:.0f} evictions\n", h, runs, evictions);
    }
  }
  const bool has_lent = lent > 0;
  return hashes.size() == 1 && (evictions > 0) == is_small && has_lent == (kind == Kind::lent) ? 0
                                                                                               : 1;
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
  int status = 2;
  const std::optional<heddle::Kind> kind = heddle::kind_named(argc > 1 ? argv[1] : "");
  try {
    if (kind) status = heddle::run_all(*kind, argc > 2 ? std::atoi(argv[2]) : 20);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bits_program: {}\n", error.what());
    std::fflush(nullptr);
    std::_Exit(3);  // the other nodes may not come to MPI_Finalize
  }
  MPI_Finalize();
  return status;
}
