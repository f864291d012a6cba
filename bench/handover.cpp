/// How long does it take from a task's end on one node to its reader's start on the other, beside a
/// plain copy of the same bytes and one wake-up of a thread? A chain of tasks on two nodes of a
/// host, each of which copies the other node's tile into its own. To be started on two nodes:
/// mpiexec.mpich -n 2 handover. What arrives at the end is validated.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fmt/core.h>
#include <mpi.h>
#include <string>
#include <thread>
#include <vector>

#include "bench/node_run.hpp"
#include "node-runtime/node.hpp"
#include "node-runtime/node_facts.hpp"
#include "node-runtime/threads/program.hpp"

namespace heddle {
namespace {

/// By the clock that both processes share; 0: the task ran on the other node.
struct Times {
  std::vector<double> begun;
  std::vector<double> ended;
};

struct Hop {
  Times* times;
  std::int64_t number;
};

/// Each element of the other node's tile, plus one.
std::int64_t pass_on(const KernelArguments& arguments) {
  const double begun = now();
  const auto hop = arguments.parameters.as<Hop>();
  const TileView& to = arguments.tiles[0];
  const TileView& from = arguments.tiles[1];
  for (std::int64_t j = 0; j < to.columns; ++j) {
    for (std::int64_t i = 0; i < to.rows; ++i) to(i, j) = from(i, j) + 1;
  }
  hop.times->begun[static_cast<std::size_t>(hop.number)] = begun;
  hop.times->ended[static_cast<std::size_t>(hop.number)] = now();
  return 0;
}
constexpr Kernel passing{.name = "pass on", .host = pass_on, .emulated = pass_on};

Program chain(TaskStream& tasks, Matrix<double> tiles, Times& times) {
  const auto tile = [&](std::int64_t hop) {
    return tiles(TileRow{static_cast<std::int32_t>(hop % 2)}, TileColumn{0});
  };
  for (std::int64_t hop = 0; hop < static_cast<std::int64_t>(times.begun.size()); ++hop) {
    TaskOptions options;
    options.parameters = KernelParameters(Hop{&times, hop});
    co_await tasks.insert(passing, {read_write(tile(hop)), read(tile(hop + 1))}, options);
  }
}

/// The last hop's tile holds the number of hops.
void check(Matrix<double> tiles, std::int64_t hops) {
  tiles.for_each_tile([&](TileRow row, TileColumn, TileView tile) {
    if (row.value() != (hops - 1) % 2) return;
    for (std::int64_t j = 0; j < tile.columns; ++j) {
      for (std::int64_t i = 0; i < tile.rows; ++i) {
        if (tile(i, j) == static_cast<double>(hops)) continue;
        throw Error(ErrorCode::internal,
                    fmt::format("element ({}, {}) is {} after {} hops", i, j, tile(i, j), hops));
      }
    }
  });
}

/// Microseconds from each task's end to the next one's begin, sorted.
std::vector<double> run(Node& node, std::int64_t bytes, std::int64_t hops) {
  constexpr std::int64_t columns = 32;
  const std::int64_t rows = bytes / static_cast<std::int64_t>(sizeof(double)) / columns;
  MatrixSpec spec(2 * rows, columns);
  spec.layout.tile = rows;
  spec.layout.wide = columns;
  spec.distribution = node.facts().distribution;
  spec.distribution.grid_rows = 2;
  spec.distribution.grid_columns = 1;
  auto tiles = node.matrix<double>(spec);
  tiles.fill([](std::int64_t, std::int64_t) { return 0.0; });
  const auto count = static_cast<std::size_t>(hops);
  Times times{std::vector<double>(count), std::vector<double>(count)};
  JobSpec job;
  job.name = "hand-over";
  job.matrices = {tiles.id()};
  job.keep_alive = {tiles.state()};
  job.program = [&](TaskStream& tasks) { return chain(tasks, tiles, times); };
  node.barrier();
  const JobResult result = node.submit(job).wait();
  if (result.status != JobResult::Status::done) {
    throw Error(ErrorCode::internal, "the chain did not end well");
  }
  check(tiles, hops);
  for (std::vector<double>* part : {&times.begun, &times.ended}) {
    node.all_reduce(*part, Reduction::maximum);
  }
  std::vector<double> us;
  for (std::size_t hop = count / 10; hop < count; ++hop) {
    us.push_back((times.begun[hop] - times.ended[hop - 1]) * 1e6);
  }
  std::ranges::sort(us);
  return us;
}

double quantile(const std::vector<double>& sorted, double share) {
  return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1))];
}

