#include "node-runtime/tuning.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/core.h>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "kernels/kernel_case.hpp"
#include "kernels/kernels.hpp"
#include "node-runtime/machine/kernel_costs.hpp"
#include "node-runtime/node.hpp"
#include "node-runtime/node_facts.hpp"

namespace heddle {
namespace {

/// Square tiles for CPUs: large enough for the kernels and for the memory that all cores share,
/// small enough that the last tile columns keep all cores busy. Fitted to bench/cholesky_cpu on two
/// cores (bench/results), where 128 was best for n = 500, 192 for 1000, 256 for 2000, 320 for 4000
/// and 384 from 6000 on; more cores want more tiles, the less so the more there are anyway: on 16
/// cores 128 was best for 2000, 192 for 4000 and 320 for 8000, on 31 192 for 4000 and 320 for 8000.
std::int64_t cpu_tile(std::int64_t n, std::int64_t cores) {
  const double order = static_cast<double>(n);
  const double sharing = 0.25 * std::min(1.0, std::pow(2000 / order, 0.45));
  const double wanted =
      140 * std::pow(order / 500, 0.38) * std::pow(2 / static_cast<double>(cores), sharing);
  return std::clamp<std::int64_t>(std::lround(wanted / 64) * 64, 64, 384);
}

/// Tiles with which GPUs' products are at their full rate and panels hide behind updates, on one,
/// two and four H200 from n = 4096 on (bench/results/2026-11-28-sizes-h200.md).
constexpr std::int64_t gpu_tile_usual = 2048;
/// Tile columns of that size for each GPU: two GPUs are faster than one from n = 8192 on.
constexpr std::int64_t gpu_tiles_each = 2;

/// Square tiles for GPUs. A matrix of up to two usual tiles is one tile: its factorization is one
/// task, a fifth faster than in four tiles at n = 4096.
std::int64_t gpu_tile(std::int64_t n, std::int64_t gpus, std::int64_t nodes) {
  const bool has_tiles_for_all = n >= gpus * gpu_tiles_each * gpu_tile_usual;
  if (nodes == 1 && gpus > 1 && n < gpu_tiles_each * gpu_tile_usual) {
    return std::max<std::int64_t>(1, (n + 1) / 2);  // more GPUs than help, wanted by number
  }
  if (nodes > 1 && !has_tiles_for_all) {
    std::int64_t tile = 256;
    while (tile < gpu_tile_usual && tile * 3 / 2 <= n / 16) tile *= 2;
    return tile;
  }
  if (gpus == 1 && n <= 2 * gpu_tile_usual) return n;
  return gpus == 1 && n >= 49152 ? 2 * gpu_tile_usual : gpu_tile_usual;
}

/// The tile, or halves of it until 16 fit into the memory of each device: a matrix that is larger
/// than that memory is factorized out of core. On one node only: others may have other memory, and
/// all must choose alike.
std::int64_t tile_in_memory(std::int64_t tile, const NodeFacts& facts) {
  constexpr std::uint64_t tiles = 16;
  if (facts.nodes > 1 || facts.device_memory_bytes == 0) return tile;
  const auto bytes = [](std::int64_t side) { return static_cast<std::uint64_t>(8 * side * side); };
  while (tile > 256 && tiles * bytes(tile) > facts.device_memory_bytes) tile = (tile + 1) / 2;
  return tile;
}

/// GPUs run several kernels side by side, and panels of one step beside updates of the one before:
/// two tile columns are enough (n = 4096).
constexpr std::int64_t gpu_tiles_min = 2;

/// What the measurements say for square tiles; nothing without them.
std::optional<std::int64_t> measured_tile(std::int64_t n, const NodeFacts& facts,
                                          std::int32_t devices) {
  const KernelTimes* times = measured_times(facts);
  return times == nullptr ? std::nullopt
                          : best_cholesky_tile(*times, n, workforce_of(facts, devices));
}

std::int64_t rule_tile(std::int64_t order, const NodeFacts& facts, std::int32_t devices) {
  if (facts.has_gpus()) {
    return tile_in_memory(gpu_tile(order, std::int64_t{devices} * facts.nodes, facts.nodes), facts);
  }
  if (facts.devices > 0) return std::clamp<std::int64_t>(order / 8 / 64 * 64, 128, 1024);
  return cpu_tile(order, facts.cpu_workers_of_all);
}

/// Parts a side of the largest tiles that are chosen to be divided.
constexpr std::int64_t divided_parts_max = 5;
/// Fine tasks of this size leave the kernels nearly all of their rate (bench/granularity).
constexpr std::int64_t fine_size_usual = 192;

constexpr std::int64_t divided_max = divided_parts_max * fine_size_usual;

/// The order that a tile's parts should have. Parts are smaller than usual where a node has more
/// workers than the largest tiles have usual parts. GFLOP/s on 62 workers
/// (bench/results/2026-11-26-64-cores-4-h200.md):
///
///     tile  part  n = 4000  n = 6000
///      960   192       700      1200
///      960   128      1000      1540
///      480   192       700      1660
///      480   128      1230      1730
std::int64_t fine_size(const NodeFacts& facts, std::int64_t tile) {
  constexpr std::int64_t least = 96;
  const std::int64_t workers = facts.cpu_workers_of_all / std::max<std::int64_t>(1, facts.nodes);
  std::int64_t parts = divided_parts_max;
  if (parts * parts >= workers) return fine_size_usual;
  while (parts * parts < workers) ++parts;
  return std::clamp(tile / parts, least, fine_size_usual);
}

/// Tiles to be divided: some parts a side, and as many tiles that one does not wait for another.
std::int64_t divided_tile(std::int64_t n, std::int64_t small) {
  return small * std::clamp<std::int64_t>(n / 8 / small, 2, divided_parts_max);
}

/// 10^9 bytes per second, where nothing was measured.
constexpr double copy_rate_unmeasured = 20;
constexpr double message_rate_unmeasured = 5;

/// Columns of a tile that CPUs beside GPUs are worth; 0 where that is too little or not known.
std::int64_t measured_strip(const NodeFacts& facts, std::int64_t tile, std::int64_t small) {
  const Measurements& measured = facts.tuning.measured;
  if (!facts.has_gpus() || !measured.cpu || measured.devices.empty()) return 0;
  const std::int64_t devices = std::int64_t{facts.devices} * facts.nodes;
  return worthwhile_strip(measured.cpu->all_workers, facts.cpu_workers_of_all,
                          measured.devices.front().kernels, devices, tile, small);
}

/// An emulated device computes on the host's own cores: an eighth for the strip keeps both kinds
/// of workers going. Beside a GPU all cores together are mostly a few percent, less than it costs
/// to cut tiles and to move them: only measurements can tell otherwise.
std::int64_t automatic_strip(const TileLayout& layout, const NodeFacts& facts) {
  if (facts.devices == 0 || facts.moves_tasks) return 0;
  if (const auto fixed = facts.tuning.fixed.strip) {
    // The fixed strip may be meant for another tile: the strip is a multiple of this layout's small
    // size, and at most its tile.
    return std::min(*fixed, layout.tile) / layout.small * layout.small;
  }
  if (!facts.has_gpus()) return layout.tile / 8 / layout.small * layout.small;
  return measured_strip(facts, layout.tile, layout.small);
}

/// The kernels of a GPU that nobody has measured: an H100's.
KernelTimes usual_gpu_times() {
  struct Rate {
    const Kernel* kernel;
    std::int64_t size;
    double gflops;
  };
  constexpr std::array<Rate, 18> rates{{
      {&kernel::gsmm, 512, 25000},
      {&kernel::gsmm, 1024, 50000},
      {&kernel::gsmm, 2048, 52000},
      {&kernel::syrk, 512, 7900},
      {&kernel::syrk, 1024, 22000},
      {&kernel::syrk, 2048, 51000},
      {&kernel::trsm, 512, 3800},
      {&kernel::trsm, 1024, 21000},
      {&kernel::trsm, 2048, 31000},
      {&kernel::potrf, 512, 370},
      {&kernel::potrf, 1024, 1500},
      {&kernel::potrf, 2048, 5400},
      {&kernel::geqrt, 1024, 2000},
      {&kernel::tsqrt, 1024, 2000},
      {&kernel::ttqrt, 1024, 2000},
      {&kernel::unmqr, 1024, 37000},
      {&kernel::tsmqr, 1024, 37000},
      {&kernel::ttmqr, 1024, 37000},
  }};
  KernelTimes times;
  for (const Rate& rate : rates) {
    const double flops = flops_of(*rate.kernel, rate.size, rate.size);
    times.push_back({rate.kernel, rate.size, rate.size, 0, flops / rate.gflops * 1e-3});
  }
  return times;
}

}  // namespace

Distribution grid_of(const Config& config, std::int32_t nodes) {
  Distribution d;
  if (config.layout.grid.has_value()) {
    d.grid_rows = config.layout.grid->rows;
    d.grid_columns = config.layout.grid->columns;
    const std::int64_t wanted = std::int64_t{d.grid_rows} * d.grid_columns;
    if (wanted != nodes) {
      throw Error(ErrorCode::usage,
                  fmt::format("layout.grid [{}, {}] is for {} nodes, but {} run; start {} nodes or "
                              "write 'grid: auto'",
                              d.grid_rows, d.grid_columns, wanted, nodes, wanted));
    }
    return d;
  }
  for (int r = 1; r * r <= nodes; ++r) {
    if (nodes % r == 0) d.grid_rows = r;
  }
  d.grid_columns = nodes / d.grid_rows;
  return d;
}

const KernelTimes* measured_times(const NodeFacts& facts) {
  const Measurements& measured = facts.tuning.measured;
  if (facts.devices > 0) {
    return measured.devices.empty() ? nullptr : &measured.devices.front().kernels;
  }
  return measured.cpu ? &measured.cpu->all_workers : nullptr;
}

std::int32_t devices_for(std::int64_t rows, std::int64_t columns, const NodeFacts& facts) {
  if (!facts.has_gpus() || facts.are_devices_wanted) return facts.devices;
  const std::int64_t order = std::max(rows, columns);
  const std::int64_t wanted = order / (gpu_tiles_each * gpu_tile_usual);
  const std::int64_t of_node = (wanted + facts.nodes - 1) / facts.nodes;
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(of_node, 1, facts.devices));
}

