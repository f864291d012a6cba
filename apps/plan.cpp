#include "apps/plan.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <iterator>

#include "algorithms/io/agreement.hpp"
#include "base/units.hpp"
#include "node-runtime/tuning.hpp"

namespace heddle {
namespace {

std::string bytes_text(double bytes) {
  return format_bytes(static_cast<std::uint64_t>(std::min(bytes, 9e18)));
}

std::string row(std::string_view label, std::string_view text) {
  return fmt::format("  {:<18}{}\n", label, text);
}

/// As the store lays blocks out: whole cache lines, an odd number of pairs.
double block_bytes(const TileLayout& layout, TileRow i, TileColumn c) {
  constexpr std::int64_t pair = 128;
  const std::int64_t bytes = 8 * layout.row_count(i) * layout.column_count(c);
  return static_cast<double>(((bytes + pair - 1) / pair | 1) * pair);
}

double largest_block_bytes(const TileLayout& layout) {
  if (layout.tile_rows() == 0) return 0;
  double most = 0;
  for (TileColumn c{0}; c.value() < std::min(layout.tile_columns(), layout.pieces_per_wide());
       ++c) {
    most = std::max(most, block_bytes(layout, TileRow{0}, c));
  }
  return most;
}

}  // namespace

Plan::Plan(Node& node, const Problem& problem, Method& method, const Config& config)
    : problem_(problem),
      config_(config),
      method_(method),
      facts_(node.facts()),
      bytes_(static_cast<std::size_t>(facts_.devices) + 1) {
  check_total(node);
  Undertaking undertaking = method.undertaking();
  count_tiles(undertaking);
  plan_jobs(node, undertaking);
  plan_out_of_core();
  check_places(node);
}

/// All nodes together against all that is available: quick, before tiles are counted one by one.
void Plan::check_total(Node& node) const {
  const double needed = method_.bytes_in_all();
  double all = 0;
  for (std::size_t p = 0; p < bytes_.size(); ++p) all += available(p);
  all = reduce(node, all, Reduction::sum);
  if (needed <= all) return;
  throw AgreedError(
      ErrorCode::usage,
      fmt::format("not enough memory: {} for {}, but {} of {} available on {} nodes; use more "
                  "nodes{}",
                  bytes_text(needed), method_.bytes_text(), bytes_text(all),
                  facts_.devices > 0 ? "host and device memory are" : "memory is", facts_.nodes,
                  problem_.wanted().verify ? " or set problem.verify=false" : ""));
}

double Plan::available(std::size_t place) const {
  return static_cast<double>(place == 0 ? facts_.memory_available_bytes
                                        : facts_.device_memory_bytes);
}

void Plan::count_tiles(const Undertaking& undertaking) {
  std::vector<bool> works(static_cast<std::size_t>(facts_.nodes), false);
  for (const Undertaking::Held& held : undertaking.held) {
    const Matrix<double>& m = held.matrix;
    const bool is_first = &held == &undertaking.held.front();
    for (TileColumn c{0}; c.value() < m.layout().tile_columns(); ++c) {
      for (TileRow i{0}; i.value() < m.layout().tile_rows(); ++i) {
        if (!m.stores(i, c)) continue;
        const Location home = m.home(i, c);
        if (is_first) {
          ++tiles_;
          works[static_cast<std::size_t>(home.node.value())] = true;
        }
        if (home.node.value() != facts_.rank) continue;
        const auto tile = block_bytes(m.layout(), i, c);
        Bytes& place = bytes_[static_cast<std::size_t>(home.place.value())];
        switch (held.use) {
          case Undertaking::Use::matrix:
            place.matrix += tile;
            break;
          case Undertaking::Use::copy:
            place.copy += tile;
            break;
          case Undertaking::Use::sides:
            place.sides += tile;
            break;
        }
        if (is_first && problem_.keeps_elements()) {
          // Of a symmetric matrix the mirrored block is read too, unless it is so by construction.
          const bool mirrored =
              m.storage() == Storage::lower && !problem_.is_symmetric_by_construction();
          bytes_[0].file += mirrored ? 2 * tile : tile;
        }
      }
    }
  }
  for (std::int32_t node = 0; node < facts_.nodes; ++node) {
    if (!works[static_cast<std::size_t>(node)]) idle_.push_back(fmt::format("{}", node));
  }
}

void Plan::plan_jobs(Node& node, Undertaking& undertaking) {
  const auto largest_block = [&](const JobSpec& spec) {
    double most = 0;
    for (const protocol::MatrixId id : spec.matrices) {
      if (!Shadows::is_shadow(id)) {
        most = std::max(most, static_cast<double>(node.store().largest_tile_bytes(id)));
      }
      for (const Undertaking::Held& held : undertaking.held) {
        if (held.matrix.id() == id) {
          most = std::max(most, largest_block_bytes(held.matrix.layout()));
        }
      }
    }
    return most;
  };
  const auto add = [&](JobSpec spec) {
    const double block = largest_block(spec);
    largest_block_ = std::max(largest_block_, block);
    const bool has_temporaries = !spec.temporaries.empty();
    const Job job = node.prepare(std::move(spec));
    for (std::size_t p = 0; p < bytes_.size(); ++p) {
      const std::int32_t minimum = job.blocks_minimum()[p];
      const std::int32_t blocks =
          node.engine().pool_capacity(PlaceId{static_cast<std::int32_t>(p)}, minimum,
                                      has_temporaries, static_cast<std::size_t>(block));
      bytes_[p].pools = std::max(bytes_[p].pools, blocks * block);
      bytes_[p].pools_min = std::max(bytes_[p].pools_min, minimum * block);
    }
    return static_cast<double>(job.tasks_planned());
  };
  const double tasks = add(std::move(*undertaking.factorization));
  tasks_min_ = reduce(node, tasks, Reduction::minimum);
  tasks_max_ = reduce(node, tasks, Reduction::maximum);
  for (JobSpec& spec : undertaking.others) add(std::move(spec));
}

/// What a device has no room for is in host memory meanwhile: all of its tiles have a place there
/// then, as they have where the host may use any of them.
void Plan::plan_out_of_core() {
  for (std::size_t p = 1; p < bytes_.size(); ++p) {
    Bytes& b = bytes_[p];
    // More tiles on their way than are needed are only kept where there is room for them.
    const double rest = b.total() - b.pools;
    if (b.total() > available(p)) b.pools = std::max(b.pools_min, available(p) - rest);
    if (b.total() > available(p)) is_out_of_core_ = true;
    if (b.total() > available(p) || facts_.backs_tiles) bytes_[0].backing += b.total();
  }
}

std::optional<Error> Plan::trouble_at(std::size_t p) const {
  const Bytes& b = bytes_[p];
  if (b.total() <= available(p)) return std::nullopt;
  const std::string parts = fmt::format(
      "matrix {}, copy for the verification {}, right-hand sides {}, tiles on their "
      "way {}, text of the file {}",
      bytes_text(b.matrix), bytes_text(b.copy), bytes_text(b.sides), bytes_text(b.pools),
      bytes_text(b.file));
  const std::string_view advice = problem_.wanted().verify
                                      ? "; use more nodes or set problem.verify=false"
                                      : "; use more nodes";
  if (p == 0) {
    return Error(ErrorCode::usage,
                 fmt::format("not enough memory on the host: {} are needed ({}, tiles of devices "
                             "that have no room for them {}), {} are available{}",
                             bytes_text(b.total()), parts, bytes_text(b.backing),
                             bytes_text(available(p)), advice));
  }
  const double least = static_cast<double>(TileStore::least_device_bytes(
      static_cast<std::size_t>(largest_block_), static_cast<std::size_t>(facts_.devices)));
  if (available(p) >= least) return std::nullopt;
  return Error(
      ErrorCode::usage,
      fmt::format("not enough memory on device {}: {} are needed ({}), or {} to work out of core "
                  "with tiles of up to {}; {} are available{}, choose smaller tiles (layout.tile), "
                  "or widen runtime.devices.memory",
                  p - 1, bytes_text(b.total()), parts, bytes_text(least),
                  bytes_text(largest_block_), bytes_text(available(p)), advice));
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

/// Its copy is there to verify, or to be Q.
std::string_view Plan::copy_name() const {
  return problem_.wanted().verify ? "its copy to verify" : "thin Q";
}

std::string Plan::memory_rows() const {
  std::string out;
  // Devices of a node differ by a column of tiles at most: the fullest stands for all.
  for (std::size_t p = 0; p < std::min<std::size_t>(bytes_.size(), 2); ++p) {
    const Bytes& b = p == 0 ? bytes_[0]
                            : *std::max_element(bytes_.begin() + 1, bytes_.end(),
                                                [](const Bytes& x, const Bytes& y) {
                                                  return x.total() < y.total();
                                                });
    out += row(p == 0 ? "host memory" : "device memory",
               fmt::format("{} of {} available on node {}{}", bytes_text(b.total()),
                           bytes_text(available(p)), facts_.rank, p == 0 ? "" : ", each device"));
    std::string parts = fmt::format("matrix {}", bytes_text(b.matrix));
    if (b.copy > 0) parts += fmt::format(", {} {}", copy_name(), bytes_text(b.copy));
    if (b.sides > 0) parts += fmt::format(", right-hand sides {}", bytes_text(b.sides));
    out += row("", parts);
    std::string more = fmt::format("tiles on their way {}", bytes_text(b.pools));
    if (b.file > 0) more += fmt::format(", text of the file {}", bytes_text(b.file));
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
  if (facts_.moves_tasks) {
    out += row("placement", "dynamic: CPU workers run tasks of devices that they would end first");
  }
  out += row("tiles", method_.tiles_text(tiles_));
  out += row("tasks", tasks_min_ == tasks_max_
                          ? fmt::format("{:.0f} on each node", tasks_max_)
                          : fmt::format("{:.0f} to {:.0f} on a node", tasks_min_, tasks_max_));
  out += memory_rows();
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
