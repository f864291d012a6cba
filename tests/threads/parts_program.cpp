/// Lets parts of tiles of many shapes travel, in all the ways in which a version can: to its
/// readers, from reader to reader, as a minor output to its home, and on from there; out of the
/// store's memory and the caller's. Each reader compares what it was to get, and all nodes together
/// what was sent.
///
///   mpiexec -n P parts_program devices|cpus
///
/// Ends with 1 when something is wrong, and says what.

#include <array>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fmt/core.h>
#include <limits>
#include <mpi.h>
#include <mutex>
#include <string>
#include <vector>

#include "node-runtime/node.hpp"
#include "node-runtime/node_facts.hpp"
#include "node-runtime/node_faults.hpp"
#include "node-runtime/node_internals.hpp"
#include "node-runtime/progress/tile_messages.hpp"
#include "node-runtime/threads/engine.hpp"
#include "node-runtime/threads/program.hpp"

namespace heddle {
namespace {

using Shape = TilePart::Shape;
using Parts = std::vector<TilePart>;

/// What is wrong on this node; workers find it too.
class Defects {
 public:
  template <class... Values>
  void expect(bool holds, fmt::format_string<Values...> text, const Values&... values) {
    if (holds) return;
    const std::lock_guard lock(mutex_);
    if (++count_ > 10) return;
    fmt::print(stderr, "parts_program: {}\n", fmt::vformat(text, fmt::make_format_args(values...)));
  }
  [[nodiscard]] bool none() const { return count_ == 0; }

 private:
  std::mutex mutex_;
  int count_ = 0;
};

// ---- the program -----------------------------------------------------------------------------

/// Of no two writes, elements or runs the same.
double value(std::int64_t salt, std::int64_t write, std::int64_t i, std::int64_t j) {
  return static_cast<double>(((salt * 1000 + write) * 1000 + i) * 1000 + j);
}

struct Filling {
  std::int64_t failing_row;  ///< where a kernel's first parameter says so: read by the engine
  std::int64_t salt;
  std::int64_t write;
  std::int64_t outputs;
};

std::int64_t fill_outputs(const KernelArguments& arguments) {
  const auto filling = arguments.parameters.as<Filling>();
  for (std::int64_t k = 0; k < filling.outputs; ++k) {
    const TileView& tile = arguments.tiles[static_cast<std::size_t>(k)];
    for (std::int64_t j = 0; j < tile.columns; ++j) {
      for (std::int64_t i = 0; i < tile.rows; ++i) {
        tile(i, j) = value(filling.salt, filling.write, i, j);
      }
    }
  }
  return 0;
}
std::int64_t fail(const KernelArguments& /*arguments*/) {
  return 1;
}
std::int64_t copy_input(const KernelArguments& arguments) {
  const TileView& to = arguments.tiles[0];
  for (std::int64_t j = 0; j < to.columns; ++j) {
    for (std::int64_t i = 0; i < to.rows; ++i) to(i, j) = arguments.tiles[1](i, j);
  }
  return 0;
}
constexpr Kernel filling_kernel{.name = "fill", .host = fill_outputs, .emulated = fill_outputs};
constexpr Kernel failing_kernel{.name = "fail", .host = fail, .emulated = fail};
constexpr Kernel keeping_kernel{.name = "keep", .host = copy_input, .emulated = copy_input};

TileRef tile(const Matrix<double>& matrix, std::int64_t i) {
  return matrix(TileRow{static_cast<std::int32_t>(i)}, TileColumn{0});
}

/// Tiles of one column, dealt out to the nodes in turn.
MatrixSpec column_of_tiles(Node& node, std::int64_t count, std::int64_t rows,
                           std::int64_t columns) {
  MatrixSpec spec(count * rows, columns);
  spec.layout.tile = rows;
  spec.layout.wide = columns;
  spec.distribution = node.facts().distribution;
  return spec;
}

/// For each of `parts` one version of a tile on node 0, and one of a tile on node 1 that node 0
/// writes; every node keeps what it sees of each.
struct Setting {
  Node& node;
  Defects& defects;
  std::int64_t rows;
  std::int64_t columns;
  Parts parts;
  Matrix<double> source;       ///< tile 0
  Matrix<double> sunk;         ///< tile 1, written elsewhere; tile 0 is the writing task's own
  Matrix<double> kept_source;  ///< of version v on node r: tile v * nodes + r
  Matrix<double> kept_sunk;
};

struct Walk {
  const Setting s;
  std::int64_t salt;
  bool fails;  ///< the first task does, and all others come after it