Workforce workforce_of(const NodeFacts& facts, std::int32_t devices) {
  const Measurements& measured = facts.tuning.measured;
  Workforce force;
  force.places = facts.cpu_workers_of_all;
  force.nodes = facts.nodes;
  if (facts.devices > 0) {
    force.places = std::int64_t{devices} * facts.nodes;
    if (facts.has_gpus()) force.tiles_min = gpu_tiles_min;
    if (devices > 1 && !measured.devices.empty()) {
      const CopyRates& copies = measured.devices.front().copies;
      force.exchange_rate =
          copies.to_peer.value_or(1 / (1 / copies.to_host + 1 / copies.to_device));
    }
  }
  if (facts.nodes > 1 && measured.messages) {
    const double rate = measured.messages->rate;
    force.exchange_rate = force.exchange_rate > 0 ? std::min(force.exchange_rate, rate) : rate;
  }
  return force;
}

TaskCosts task_costs(const NodeFacts& facts) {
  const Measurements& measured = facts.tuning.measured;
  KernelTimes worker;
  KernelTimes device;
  if (measured.cpu) worker = measured.cpu->all_workers;
  double to_device = copy_rate_unmeasured;
  double to_host = copy_rate_unmeasured;
  double to_peer = copy_rate_unmeasured;
  if (facts.devices > 0 && !measured.devices.empty()) {
    const CopyRates& copies = measured.devices.front().copies;
    device = measured.devices.front().kernels;
    to_device = copies.to_device;
    to_host = copies.to_host;
    to_peer = copies.to_peer.value_or(1 / (1 / copies.to_host + 1 / copies.to_device));
  } else if (facts.has_gpus()) {
    device = usual_gpu_times();
  } else {
    device = worker;  // an emulated device computes on a core
  }
  const double message = measured.messages ? measured.messages->rate : message_rate_unmeasured;
  const double latency_s = measured.messages ? measured.messages->latency_us * 1e-6 : 0;
  const auto costs = std::make_shared<const KernelCosts>(std::move(worker), std::move(device));
  return {
      [costs](const KernelCase& what, bool on_device) { return costs->seconds(what, on_device); },
      [=](Location from, Location to, std::uint64_t bytes) {
        const double gigabytes = static_cast<double>(bytes) * 1e-9;
        if (from.node != to.node) return latency_s + gigabytes / message;
        if (to.place == host_place) return gigabytes / to_host;
        return gigabytes / (from.place == host_place ? to_device : to_peer);
      }};
}

