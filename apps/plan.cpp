#include "apps/plan.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <iterator>

#include "algorithms/cholesky/cholesky.hpp"
#include "algorithms/io/agreement.hpp"
#include "algorithms/solve/products.hpp"
#include "algorithms/solve/triangular.hpp"
#include "base/units.hpp"

namespace heddle {
namespace {

constexpr std::int32_t first_shadow_id = 1 << 24;  // beyond the ids that nodes give

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

/// A matrix for planning alone: no memory, unknown to the node.
Matrix<double> shadow(Node& node, const MatrixSpec& spec, std::int32_t id) {
  auto state = std::make_shared<MatrixState>();
  state->node = &node;
  state->id = protocol::MatrixId{first_shadow_id + id};
  state->spec = spec;
  return Matrix<double>(std::move(state));
}

}  // namespace

Plan::Plan(Node& node, const Problem& problem, const Config& config)
    : problem_(problem),
      config_(config),
      facts_(node.facts()),
      layout_(node.default_layout(problem.n(), problem.n())),
      bytes_(static_cast<std::size_t>(facts_.devices) + 1) {
  check_total(node);
  MatrixSpec lower;
  lower.rows = lower.columns = problem.n();
  lower.storage = Storage::lower;
  lower.layout = layout_;
  lower.distribution = facts_.distribution;
  const Matrix<double> a = shadow(node, lower, 0);
  const Matrix<double> r = shadow(node, lower, 1);
  const Matrix<double> x = right_hand_sides(a, problem.sides());  // pages that nobody touches
  count_tiles(a, x);
  plan_jobs(node, a, r, x);
  check_places(node);
}

/// All nodes together against all that is available: quick, before tiles are counted one by one.
void Plan::check_total(Node& node) const {
  const auto n = static_cast<double>(problem_.n());
  const double matrices = problem_.wanted().verify ? 2 : 1;
  const double needed = 8 * (matrices * n * n / 2 + 2 * n * static_cast<double>(problem_.sides()));
  double all = 0;
  for (std::size_t p = 0; p < bytes_.size(); ++p) all += available(p);
  all = reduce(node, all, Reduction::sum);
  if (needed <= all) return;
  throw AgreedError(
      ErrorCode::usage,
      fmt::format("not enough memory: {} for the lower triangle of {} x {} doubles{} and {} "
                  "right-hand sides, but {} of {} available on {} nodes; use more nodes{}",
                  bytes_text(needed), problem_.n(), problem_.n(),
                  problem_.wanted().verify ? " twice (problem.verify)" : "", problem_.sides(),
                  bytes_text(all), facts_.devices > 0 ? "host and device memory are" : "memory is",
                  facts_.nodes, problem_.wanted().verify ? " or set problem.verify=false" : ""));
}

double Plan::available(std::size_t place) const {
  return static_cast<double>(place == 0 ? facts_.memory_available_bytes
                                        : facts_.device_memory_bytes);
}

void Plan::count_tiles(const Matrix<double>& a, const Matrix<double>& x) {
  const double copies = problem_.wanted().verify ? 1 : 0;
  for (TileColumn c{0}; c.value() < layout_.tile_columns(); ++c) {
    for (TileRow i{layout_.wide_of(c)}; i.value() < layout_.tile_rows(); ++i) {
      ++tiles_;
      const Location home = a.home(i, c);
      if (home.node.value() != facts_.rank) continue;
      const auto tile = block_bytes(layout_, i, c);
      Bytes& place = bytes_[static_cast<std::size_t>(home.place.value())];
      place.matrix += tile;
      place.copy += copies * tile;
      if (problem_.keeps_elements()) {
        bytes_[0].file += tile * (problem_.is_symmetric_by_construction() ? 1 : 2);
      }
    }
  }
  for (TileColumn c{0}; c.value() < x.layout().tile_columns(); ++c) {
    for (TileRow i{0}; i.value() < x.layout().tile_rows(); ++i) {
      if (x.home(i, c).node.value() != facts_.rank) continue;
      bytes_[0].sides += (1 + copies) * block_bytes(x.layout(), i, c);
    }
  }
}

void Plan::plan_jobs(Node& node, const Matrix<double>& a, const Matrix<double>& r,
                     const Matrix<double>& x) {
  const double block = largest_block_bytes(layout_);
  const double side = std::max(block, largest_block_bytes(x.layout()));
  const auto add = [&](const Job& job, double block_size) {
    for (std::size_t p = 0; p < bytes_.size(); ++p) {
      const std::int32_t minimum = job.blocks_minimum()[p];
      const std::int32_t blocks =
          node.engine().pool_capacity(PlaceId{static_cast<std::int32_t>(p)}, minimum);
      bytes_[p].pools = std::max(bytes_[p].pools, blocks * block_size);
    }
  };
  const Job factorization = node.prepare(cholesky(a));
  add(factorization, block);
  const auto tasks = static_cast<double>(factorization.tasks_planned());
  tasks_min_ = reduce(node, tasks, Reduction::minimum);
  tasks_max_ = reduce(node, tasks, Reduction::maximum);
  if (problem_.has_sides()) add(node.prepare(solve_cholesky(a, x)), side);
  if (!problem_.wanted().verify) return;
  add(node.prepare(subtract_product(r, a)), block);
  if (problem_.has_sides()) {
    add(node.prepare(subtract_symmetric_product(right_hand_sides(a, problem_.sides()), r, x)),
        side);
  }
}

void Plan::check_places(Node& node) const {
  std::optional<Error> trouble;
  for (std::size_t p = 0; p < bytes_.size() && !trouble; ++p) {
    const Bytes& b = bytes_[p];
    if (b.total() <= available(p)) continue;
    trouble = Error(
        ErrorCode::usage,
        fmt::format("not enough memory on {}: {} are needed (matrix {}, copy for the verification "
                    "{}, right-hand sides {}, tiles on their way {}, text of the file {}), {} are "
                    "available; use more nodes{}{}",
                    p == 0 ? "the host" : fmt::format("device {}", p - 1), bytes_text(b.total()),
                    bytes_text(b.matrix), bytes_text(b.copy), bytes_text(b.sides),
                    bytes_text(b.pools), bytes_text(b.file), bytes_text(available(p)),
                    b.copy > 0 ? ", set problem.verify=false" : "",
                    p == 0 ? "" : ", or widen layout.strip or runtime.devices.memory"));
  }
  agree(node, trouble);
}

// ---- the text --------------------------------------------------------------------------------

std::string Plan::idle_text() const {
  const Distribution& d = facts_.distribution;
  const std::int32_t rows = layout_.tile_rows();
  std::vector<std::string> idle;
  for (std::int32_t node = 0; node < facts_.nodes; ++node) {
    // The lower triangle's rows of tiles and wide columns that this node has part in.
    bool works = false;
    for (std::int32_t i = node / d.grid_columns; i < rows && !works; i += d.grid_rows) {
      works = node % d.grid_columns <= i;
    }
    if (!works) idle.push_back(fmt::format("{}", node));
  }
  if (idle.empty()) return "";
  constexpr std::size_t shown = 8;
  const bool many = idle.size() > shown;
  const std::size_t count = idle.size();
  if (many) idle.resize(shown);
  return fmt::format("{} of {} nodes idle, there are too few tiles for them: {}{}", count,
                     facts_.nodes, fmt::join(idle, ", "), many ? ", ..." : "");
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
    if (b.copy > 0) parts += fmt::format(", its copy to verify {}", bytes_text(b.copy));
    if (b.sides > 0) parts += fmt::format(", right-hand sides {}", bytes_text(b.sides));
    out += row("", parts);
    std::string more = fmt::format("tiles on their way {}", bytes_text(b.pools));
    if (b.file > 0) more += fmt::format(", text of the file {}", bytes_text(b.file));
    out += row("", more);
  }
  return out;
}

std::string Plan::text() const {
  const Distribution& d = facts_.distribution;
  std::string out = fmt::format("heddle: cholesky of {} x {}, {} right-hand side{}\n", problem_.n(),
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
  std::string tiles = fmt::format("{} of {} x {}", tiles_, layout_.tile, layout_.tile);
  if (layout_.strip > 0) {
    tiles = fmt::format("{}; {} x {}, of which {} columns in pieces of {} for the CPUs", tiles_,
                        layout_.tile, layout_.tile, layout_.strip, layout_.small);
  }
  out += row("tiles", tiles);
  out += row("tasks", tasks_min_ == tasks_max_
                          ? fmt::format("{:.0f} on each node", tasks_max_)
                          : fmt::format("{:.0f} to {:.0f} on a node", tasks_min_, tasks_max_));
  out += memory_rows();
  out += row("kernels", facts_.blas);
  out += row("machine file", facts_.machine_file.empty() ? "none" : facts_.machine_file);
  const config::Output& output = problem_.wanted().output;
  if (output.solution) out += row("solution", *output.solution);
  if (output.factor) out += row("factor", *output.factor);
  out += row("trace", config_.trace.file ? *config_.trace.file : "off");
  return out;
}

}  // namespace heddle
