#include "apps/gemm_rate.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <thread>
#include <vector>

#include "algorithms/io/agreement.hpp"
#include "base/error.hpp"
#include "kernels/kernels.hpp"
#include "node-runtime/memory/tile_store.hpp"
#include "node-runtime/node_facts.hpp"
#include "node-runtime/node_internals.hpp"
#include "node-runtime/threads/program.hpp"

namespace heddle {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double flops_min =
    3.5e8;  ///< shorter factorizations are not measured: Cholesky of order 1000
/// Duration of the measured burst: a share of the factorization's, within these.
constexpr double share_wanted = 0.05;
constexpr double seconds_min = 0.01;
constexpr double seconds_max = 0.12;
constexpr std::int32_t tiles_each = 3;  ///< outputs per worker or device, used in turn
/// Repeats until a burst is long enough: the first one on a device includes its setup.
constexpr int bursts_max = 5;
/// CPU workers reach their rate with smaller tiles than GPUs, whose tiles would take seconds.
constexpr std::int64_t host_tile_max = 512;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// End of each of the concurrent jobs, in seconds since `begin`.
std::vector<double> times_of_ends(std::vector<Job>& jobs, Clock::time_point begin) {
  std::vector<double> ends(jobs.size(), 0.0);
  for (std::size_t open = jobs.size(); open > 0;) {
    for (std::size_t j = 0; j < jobs.size(); ++j) {
      if (ends[j] > 0 || !jobs[j].done()) continue;
      ends[j] = seconds_since(begin);
      --open;
    }
    if (open == 1) {
      const auto last = std::find(ends.begin(), ends.end(), 0.0) - ends.begin();
      jobs[static_cast<std::size_t>(last)].wait();
    } else if (open > 1) {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
  return ends;
}

/// `rounds` updates of each local tile of `c` by one of the tiles of `a` in the same column.
Program updates(TaskStream& tasks, Matrix<double> c, Matrix<double> a, std::int32_t rounds) {
  for (std::int32_t round = 0; round < rounds; ++round) {
    for (TileColumn j{0}; j.value() < c.layout().tile_columns(); ++j) {
      for (TileRow i{0}; i.value() < c.layout().tile_rows(); ++i) {
        if (c.home(i, j).node != tasks.node()) continue;
        TaskOptions options;
        options.parameters = KernelParameters(kernel::UpdateParameters{0});
        const TileRow factor{i.value() % a.layout().tile_rows()};
        co_await tasks.insert(
            kernel::gsmm, {read_write(c(i, j)), read(a(factor, j)), read(a(factor, j))}, options);
      }
    }
  }
}

/// Square tiles for one kind of place: host workers or devices.
class Burst {
 public:
  Burst(Node& node, std::int64_t tile, bool on_devices)
      : flops_each_(2 * std::pow(static_cast<double>(tile), 3)),
        c_(make(node, tile, on_devices, tiles_each)),
        a_(make(node, tile, on_devices, 1)) {}

  /// Collective.
  void fill() {
    const auto element = [](std::int64_t i, std::int64_t j) {
      return 0.5 + 1e-3 * static_cast<double>(i % 1024 - j % 1024);
    };
    a_.fill(element);
    c_.fill(element);
  }

  [[nodiscard]] JobSpec job(std::int32_t rounds) const {
    JobSpec spec;
    spec.name = "gemm rate";
    spec.matrices = {c_.id(), a_.id()};
    spec.keep_alive = {c_.state(), a_.state()};
    spec.program = [c = c_, a = a_, rounds](TaskStream& tasks) {
      return updates(tasks, c, a, rounds);
    };
    return spec;
  }

  /// Per round on this node.
  [[nodiscard]] double flops() const { return flops_each_ * tiles_; }

 private:
  Matrix<double> make(Node& node, std::int64_t tile, bool on_devices, std::int64_t each) {
    const NodeFacts& facts = node.facts();
    const std::int64_t places = on_devices ? facts.devices : 1;
    const std::int64_t rows = each * (on_devices ? 1 : facts.cpu_workers);
    const Distribution& d = facts.distribution;
    MatrixSpec spec({.rows = tile * rows * d.grid_rows,
                     .columns = tile * places * d.grid_columns,
                     .tile = tile},
                    d);
    if (!on_devices) spec.distribution.devices = 0;
    spec.spare_count = 0;  // no renaming
    if (each == tiles_each) tiles_ = static_cast<double>(rows * places);
    return node.matrix<double>(spec);
  }

  double flops_each_;
  double tiles_ = 0;
  Matrix<double> c_;
  Matrix<double> a_;
};

/// Tiles for all places that compute; none if a node lacks memory for them. Collective.
std::vector<Burst> make_bursts(Node& node, const TileLayout& layout) {
  const std::int64_t device_tile = layout.tile;
  // Without a strip, and unless they are lent tasks, CPU workers leave the products to devices.
  const bool hosts_compute =
      node.facts().devices == 0 || layout.strip > 0 || node.facts().moves_tasks;
  std::vector<Burst> bursts;
  bool has_room = true;
  const auto block = static_cast<std::size_t>(device_tile * device_tile) * sizeof(double);
  for (std::int32_t p = 1; p < NodeInternals(node).store().places(); ++p) {
    // A device with room for all its tiles must not start to evict because of this.
    const bool fits = NodeInternals(node).store().cache(PlaceId{p}).holds_all();
    const bool will_fit =
        NodeInternals(node).store().blocks_available(PlaceId{p}, block) >= tiles_each + 1;
    has_room = has_room && (!fits || will_fit);
  }
  try {
    if (has_room && hosts_compute) {
      bursts.emplace_back(node, std::min(layout.tile, host_tile_max), false);
    }
    if (has_room && node.facts().devices > 0) bursts.emplace_back(node, device_tile, true);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::usage) throw;
    has_room = false;
  }
  if (reduce(node, has_room ? 1 : 0, Reduction::minimum) == 0) return {};
  for (Burst& burst : bursts) burst.fill();
  return bursts;
}

}  // namespace

std::optional<double> measure_gemm_rate(Node& node, const TileLayout& layout, double flops) {
  const double product = 2 * std::pow(static_cast<double>(layout.tile), 3);
  if (flops < flops_min || flops < product) return std::nullopt;
  const std::vector<Burst> bursts = make_bursts(node, layout);
  if (bursts.empty()) return std::nullopt;

  double rate = 0;  // of this node
  std::vector<std::int32_t> rounds(bursts.size(), 1);
  bool is_long_enough = false;
  for (int tries = 0; tries < bursts_max && !is_long_enough; ++tries) {
    std::vector<Job> jobs;
    for (std::size_t b = 0; b < bursts.size(); ++b) {
      jobs.push_back(node.prepare(bursts[b].job(rounds[b])));
    }
    node.barrier();
    const Clock::time_point begin = Clock::now();
    for (Job& job : jobs) job.start();
    const std::vector<double> ends = times_of_ends(jobs, begin);
    rate = 0;
    for (std::size_t b = 0; b < bursts.size(); ++b) {
      rate += bursts[b].flops() * rounds[b] / std::max(ends[b], 1e-6);
    }
    // Equal on all nodes, which must insert the same tasks; so are the slowest times below.
    const double rate_of_all = reduce(node, rate, Reduction::sum);
    const double seconds_wanted =
        std::clamp(share_wanted * flops / rate_of_all, seconds_min, seconds_max);
    is_long_enough = tries > 0;
    for (std::size_t b = 0; b < bursts.size(); ++b) {
      const double slowest = reduce(node, std::max(ends[b], 1e-6), Reduction::maximum);
      is_long_enough &= slowest > seconds_wanted / 2;
      const double wanted = rounds[b] * seconds_wanted / slowest;
      rounds[b] = static_cast<std::int32_t>(std::clamp(wanted, 1.0, 10000.0));
    }
  }
  return reduce(node, rate, Reduction::sum) / 1e9;
}

}  // namespace heddle