bool moves_tasks(std::optional<config::Placement> wanted, const NodeFacts& facts) {
  if (facts.devices == 0) return false;
  if (wanted) return *wanted == config::Placement::dynamic;
  constexpr std::int64_t middle_tile = 1024;
  return measured_strip(facts, middle_tile, 1) > 0;
}

bool divides_tasks(const config::Layout& wanted, const NodeFacts& facts) {
  return wanted.hierarchy ? *wanted.hierarchy == config::Hierarchy::on : facts.moves_tasks;
}

std::string origin_of_sizes(const config::Layout& wanted, const NodeFacts& facts) {
  if (wanted.tile) return "as the configuration says";
  if (facts.tuning.fixed.tile) return "as the machine file says";
  const std::string who = facts.devices == 0 ? "the CPU"
                          : facts.has_gpus() ? facts.device_name
                                             : "emulated devices";
  if (measured_times(facts) != nullptr) {
    return fmt::format("by the machine file's measurements of {}", who);
  }
  return fmt::format("by general rules; `heddle tune` would measure {}", who);
}

TileLayout choose_layout(std::int64_t rows, std::int64_t columns, const config::Layout& wanted,
                         const NodeFacts& facts) {
  TileLayout layout;
  layout.rows = rows;
  layout.columns = columns;
  const std::int64_t order = std::max<std::int64_t>({rows, columns, 1});
  const std::int32_t devices = devices_for(rows, columns, facts);
  const TunedValues& fixed = facts.tuning.fixed;
  const bool divides = divides_tasks(wanted, facts);
  if (divides && !wanted.tile && wanted.small && *wanted.small > order) {
    throw Error(ErrorCode::usage, fmt::format("layout.small {} is more than the matrix of {} x {}",
                                              *wanted.small, rows, columns));
  }
  layout.tile =
      wanted.tile  ? *wanted.tile
      : fixed.tile ? *fixed.tile
      : divides && facts.devices == 0
          ? divided_tile(order, wanted.small.value_or(fine_size(facts, divided_max)))
          : measured_tile(order, facts, devices).value_or(rule_tile(order, facts, devices));
  if (wanted.small.has_value()) {
    layout.small = *wanted.small;
  } else if (wanted.strip.has_value() && *wanted.strip > 0) {
    layout.small = *wanted.strip <= 192 ? *wanted.strip : 0;
    for (std::int64_t b = 192; layout.small == 0; --b) {
      if (*wanted.strip % b == 0) layout.small = b;
    }
  } else if (divides) {
    // As many parts as come nearest to that size, and all alike.
    const std::int64_t size = fixed.small.value_or(fine_size(facts, layout.tile));
    const std::int64_t parts = std::max<std::int64_t>(1, (layout.tile + size / 2) / size);
    layout.small = (layout.tile + parts - 1) / parts;
  } else {
    layout.small = std::min<std::int64_t>(layout.tile, fixed.small.value_or(64));
  }
  layout.strip = wanted.strip ? *wanted.strip : automatic_strip(layout, facts);
  if (divides && layout.small < layout.tile) layout.fine = layout.small;
  if (layout.fine > 0 && layout.tile > fine_parts_max * layout.fine) {
    throw Error(ErrorCode::usage,
                fmt::format("layout.small {} divides a tile of {} into more than {} parts a side; "
                            "choose at least {}",
                            layout.fine, layout.tile, fine_parts_max,
                            (layout.tile + fine_parts_max - 1) / fine_parts_max));
  }
  if (layout.small > layout.tile) {
    throw Error(ErrorCode::usage, fmt::format("layout.small {} is more than the tile of {}",
                                              layout.small, layout.tile));
  }
  if (layout.strip > layout.tile) {
    throw Error(ErrorCode::usage, fmt::format("layout.strip {} is wider than the tile of {}",
                                              layout.strip, layout.tile));
  }
  if (layout.strip > 0 && layout.strip % layout.small != 0) {
    throw Error(ErrorCode::usage, fmt::format("layout.strip {} is no multiple of layout.small {}",
                                              layout.strip, layout.small));
  }
  return layout;
}

