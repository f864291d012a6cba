#include "apps/plan.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <iterator>
#include <limits>
#include <set>
#include <utility>

#include "algorithms/io/agreement.hpp"
#include "base/units.hpp"
#include "config/problem.hpp"
#include "config/words.hpp"
#include "node-runtime/memory/tile_store.hpp"
#include "node-runtime/node_facts.hpp"
#include "node-runtime/node_internals.hpp"
#include "node-runtime/threads/engine.hpp"
#include "node-runtime/threads/staged_runner.hpp"
#include "node-runtime/tuning.hpp"

namespace heddle {
namespace {

std::string bytes_text(double bytes) {
  return format_bytes(static_cast<std::uint64_t>(std::min(bytes, 9e18)));
}

std::string row(std::string_view label, std::string_view text) {
  return fmt::format("  {:<18}{}\n", label, text);
}

std::size_t tile_bytes(const TileLayout& layout, TileRow i, TileColumn c) {
  return static_cast<std::size_t>(layout.row_count(i) * layout.column_count(c)) * sizeof(double);
}

std::size_t largest_tile_bytes(const TileLayout& layout) {
  if (layout.tile_rows() == 0) return 0;
  std::size_t most = 0;
  for (TileColumn c{0}; c.value() < std::min(layout.tile_columns(), layout.pieces_per_wide());
       ++c) {
    most = std::max(most, tile_bytes(layout, TileRow{0}, c));
  }
  return most;
}

double block_bytes(std::size_t place, std::size_t bytes) {
  return static_cast<double>(
      TileStore::bytes_of_block(PlaceId{static_cast<std::int32_t>(place)}, bytes));
}

}  // namespace

Plan::Plan(Node& node, const Problem& problem, Method& method, const Config& config,
           std::string device_note)
    : device_note_(std::move(device_note)),
      problem_(problem),
      config_(config),
      method_(method),
      facts_(node.facts()),
      bytes_(static_cast<std::size_t>(facts_.devices) + 1) {
  bytes_[0].available = static_cast<double>(facts_.memory_available_bytes);
  for (std::size_t p = 1; p < bytes_.size(); ++p) {
    const PlaceId place{static_cast<std::int32_t>(p)};
    bytes_[p].available = static_cast<double>(NodeInternals(node).store().cache(place).bytes());
  }
  check_total(node);
  bool is_final = false;
  while (!is_final) {
    std::optional<Undertaking> made;
    together(node, [&] { made = method_.undertaking(); });
    const std::optional<Error> too_many = trouble_with_tiles(node, *made);
    const bool fits = !too_many && count(node, *made);
    is_final = fits || !method_.forgo_copy();
    if (is_final && too_many) throw AgreedError(too_many->code(), too_many->what());
  }
  check_places(node);
}

/// Counts what is undertaken. False when some of it does not fit where it should live, with as many
/// tiles on their way as help. The same on all nodes.
bool Plan::count(Node& node, Undertaking& undertaking) {
  for (Bytes& place : bytes_) {
    const double available = place.available;
    place = {};
    place.available = available;
  }
  phase_tasks_ = {};
  for (const Undertaking::Held& held : undertaking.held) {
    count_tiles(held, &held == &undertaking.held.front());
  }
  find_idle_nodes(undertaking.held.front().matrix);
  plan_jobs(node, undertaking);
  plan_staging();
  const auto fits = [this] {
    return std::ranges::all_of(bytes_, [](const Bytes& place) { return place.fits(); });
  };
  const bool fits_without_backings = fits();
  plan_out_of_core();
  return reduce(node, fits_without_backings && fits() ? 1 : 0, Reduction::minimum) == 1;
}

/// Compares the totals of all nodes: quick, before tiles are counted one by one.
void Plan::check_total(Node& node) const {
  const double needed = method_.bytes_in_all();
  double all = 0;
  for (const Bytes& place : bytes_) all += place.available;
  all = reduce(node, all, Reduction::sum);
  if (needed <= all) return;
  throw AgreedError(
      ErrorCode::usage,
      fmt::format(
          "not enough memory: {} for {}, but {} of {} available on {} nodes; use more "
          "nodes{}",
          bytes_text(needed), method_.bytes_text(), bytes_text(all),
          facts_.devices > 0 ? "host and device memory are" : "memory is", facts_.nodes,
          problem_.wanted().verify == config::Verify::full ? " or set problem.verify=auto" : ""));
}

/// A lower bound of the memory for all tiles, before they are counted one by one.
std::optional<Error> Plan::trouble_with_tiles(Node& node, const Undertaking& undertaking) const {
  double needed = 0;
  for (const Undertaking::Held& held : undertaking.held) {
    const TileLayout& l = held.matrix.layout();
    const double share = held.matrix.storage() == Storage::full ? 1 : 0.5;
    needed += share * l.tile_rows() * l.tile_columns() * block_bytes(0, 1);
  }
  double all = 0;
  for (const Bytes& place : bytes_) all += place.available;
  all = reduce(node, all, Reduction::sum);
  if (needed <= all) return std::nullopt;
  return Error(ErrorCode::usage,
               fmt::format("not enough memory: tiles of {} x {} take {} at least, but {} are "
                           "available on {} nodes; choose larger tiles (layout.tile)",
                           undertaking.held.front().matrix.layout().tile,
                           undertaking.held.front().matrix.layout().wide_width(),
                           bytes_text(needed), bytes_text(all), facts_.nodes));
}

/// Blocks of a matrix in the node's memory: its tiles, and spares of each tile size at each place.
void Plan::count_tiles(const Undertaking::Held& held, bool is_input) {
  const Matrix<double>& m = held.matrix;
  std::vector<std::set<std::size_t>> sizes(bytes_.size());
  double tiles = 0;
  for (TileColumn c{0}; c.value() < m.layout().tile_columns(); ++c) {
    for (TileRow i{0}; i.value() < m.layout().tile_rows(); ++i) {
      if (!m.stores(i, c)) continue;
      const Location home = m.home(i, c);
      if (home.node.value() != facts_.rank) continue;
      const auto p = static_cast<std::size_t>(home.place.value());
      const std::size_t bytes = tile_bytes(m.layout(), i, c);
      ++tiles;
      sizes[p].insert(bytes);
      bytes_[p].range = std::max(
          bytes_[p].range,
          StagedRunner::bytes_by_columns(m.layout().row_count(i), m.layout().column_count(c)));
      bytes_[p].of(held.use) += block_bytes(p, bytes);
      if (is_input && problem_.keeps_elements()) {
        // The mirrored block of a symmetric matrix is read too, to check symmetry.
        const bool mirrored =
            m.storage() == Storage::lower && !problem_.is_symmetric_by_construction();
        bytes_[0].file += static_cast<double>(mirrored ? 2 * bytes : bytes);
      }
    }
  }
  if (is_input) phase_tasks_.reading += tiles;
  if (held.use == Undertaking::Use::copy && problem_.wanted().verify == config::Verify::full) {
    phase_tasks_.verification += 2 * tiles;  // made, and its norm
  }
  const config::Output& output = problem_.wanted().output;
  if (is_input && output.factor) phase_tasks_.writing += tiles;
  if (held.use == Undertaking::Use::copy && output.q) phase_tasks_.writing += tiles;
  for (std::size_t p = 0; p < bytes_.size(); ++p) {
    for (const std::size_t bytes : sizes[p]) {
      bytes_[p].of(held.use) += m.spec().spare_count * block_bytes(p, bytes);
      bytes_[p].largest = std::max(bytes_[p].largest, bytes);
    }
  }
}

void Plan::find_idle_nodes(const Matrix<double>& matrix) {
  tiles_ = 0;
  idle_.clear();
  std::vector<bool> works(static_cast<std::size_t>(facts_.nodes), false);
  for (TileColumn c{0}; c.value() < matrix.layout().tile_columns(); ++c) {
    for (TileRow i{0}; i.value() < matrix.layout().tile_rows(); ++i) {
      if (!matrix.stores(i, c)) continue;
      ++tiles_;
      works[static_cast<std::size_t>(matrix.home(i, c).node.value())] = true;
    }
  }
  for (std::int32_t node = 0; node < facts_.nodes; ++node) {
    if (!works[static_cast<std::size_t>(node)]) idle_.push_back(fmt::format("{}", node));
  }
}

void Plan::plan_jobs(Node& node, Undertaking& undertaking) {
  const auto largest_tile = [&](const std::vector<protocol::MatrixId>& matrices) {
    std::size_t most = 0;
    for (const protocol::MatrixId id : matrices) {
      if (!Shadows::is_shadow(id))
        most = std::max(most, NodeInternals(node).store().largest_tile_bytes(id));
      for (const Undertaking::Held& held : undertaking.held) {
        if (held.matrix.id() == id) most = std::max(most, largest_tile_bytes(held.matrix.layout()));
      }
    }
    return most;
  };
  const auto add = [&](JobSpec spec) {
    const bool has_temporaries = !spec.temporaries.empty();
    const Job job = node.prepare(std::move(spec));
    for (std::size_t p = 0; p < bytes_.size(); ++p) {
      Bytes& place = bytes_[p];
      const std::size_t tile = largest_tile(JobInternals(job).takers()[p]);
      const double block = block_bytes(p, tile);
      const std::int32_t minimum = JobInternals(job).blocks_minimum()[p];
      const std::int32_t blocks = NodeInternals(node).engine().jobs().memory().capacity(
          PlaceId{static_cast<std::int32_t>(p)}, minimum, has_temporaries, tile);
      place.pools = std::max(place.pools, blocks * block);
      place.pools_min = std::max(place.pools_min, minimum * block);
      if (minimum > 0) place.largest = std::max(place.largest, tile);
    }
    return static_cast<double>(JobInternals(job).tasks_planned());
  };
  const double tasks = add(std::move(*undertaking.factorization));
  tasks_min_ = reduce(node, tasks, Reduction::minimum);
  tasks_max_ = reduce(node, tasks, Reduction::maximum);
  const auto add_all = [&](std::vector<JobSpec>& specs) {
    double sum = 0;
    for (JobSpec& spec : specs) sum += add(std::move(spec));
    return sum;
  };
  static_cast<void>(add_all(undertaking.reading));  // as many tasks as tiles that are read
  phase_tasks_.solution += add_all(undertaking.solution);
  phase_tasks_.verification += add_all(undertaking.verification);
  phase_tasks_.writing += add_all(undertaking.results);
}

/// Each CPU worker reads, checks and writes tiles of each device through memory of its own.
void Plan::plan_staging() {
  for (std::size_t p = 1; p < bytes_.size(); ++p) {
    bytes_[0].staging += facts_.cpu_workers * static_cast<double>(bytes_[p].range);
  }
}

/// Tiles of a device that cannot hold them all have backings in host memory, as they do if the host
/// may use any of them. Tiles in transfer beyond the minimum only use spare room.
void Plan::plan_out_of_core() {
  is_out_of_core_ = false;
  for (std::size_t p = 1; p < bytes_.size(); ++p) {
    Bytes& b = bytes_[p];
    b.shrink_pools();
    if (!b.fits()) is_out_of_core_ = true;
    if (b.fits() && !facts_.lends_tasks) continue;
    const auto in_all = static_cast<std::uint64_t>(b.total());
    bytes_[0].backing += static_cast<double>(TileStore::backing_bytes_max(in_all));
  }
  bytes_[0].shrink_pools();
}

std::uint64_t Plan::device_budget(PlaceId place) const {
  constexpr double least_beside = 1U << 30U;
  constexpr double share_beside = 1.0 / 8;
  const Bytes& b = bytes_[static_cast<std::size_t>(place.value())];
  const double beside = std::max(least_beside, share_beside * b.total());
  return static_cast<std::uint64_t>(std::min(b.available, b.total() + beside));
}

std::uint64_t Plan::device_spare() const {
  double spare = bytes_.size() > 1 ? std::numeric_limits<double>::max() : 0;
  for (std::size_t p = 1; p < bytes_.size(); ++p) {
    const auto budget = static_cast<double>(device_budget(PlaceId{static_cast<std::int32_t>(p)}));
    spare = std::min(spare, std::max(0.0, budget - bytes_[p].total()));
  }
  return static_cast<std::uint64_t>(spare);
}

std::optional<Error> Plan::trouble_at(std::size_t p) const {
  const Bytes& b = bytes_[p];
  if (b.fits()) return std::nullopt;
  const std::string parts = fmt::format(
      "matrix {}, copy for the verification {}, right-hand sides {}, tiles on their "
      "way {}",
      bytes_text(b.matrix), bytes_text(b.copy), bytes_text(b.sides), bytes_text(b.pools));
  const std::string_view advice = problem_.wanted().verify == config::Verify::full
                                      ? "; use more nodes or set problem.verify=auto"
                                      : "; use more nodes";
  if (p == 0) {
    return Error(
        ErrorCode::usage,
        fmt::format("not enough memory on the host: {} are needed ({}, text of the file "
                    "{}, copies of workers {}, tiles of devices that have no room for "
                    "them {}), {} are available{}",
                    bytes_text(b.total()), parts, bytes_text(b.file), bytes_text(b.staging),
                    bytes_text(b.backing), bytes_text(b.available), advice));
  }
  const double least = static_cast<double>(
      TileStore::least_device_bytes(b.largest, static_cast<std::size_t>(facts_.devices)));
  if (b.available >= least) return std::nullopt;
  return Error(
      ErrorCode::usage,
      fmt::format("not enough memory on device {}: {} are needed ({}), or {} to work out of core "
                  "with tiles of up to {}; {} are available{}, choose smaller tiles (layout.tile), "
                  "or widen runtime.devices.memory",
                  p - 1, bytes_text(b.total()), parts, bytes_text(least), format_bytes(b.largest),
                  bytes_text(b.available), advice));
}

void Plan::check_places(Node& node) const {
  std::optional<Error> trouble;
  for (std::size_t p = 0; p < bytes_.size() && !trouble; ++p) trouble = trouble_at(p);
  agree(node, trouble);
}

// ---- the text --------------------------------------------------------------------------------

std::string Plan::idle_text() const {
  if (idle_.empty()) return "";
  constexpr std::size_t shown = 8;
  const std::vector<std::string> names(
      idle_.begin(), idle_.begin() + static_cast<std::ptrdiff_t>(std::min(shown, idle_.size())));
  return fmt::format("{} of {} nodes idle, there are too few tiles for them: {}{}", idle_.size(),
                     facts_.nodes, fmt::join(names, ", "), idle_.size() > shown ? ", ..." : "");
}

/// The copy is Q, or serves the verification.
std::string_view Plan::copy_name() const {
  return problem_.wanted().output.q ? "thin Q" : "its copy to verify";
}

std::string Plan::memory_rows() const {
  std::string out;
  // Devices of a node differ by at most a column of tiles: the fullest stands for all.
  for (std::size_t p = 0; p < std::min<std::size_t>(bytes_.size(), 2); ++p) {
    const Bytes& b = p == 0 ? bytes_[0]
                            : *std::max_element(bytes_.begin() + 1, bytes_.end(),
                                                [](const Bytes& x, const Bytes& y) {
                                                  return x.total() < y.total();
                                                });
    out += row(p == 0 ? "host memory" : "device memory",
               fmt::format("{} of {} available on node {}{}", bytes_text(b.total()),
                           bytes_text(b.available), facts_.rank, p == 0 ? "" : ", each device"));
    std::string parts = fmt::format("matrix {}", bytes_text(b.matrix));
    if (b.copy > 0) parts += fmt::format(", {} {}", copy_name(), bytes_text(b.copy));
    if (b.sides > 0) parts += fmt::format(", right-hand sides {}", bytes_text(b.sides));
    out += row("", parts);
    std::string more = fmt::format("tiles on their way {}", bytes_text(b.pools));
    if (b.file > 0) more += fmt::format(", text of the file {}", bytes_text(b.file));
    if (b.staging > 0) more += fmt::format(", copies of workers {}", bytes_text(b.staging));
    out += row("", more);
    if (b.backing > 0) {
      out += row("", fmt::format("{} {}",
                                 is_out_of_core_ ? "tiles of devices, which work out of core,"
                                                 : "behind the tiles of devices",
                                 bytes_text(b.backing)));
    }
  }
  return out;
}

std::string Plan::text() const {
  const Distribution& d = method_.distribution();
  std::string out = fmt::format("heddle: {} of {} x {}, {} right-hand side{}\n",
                                config::name_of(problem_.wanted().factorization), problem_.m(),
                                problem_.n(), problem_.sides(), problem_.sides() == 1 ? "" : "s");
  out += row("matrix", problem_.matrix_description());
  out += row("right-hand sides", problem_.sides_description());
  out += row("nodes",
             fmt::format("{} (grid {} x {}), {} CPU worker{} each{}", facts_.nodes, d.grid_rows,
                         d.grid_columns, facts_.cpu_workers, facts_.cpu_workers == 1 ? "" : "s",
                         facts_.oversubscribed ? ", more threads than cores" : ""));
  if (const std::string idle = idle_text(); !idle.empty()) out += row("", idle);
  out += row("devices", facts_.devices == 0
                            ? facts_.device_reason
                            : fmt::format("{} {} each; {}", facts_.devices, facts_.device_backend,
                                          facts_.device_reason));
  if (!device_note_.empty() && facts_.devices > 0) out += row("", device_note_);
  if (d.devices < facts_.devices) {
    out += row("", fmt::format("{} of them {} on this matrix: with more it would take longer",
                               d.devices, d.devices == 1 ? "works" : "work"));
  }
  if (facts_.moves_tasks) {
    out += row("placement",
               facts_.lends_tasks
                   ? "dynamic: CPU workers run tasks of devices that they would end first"
                   : "dynamic: beside these devices the CPU workers are not worth their copies");
  }
  out += row("tiles", method_.tiles_text(tiles_));
  out += row("tasks", tasks_min_ == tasks_max_
                          ? fmt::format("{:.0f} on each node", tasks_max_)
                          : fmt::format("{:.0f} to {:.0f} on a node", tasks_min_, tasks_max_));
  out += memory_rows();
  out += row("verification", method_.verification_text());
  out += row("kernels", facts_.blas);
  out += row("machine file", facts_.machine_file.empty() ? "none" : facts_.machine_file);
  out += row("sizes", origin_of_sizes(config_.layout, facts_));
  const config::Output& output = problem_.wanted().output;
  if (output.solution) out += row("solution", *output.solution);
  if (output.factor) out += row("factor", *output.factor);
  if (output.q) out += row("thin Q", *output.q);
  out += row("trace", config_.trace.file ? *config_.trace.file : "off");
  return out;
}

}  // namespace heddle
