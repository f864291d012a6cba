/// What one node of several does wrong, or throws, and what all of them hear of it.
///
///   mpiexec -n N failures_program CASE
///
/// Each node prints one line: how it went.

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fmt/core.h>
#include <functional>
#include <map>
#include <mpi.h>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "algorithms/io/agreement.hpp"
#include "node-runtime/messages.hpp"
#include "node-runtime/node.hpp"
#include "node-runtime/node_facts.hpp"
#include "node-runtime/node_faults.hpp"
#include "node-runtime/threads/program.hpp"

namespace heddle {
namespace {

std::int64_t add_one(const KernelArguments& arguments) {
  arguments.tiles[0](0, 0) += 1;
  return 0;
}
std::int64_t throw_at_three(const KernelArguments& arguments) {
  if (arguments.tiles[0](0, 0) == 3) throw std::runtime_error("three is too many");
  return add_one(arguments);
}
constexpr Kernel increment{.name = "increment", .host = add_one, .emulated = add_one};
constexpr Kernel throwing{.name = "throwing", .host = throw_at_three, .emulated = throw_at_three};
constexpr Kernel add_other{.name = "add other", .host = add_one, .emulated = add_one};

constexpr std::int64_t tile_size = 4;

/// As many tiles as nodes, one on each, all zero.
Matrix<double> column(Node& node) {
  MatrixSpec spec(node.size() * tile_size, tile_size);
  spec.layout.tile = tile_size;
  spec.distribution = node.facts().distribution;
  Matrix<double> m = node.matrix<double>(spec);
  m.fill([](std::int64_t, std::int64_t) { return 0.0; });
  return m;
}
TileRef cell(const Matrix<double>& m, int i) {
  return m(TileRow{i}, TileColumn{0});
}

/// Every node's tile is counted up, and reads its neighbour's each time; `kernel` is of the last
/// node.
Job begin_count(Node& node, const Matrix<double>& m, int steps, const Kernel& kernel) {
  UserStream stream = node.stream("count", {m});
  for (int step = 0; step < steps; ++step) {
    for (int i = 0; i < node.size(); ++i) {
      const Kernel& own = i == node.size() - 1 ? kernel : add_other;
      if (node.size() == 1) {
        stream.insert(own, {read_write(cell(m, i))});
      } else {
        stream.insert(own, {read_write(cell(m, i)), read(cell(m, (i + 1) % node.size()))});
      }
    }
  }
  return stream.end();
}
JobResult count(Node& node, const Matrix<double>& m, int steps, const Kernel& kernel) {
  return begin_count(node, m, steps, kernel).wait();
}

std::string told(const JobResult& result) {
  switch (result.status) {
    case JobResult::Status::done:
      return "done";
    case JobResult::Status::failed:
      return fmt::format("failed ({}): {}", exit_status(result.code), result.error);
    default:
      return "another end";
  }
}

/// The last node's kernel throws at its fourth call; the job after it runs.
std::string kernel(Node& node) {
  const Matrix<double> m = column(node);
  const std::string failed = told(count(node, m, 50, throwing));
  return failed + "; then " + told(count(node, m, 5, increment));
}

/// The last node's visit throws; the others hear it.
std::string visit(Node& node) {
  Matrix<double> m = column(node);
  std::string heard = "nothing";
  try {
    m.for_each_tile([&](TileRow i, TileColumn, TileView) {
      if (i.value() == node.size() - 1) throw Error(ErrorCode::usage, "no such tile");
    });
  } catch (const Error& error) {
    heard = fmt::format("({}) {}", exit_status(error.code()), error.what());
  }
  return heard + "; then " + told(count(node, m, 5, increment));
}

Program count_up(TaskStream& tasks, Matrix<double> m, int walk) {
  for (int i = 0; i < 30; ++i) {
    if (walk == 2 && i == 20) throw std::runtime_error("at twenty");
    for (TileRow r{0}; r.value() < m.layout().tile_rows(); ++r) {
      co_await tasks.insert(increment, {read_write(m(r, TileColumn{0}))});
    }
  }
}

/// All nodes' programs throw at the same call, when they are run.
std::string program(Node& node) {
  const Matrix<double> m = column(node);
  JobSpec spec;
  spec.name = "count";
  spec.matrices = {m.id()};
  spec.keep_alive = {m.state()};
  int walk = 0;
  spec.program = [m, &walk](TaskStream& tasks) { return count_up(tasks, m, ++walk); };
  const std::string failed = told(node.submit(std::move(spec)).wait());
  return failed + "; then " + told(count(node, m, 5, increment));
}

/// Memory is missing on the last node in what all nodes agree on.
std::string agreement(Node& node) {
  std::string heard = "nothing";
  try {
    together(node, [&] {
      if (node.rank() == node.size() - 1) throw std::bad_alloc();
    });
  } catch (const AgreedError& error) {
    heard = fmt::format("({}) {}", exit_status(error.code()), error.what());
  }
  return heard + "; then " + told(count(node, column(node), 5, increment));
}

/// The last node starts its two jobs in another order.
std::string order(Node& node) {
  const Matrix<double> a = column(node);
  const Matrix<double> b = column(node);
  const auto job = [&](const Matrix<double>& m) {
    JobSpec spec;
    spec.name = "count";
    spec.matrices = {m.id()};
    spec.keep_alive = {m.state()};
    spec.program = [m](TaskStream& tasks) { return count_up(tasks, m, 1); };
    return node.prepare(std::move(spec));
  };
  Job first = job(a);
  Job second = job(b);
  if (node.rank() == node.size() - 1) std::swap(first, second);
  first.start();
  second.start();
  static_cast<void>(first.wait());
  static_cast<void>(second.wait());
  // The first node compares: others may be through before it has heard of all.
  node.barrier();
  return "done";
}

/// The last node is left by an exception while the others are in a collective.
std::string exception(Node& node) {
  if (node.rank() == node.size() - 1) throw std::runtime_error("own trouble");
  node.barrier();
  return "done";
}

/// The last node is destroyed without stop(), while the others wait for its part of a job.
std::string forgotten(Node& node) {
  const Matrix<double> m = column(node);
  if (node.rank() == node.size() - 1) return "left";
  return told(count(node, m, 5, increment));
}

std::atomic<int> slow_calls{0};
std::int64_t add_slowly(const KernelArguments& arguments) {
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  slow_calls.fetch_add(1, std::memory_order_relaxed);
  return add_one(arguments);
}
constexpr Kernel slow{.name = "slow", .host = add_slowly, .emulated = add_slowly};

/// All nodes stop while a job is in flight whose handle is gone.
std::string dropped(Node& node) {
  constexpr int steps = 40;
  static_cast<void>(begin_count(node, column(node), steps, slow));
  const bool is_last = node.rank() == node.size() - 1;
  const bool in_flight = slow_calls.load(std::memory_order_relaxed) < steps;
  node.stop();
  return fmt::format("{}, {} calls", !is_last || in_flight ? "in flight" : "over",
                     slow_calls.load(std::memory_order_relaxed));
}

/// Another process takes the memory of the last node's device before the first matrix needs it.
std::string taken(Node& node) {
  std::string heard = "nothing";
  MatrixSpec spec(node.size() * tile_size, tile_size);
  spec.layout.tile = tile_size;
  spec.distribution = node.facts().distribution;
  try {
    together(node, [&] { static_cast<void>(node.matrix<double>(spec)); });
  } catch (const AgreedError& error) {
    heard = fmt::format("({}) {}", exit_status(error.code()), error.what());
  }
  MatrixSpec on_host = spec;
  on_host.distribution.devices = 0;
  Matrix<double> m = node.matrix<double>(on_host);
  // Matrices of later calls are the same ones on all nodes.
  m.fill([](std::int64_t i, std::int64_t) { return static_cast<double>(i); });
  double own = 0;
  m.read_columns([&](TileRow, TileColumn, std::int64_t, TileView tile) { own += tile(0, 0); });
  return fmt::format("{}; then {}", heard, reduce(node, own, Reduction::sum));
}

/// The last node computes for longer than the watchdog waits, each time that the others are in a
/// collective: by the memory of the host, and by messages.
std::string late(Node& node) {
  const auto compute = [&] {
    if (node.rank() == node.size() - 1) std::this_thread::sleep_for(std::chrono::seconds(2));
  };
  compute();
  node.barrier();
  compute();
  node.barrier();
  std::vector<double> values(10000, 1.0);
  compute();
  node.all_reduce(values, Reduction::sum);
  return fmt::format("{} in all", values.back());
}

/// The last node reduces what the others do not.
std::string differ(Node& node) {
  std::array<double, 2> values{};
  const std::size_t count = node.rank() == node.size() - 1 ? 2 : 1;
  try {
    node.all_reduce(std::span(values).first(count), Reduction::sum);
  } catch (const Error& error) {
    return fmt::format("({}) {}", exit_status(error.code()), error.what());
  }
  return "nothing";
}

/// Two threads of node 0 are in a collective at the same time; the others come when one has been
/// refused.
std::string threads(Node& node) {
  std::atomic<int> refused{0};
  std::string heard;
  if (node.rank() == 0) {
    const auto meet = [&] {
      try {
        node.barrier();
      } catch (const Error& error) {
        heard = error.what();
        refused.fetch_add(1, std::memory_order_release);
      }
    };
    std::thread one(meet);
    std::thread other(meet);
    while (refused.load(std::memory_order_acquire) == 0) std::this_thread::yield();
    for (int r = 1; r < node.size(); ++r) {
      static_cast<void>(node.messages().send({nullptr, 0}, Scalar::byte, 0, r, 0).wait());
    }
    one.join();
    other.join();
  } else {
    static_cast<void>(node.messages().receive({nullptr, 0}, Scalar::byte, 0, 0, 0).wait());
    node.barrier();
  }
  node.barrier();
  return fmt::format("{} refused: {}", refused.load(std::memory_order_relaxed), heard);
}

/// A collective behind the end.
std::string stopped(Node& node) {
  node.barrier();
  node.stop();
  try {
    node.barrier();
  } catch (const Error& error) {
    return fmt::format("({}) {}", exit_status(error.code()), error.what());
  }
  return "nothing";
}

int run(const std::string& name) {
  const std::map<std::string, std::function<std::string(Node&)>> cases{
      {"kernel", kernel},       {"visit", visit},         {"program", program},
      {"order", order},         {"agreement", agreement}, {"exception", exception},
      {"forgotten", forgotten}, {"dropped", dropped},     {"taken", taken},
      {"late", late},           {"differ", differ},       {"threads", threads},
      {"stopped", stopped}};
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::string line;
  bool is_good = false;
  try {
    int size = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const std::string yaml = fmt::format(
        "layout: {{grid: [{}, 1]}}\n"
        "runtime: {{cpu_workers: 1, watchdog_seconds: {}, devices: {{{}}}}}\n",
        size, name == "late" ? 1 : 20,
        name == "taken" ? "backend: emulated, per_node: 1, memory: 64MiB" : "backend: none");
    NodeFaults faults;
    if (name == "taken" && rank == size - 1) faults.devices.taken_beyond = 16 << 20;
    Node node(Config::from_text(yaml, "failures"), MPI_COMM_WORLD, &faults);
    line = cases.at(name)(node);
    is_good = line != "left";
    if (is_good) node.stop();
  } catch (const Error& error) {
    line = fmt::format("threw ({}): {}", exit_status(error.code()), error.what());
  } catch (const std::exception& error) {
    line = fmt::format("threw: {}", error.what());
  }
  fmt::print("node {}: {}\n", rank, line);
  std::fflush(nullptr);
  return is_good ? 0 : 1;
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
  const int status = heddle::run(argc > 1 ? argv[1] : "");
  // The launcher ends all when one ends without finalizing: not before each has said how it did.
  MPI_Barrier(MPI_COMM_WORLD);
  if (status != 0) std::_Exit(0);  // a node has failed: nobody finalizes MPI
  MPI_Finalize();
  return 0;
}