config::Layout layout_keys(const TileLayout& layout) {
  config::Layout keys;
  keys.tile = layout.tile;
  keys.strip = layout.strip;
  keys.small = layout.small;
  keys.hierarchy = layout.fine > 0 ? config::Hierarchy::on : config::Hierarchy::off;
  return keys;
}

Config resolved(const Config& given, const config::Layout& layout, const Distribution& distribution,
                const NodeFacts& facts) {
  Config all = given;
  all.layout = layout;
  // Cholesky's inverse blocks on devices, which are no wider than a tile.
  if (!layout.inner && given.layout.inner) {
    all.layout.inner = std::min(*given.layout.inner, *layout.tile);
  }
  all.layout.grid = config::Grid{distribution.grid_rows, distribution.grid_columns};
  all.runtime.cpu_workers = facts.cpu_workers;
  all.runtime.window = facts.window;
  all.runtime.placement = facts.moves_tasks ? config::Placement::dynamic : config::Placement::fixed;
  config::Devices& devices = all.runtime.devices;
  devices.per_node = distribution.devices;
  devices.backend = facts.devices == 0 ? config::DeviceBackend::none
                    : facts.has_gpus() ? config::DeviceBackend::cuda
                                       : config::DeviceBackend::emulated;
  if (facts.devices == 0) return all;
  if (!devices.streams) devices.streams = facts.device_streams;
  if (!devices.memory && facts.device_memory_bytes > 0) devices.memory = facts.device_memory_bytes;
  return all;
}

}  // namespace heddle