/// Microseconds of a copy by one core, of bytes that it has just written.
std::vector<double> plain_copies(std::int64_t bytes, std::int64_t count) {
  const auto size = static_cast<std::size_t>(bytes);
  std::vector<char> from(size, 1);
  std::vector<char> to(size, 2);
  std::vector<double> us;
  for (std::int64_t i = 0; i < count; ++i) {
    std::memset(from.data(), static_cast<int>(i % 100), size);
    const double begin = now();
    std::memcpy(to.data(), from.data(), size);
    us.push_back((now() - begin) * 1e6);
    if (to[size - 1] != static_cast<char>(i % 100)) throw Error(ErrorCode::internal, "a copy");
  }
  std::ranges::sort(us);
  return us;
}

/// Microseconds until a thread that sleeps for a word sees it.
std::vector<double> wake_ups(int count) {
  std::atomic<int> word{0};
  std::vector<double> told(static_cast<std::size_t>(count));
  std::vector<double> us;
  std::thread sleeper([&] {
    for (int i = 1; i <= count; ++i) {
      word.wait(2 * i - 2, std::memory_order_acquire);
      us.push_back((now() - told[static_cast<std::size_t>(i) - 1]) * 1e6);
      word.store(2 * i, std::memory_order_release);
    }
  });
  for (int i = 1; i <= count; ++i) {
    while (word.load(std::memory_order_acquire) != 2 * i - 2) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::microseconds(200));  // it sleeps by now
    told[static_cast<std::size_t>(i) - 1] = now();
    word.store(2 * i - 1, std::memory_order_release);
    word.notify_one();
  }
  sleeper.join();
  std::ranges::sort(us);
  return us;
}

int measure(Node& node, const std::string& name, bool on_device, const std::string& path,
            std::int64_t hops) {
  const auto print = [&](std::string_view what, std::int64_t bytes, const std::vector<double>& us) {
    if (node.rank() != 0) return;
    fmt::print(
        "peer={} op={} place={} path={} bytes={} us_lower={:.2f} us_median={:.2f} "
        "us_upper={:.2f}\n",
        name, what, on_device ? "device" : "host", path, bytes, quantile(us, 0.25),
        quantile(us, 0.5), quantile(us, 0.75));
  };
  for (std::int64_t bytes = 8192; bytes <= (8 << 20); bytes *= 4) {
    const std::int64_t count = std::clamp<std::int64_t>(hops * (256 << 10) / bytes, 40, hops);
    static_cast<void>(run(node, bytes, 20));
    print("handover", bytes, run(node, bytes, count));
    if (node.rank() == 0) print("copy", bytes, plain_copies(bytes, count));
    node.barrier();
  }
  if (node.rank() == 0) print("wake-up", 0, wake_ups(200));
  node.barrier();
  return 0;
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) try {
  int workers = 1;
  std::int64_t hops = 400;
  bool on_device = false;
  std::string path = "auto";
  std::string name = "heddle";
  CLI::App app{"Time from a task's end on one node to its reader's start on another"};
  app.add_option("--workers", workers, "CPU workers of each node");
  app.add_option("--hops", hops, "tasks of a chain of small tiles; fewer of large ones");
  app.add_flag("--device", on_device, "tiles live on emulated devices");
  app.add_option("--path", path, "runtime.messages.path");
  app.add_option("--name", name, "as the lines call it");
  CLI11_PARSE(app, argc, argv);
  const heddle::Config config = heddle::Config::from_text(
      fmt::format("runtime: {{cpu_workers: {}, devices: {{{}}}, messages: {{path: {}}}}}", workers,
                  on_device ? "backend: emulated, per_node: 1, memory: 256MiB" : "backend: none",
                  path),
      "handover");
  return heddle::run_on_node(config, true, [&](heddle::Node& node) {
    if (node.size() != 2) {
      throw heddle::Error(heddle::ErrorCode::usage, "start it on two nodes: mpiexec -n 2");
    }
    return heddle::measure(node, name, on_device, path, hops);
  });
} catch (const std::exception& error) {
  fmt::print(stderr, "handover: {}\n", error.what());
  return 1;
}