  [[nodiscard]] TaskOptions options(std::int64_t write, std::int64_t outputs) const {
    TaskOptions options;
    options.parameters = KernelParameters(Filling{0, salt, write, outputs});
    options.info_base = 10;
    return options;
  }
};

Program walk(TaskStream& tasks, Walk w) {
  const auto versions = static_cast<std::int64_t>(w.s.parts.size());
  const std::int64_t nodes = w.s.node.size();
  for (std::int64_t v = 0; v < versions; ++v) {
    const Kernel& kernel = w.fails && v == 0 ? failing_kernel : filling_kernel;
    co_await tasks.insert(kernel, {read_write(tile(w.s.source, 0))}, w.options(v, 1));
    co_await tasks.insert(
        filling_kernel,
        {write(tile(w.s.sunk, 0)), write(tile(w.s.sunk, 1)), read(tile(w.s.source, 0))},
        w.options(v, 2));
    for (std::int64_t r = 0; r < nodes; ++r) {
      const std::int64_t kept = v * nodes + r;
      co_await tasks.insert(keeping_kernel,
                            {write(tile(w.s.kept_source, kept)), read(tile(w.s.source, 0))});
      co_await tasks.insert(keeping_kernel,
                            {write(tile(w.s.kept_sunk, kept)), read(tile(w.s.sunk, 1))});
    }
  }
}

JobSpec job_of(const Setting& s, std::int64_t salt, bool fails) {
  JobSpec spec;
  spec.name = "parts";
  for (const auto& m : {s.source, s.sunk, s.kept_source, s.kept_sunk}) {
    spec.matrices.push_back(m.id());
    spec.keep_alive.push_back(m.state());
  }
  spec.program = [w = Walk{s, salt, fails}](TaskStream& tasks) { return walk(tasks, w); };
  const auto nodes = static_cast<std::int32_t>(s.node.size());
  spec.readers = [source = s.source.id(), nodes](protocol::TileId tile, Version number) {
    std::vector<protocol::Reader> readers;
    const std::int32_t home = tile.matrix == source ? 0 : 1;
    const bool travels = tile.index == home && number > Version{0};
    for (std::int32_t r = 0; travels && r < nodes; ++r) {
      if (r != home) readers.push_back({NodeId{r}, 0});
    }
    return readers;
  };
  spec.part = [parts = s.parts](protocol::TileId, Version number) {
    return parts.at(static_cast<std::size_t>(number.value()) - 1);
  };
  return spec;
}

// ---- what is expected ------------------------------------------------------------------------

bool contains(const TilePart& part, std::int64_t rows, std::int64_t i, std::int64_t j) {
  const std::int64_t row = i - part.first_row;
  const std::int64_t count =
      part.row_count == TilePart::to_the_end ? rows - part.first_row : part.row_count;
  if (row < 0 || row >= count) return false;
  return part.shape == Shape::full || (part.shape == Shape::upper ? row <= j : row > j);
}

/// Elements of all parts, counted one by one.
std::int64_t elements_of(const Setting& s) {
  std::int64_t count = 0;
  for (const TilePart& part : s.parts) {
    for (std::int64_t j = 0; j < s.columns; ++j) {
      for (std::int64_t i = 0; i < s.rows; ++i) count += contains(part, s.rows, i, j) ? 1 : 0;
    }
  }
  return count;
}

void check_kept(const Setting& s, Matrix<double> kept, const char* what, std::int64_t salt) {
  const std::int64_t nodes = s.node.size();
  kept.for_each_tile([&](TileRow row, TileColumn, TileView seen) {
    const std::int64_t v = row.value() / nodes;
    const TilePart& part = s.parts[static_cast<std::size_t>(v)];
    for (std::int64_t j = 0; j < s.columns; ++j) {
      for (std::int64_t i = 0; i < s.rows; ++i) {
        if (!contains(part, s.rows, i, j)) continue;
        s.defects.expect(seen(i, j) == value(salt, v, i, j),
                         "node {}: version {} of the {} tile, {} x {}, is {} at ({}, {})",
                         s.node.rank(), v + 1, what, s.rows, s.columns, seen(i, j), i, j);
      }
    }
  });
}

/// Runs the job; what the nodes sent must be the elements of the parts, in as many messages as
/// there are versions to go elsewhere: to each other node, and once more to where the sunk tile
/// lives.
void run(const Setting& s, std::int64_t salt, bool fails) {
  const Counters::Traffic before = NodeInternals(s.node).engine().counters().traffic();
  const JobResult result = s.node.submit(job_of(s, salt, fails)).wait();
  const Counters::Traffic after = NodeInternals(s.node).engine().counters().traffic();
  std::array<double, 2> sent{static_cast<double>(after.messages - before.messages),
                             static_cast<double>(after.bytes_sent - before.bytes_sent)};
  s.node.all_reduce(sent, Reduction::sum);

  const auto ways = static_cast<double>(2 * s.node.size() - 1);
  const double messages = ways * static_cast<double>(s.parts.size());
  const double bytes = fails ? 0 : 8 * ways * static_cast<double>(elements_of(s));
  s.defects.expect(sent[0] == messages && sent[1] == bytes,
                   "{} x {}: {} bytes in {} messages were sent, {} in {} expected", s.rows,
                   s.columns, sent[1], sent[0], bytes, messages);
  if (fails) {
    s.defects.expect(result.status == JobResult::Status::numerical_failure && result.info == 11,
                     "the failing job ended with status {}, info {}",
                     static_cast<int>(result.status), result.info);
    return;
  }
  s.defects.expect(result.status == JobResult::Status::done, "status {}",
                   static_cast<int>(result.status));
  check_kept(s, s.kept_source, "source", salt);
  check_kept(s, s.kept_sunk, "sunk", salt);
}

/// Ends the job in the middle of it.
void cancel(const Setting& s, std::int64_t salt) {
  Job job = s.node.submit(job_of(s, salt, false));
  if (s.node.rank() == s.node.size() - 1) job.cancel();
  const auto status = static_cast<double>(job.wait().status);
  std::array<double, 1> most{status};
  s.node.all_reduce(most, Reduction::maximum);
  s.defects.expect(
      most[0] == status && (status == static_cast<double>(JobResult::Status::cancelled) ||
                            status == static_cast<double>(JobResult::Status::done)),
      "the cancelled job ended with {} here, {} elsewhere", status, most[0]);
}

// ---- what is tried ---------------------------------------------------------------------------

Parts parts_of(std::int64_t rows) {
  Parts parts{{}};
  for (const Shape shape : {Shape::upper, Shape::lower, Shape::full}) {
    parts.push_back({shape});
    for (std::int64_t first = 0; first <= rows; first += 2) {
      parts.push_back({shape, first});
      for (std::int64_t count = 0; first + count <= rows; count += 3) {
        parts.push_back({shape, first, count});
      }
    }
  }
  return parts;
}

/// More shapes than MPI types are kept for.
Parts many_parts(std::int64_t rows) {
  Parts parts;
  for (std::int64_t count = rows; count > 1; --count) {
    for (const Shape shape : {Shape::upper, Shape::lower, Shape::full}) {
      parts.push_back({shape, rows - count, count});
    }
  }
  return parts;
}

Setting setting(Node& node, Defects& defects, std::int64_t rows, std::int64_t columns,
                Parts parts) {
  const auto kept = static_cast<std::int64_t>(parts.size()) * node.size();
  const auto make = [&](std::int64_t count) {
    return node.matrix<double>(column_of_tiles(node, count, rows, columns));
  };
  return {node, defects, rows, columns, std::move(parts), make(1), make(2), make(kept), make(kept)};
}

void try_own_memory(Node& node, Defects& defects, std::int64_t rows, std::int64_t columns) {
  const Setting s = setting(node, defects, rows, columns, parts_of(rows));
  run(s, 1, false);
  run(s, 2, true);
  run(s, 3, false);
  for (std::int64_t salt = 4; salt < 8; ++salt) cancel(s, salt);
  run(s, 8, false);
}

/// Too large for a note: where messages pass the wire, pieces are posted for them, also for those
/// that come empty.
void try_large_tiles(Node& node, Defects& defects) {
  Parts parts;
  for (int i = 0; i < 5; ++i) {
    parts.insert(parts.end(), {{}, {Shape::upper}, {Shape::lower}, {Shape::full, 1, 50}});
  }
  const Setting s = setting(node, defects, 60, 60, std::move(parts));
  run(s, 1, false);
  run(s, 2, true);
  for (std::int64_t salt = 3; salt < 7; ++salt) cancel(s, salt);
  run(s, 7, false);
}

/// Tiles in memory whose columns are further apart than they are long, here and there.
void try_callers_memory(Node& node, Defects& defects, std::int64_t rows, std::int64_t columns) {
  constexpr double guard = -7;
  const std::int64_t leading = rows + 3 + node.rank();
  std::vector<double> source(static_cast<std::size_t>(leading * columns), guard);
  std::vector<double> sunk = source;
  Setting s = setting(node, defects, rows, columns, parts_of(rows));
  s.source = node.wrap(source.data(), leading, column_of_tiles(node, 1, rows, columns));
  s.sunk = node.wrap(sunk.data(), leading, column_of_tiles(node, 2, rows, columns));
  run(s, 1, false);
  for (const std::vector<double>& memory : {source, sunk}) {
    for (std::int64_t j = 0; j < columns; ++j) {
      for (std::int64_t i = rows; i < leading; ++i) {
        s.defects.expect(memory[static_cast<std::size_t>(i + j * leading)] == guard,
                         "node {}: memory between the columns of the caller's tile was written",
                         node.rank());
      }
    }
  }
}

void try_types(Defects& defects) {
  constexpr std::int64_t rows = 20;
  std::vector<double> memory(rows * 3);
  TileMessages messages(4);
  for (int round = 0; round < 2; ++round) {
    for (const TilePart& part : many_parts(rows)) {
      const TileMessage message = messages.message({memory.data(), rows, 3, rows}, part);
      const std::int64_t bytes = message.type.size() * message.count;
      defects.expect(static_cast<std::size_t>(bytes) == message.bytes(),
                     "a type of {} bytes for {}", bytes, message.bytes());
      defects.expect(messages.types() <= 4, "{} types are kept", messages.types());
    }
  }
  defects.expect(messages.types() == 4, "{} types are kept", messages.types());
}

/// One node has no number, each in its turn: all see the same bits, whatever it is reduced to.
void try_reductions(Node& node, Defects& defects) {
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  for (int bad = 0; bad < node.size(); ++bad) {
    for (const Reduction reduction : {Reduction::sum, Reduction::maximum, Reduction::minimum}) {
      const double own_none = node.rank() % 2 == 0 ? none : -none;
      std::array<double, 3> values{node.rank() == bad ? own_none : 1.0 + node.rank(),
                                   node.rank() == bad ? 7.0 : 2.0, -0.0};
      node.all_reduce(values, reduction);
      const double rest = node.size() - 1;
      const double expected = reduction == Reduction::sum       ? 7 + 2 * rest
                              : reduction == Reduction::maximum ? 7
                              : node.size() > 1                 ? 2
                                                                : 7;
      const bool has_bits_of_none =
          std::bit_cast<std::uint64_t>(values[0]) == std::bit_cast<std::uint64_t>(none);
      defects.expect(has_bits_of_none && values[1] == expected && values[2] == 0,
                     "reduction {} with no number on node {}: {}, {}, {}",
                     static_cast<int>(reduction), bad, values[0], values[1], values[2]);
    }
  }
}

/// Nothing, and more than fits on a board of the host: each element by its formula.
void try_sizes(Node& node, Defects& defects) {
  for (const std::size_t count : {std::size_t{0}, std::size_t{5}, std::size_t{10007}}) {
    std::vector<double> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<double>(i) + node.rank();
    node.all_reduce(values, Reduction::sum);
    const int size = node.size();
    for (std::size_t i = 0; i < count; ++i) {
      const double expected = size * static_cast<double>(i) + 0.5 * size * (size - 1);
      defects.expect(values[i] == expected, "element {} of {} is {} instead of {}", i, count,
                     values[i], expected);
    }
  }
}

void run_all(bool devices, Defects& defects) {
  try_types(defects);
  int size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (const int seed : {0, 1, 2}) {
    NodeFaults faults;
    faults.messages = {static_cast<std::uint64_t>(seed == 0 ? 0 : 200),
                       static_cast<std::uint64_t>(seed)};
    if (seed == 2) faults.extra_blocks_max = 0;
    for (int n = 0; n < size; ++n) faults.hosts.push_back(seed == 2 ? n / 2 : n);
    const std::string yaml = fmt::format(
        "layout: {{grid: [{}, 1]}}\n"
        "runtime: {{watchdog_seconds: 20, wait: {}, cpu_workers: 2, devices: {{backend: {}}}, "
        "messages: {{path: {}, readers: {}}}}}\n",
        size, seed == 1 ? "park" : "adaptive",
        devices ? "emulated, per_node: 2, memory: 64MiB" : "none", seed == 2 ? "message" : "auto",
        seed == 0 ? "auto" : "tree");
    Node node(Config::from_text(yaml, "parts"), MPI_COMM_WORLD, &faults);
    try_reductions(node, defects);
    try_sizes(node, defects);
    try_own_memory(node, defects, 7, 7);
    try_own_memory(node, defects, 11, 4);
    try_own_memory(node, defects, 5, 9);
    try_own_memory(node, defects, 6, 1);
    try_own_memory(node, defects, 1, 5);
    try_large_tiles(node, defects);
    try_callers_memory(node, defects, 7, 5);
    try_callers_memory(node, defects, 4, 6);
    try_callers_memory(node, defects, 1, 1);
    if (seed == 0) run(setting(node, defects, 100, 3, many_parts(100)), 1, false);
    run(setting(node, defects, 200, 300, {{Shape::upper}, {Shape::lower}, {Shape::full, 1, 150}}),
        1, false);
    // In several pieces, which are passed on one by one where messages take the wire.
    const Setting pieces = setting(node, defects, 600, 300, Parts(8));
    run(pieces, 1, false);
    run(pieces, 2, true);
    for (std::int64_t salt = 3; salt < 6; ++salt) cancel(pieces, salt);
    run(pieces, 6, false);
    node.stop();
  }
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
  heddle::Defects defects;
  try {
    heddle::run_all(argc > 1 && std::string(argv[1]) == "devices", defects);
  } catch (const std::exception& error) {
    fmt::print(stderr, "parts_program: {}\n", error.what());
    std::fflush(nullptr);
    std::_Exit(3);  // the other nodes may not come to MPI_Finalize
  }
  MPI_Finalize();
  return defects.none() ? 0 : 1;
}
