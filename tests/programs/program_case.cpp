#include "tests/programs/program_case.hpp"

#include <algorithm>
#include <array>
#include <fmt/core.h>
#include <memory>
#include <random>

#include "algorithms/cholesky/cholesky.hpp"
#include "algorithms/cholesky/inverses.hpp"
#include "algorithms/solve/passing.hpp"
#include "algorithms/solve/solve.hpp"
#include "base/assert.hpp"
#include "node-runtime/matrix_state.hpp"
#include "node-runtime/memory/tile_store.hpp"
#include "node-runtime/node_internals.hpp"
#include "tests/programs/lu_program.hpp"

namespace heddle::simulation {

namespace {

/// The handle of a matrix that has no memory, on any grid. Its number is one that no node gives.
Matrix<double> without_memory(Node& node, const MatrixSpec& spec, std::int32_t number) {
  auto state = std::make_shared<MatrixState>();
  state->node = &node;
  state->id = protocol::MatrixId{number};
  state->spec = spec;
  return Matrix<double>(std::move(state));
}

}  // namespace

std::string_view name(Algorithm algorithm) {
  constexpr std::array<std::string_view, algorithm_count> names{"cholesky",
                                                                "solve_cholesky",
                                                                "subtract_symmetric_product",
                                                                "subtract_product",
                                                                "qr",
                                                                "apply_q_transposed",
                                                                "apply_q",
                                                                "apply_q_to_triangle",
                                                                "solve_upper",
                                                                "subtract_general_product",
                                                                "subtract_transposed_product",
                                                                "lu",
                                                                "multiply_lower",
                                                                "multiply_lower_transposed",
                                                                "multiply_upper",
                                                                "passing_symmetric_products",
                                                                "passing_products",
                                                                "symmetric_products",
                                                                "products"};
  return names.at(static_cast<std::size_t>(algorithm));
}

std::string Recording::defect() const {
  for (const RecordedJob& job : jobs) {
    if (!job.defect.empty()) return job.defect;
  }
  return {};
}

ProgramCase::ProgramCase(std::uint64_t seed, std::vector<Algorithm> algorithms)
    : jobs(std::move(algorithms)) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::int64_t n) {
    return static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(n));
  };
  distribution = {1 + below(5), 1 + below(3), below(4)};
  layout.tile = 1 + below(6);
  layout.small = 1 + below(layout.tile);
  if (below(3) != 0) layout.strip = layout.small * below(layout.tile / layout.small + 1);
  // Fewer tile rows where each wide column has many pieces: the tasks grow with pieces squared.
  constexpr std::int64_t rows_max[] = {10, 8, 6, 5};
  const std::int64_t rows = rows_max[std::clamp(layout.pieces_per_wide(), 1, 4) - 1];
  layout.rows = layout.columns =
      below(16) == 0 ? below(layout.tile) : 1 + below(layout.tile * rows);
  sides = below(8) == 0 ? 0 : 1 + below(2 * layout.tile + 1);
  qr_layout = {.tile = layout.tile, .strip = layout.strip, .small = layout.small};
  qr_layout.virtual_tiles = 1 + below(4);
  qr_layout.inner = 1 + below(layout.tile);
  if (below(2) == 0) qr_layout.tree = QrTree::binomial;
  qr_columns = std::min<std::int64_t>(layout.columns, 5 * layout.tile);
  const std::int64_t more = below(1 + 4 * layout.tile);
  qr_rows = qr_columns + below(3) * more;
  if (below(2) == 0) inverse_block = 1 + below(layout.tile);
  spare_count = below(2) * 4;
  cluster.nodes = distribution.node_count();
  cluster.places = 1 + distribution.devices;
  constexpr std::int32_t windows[] = {1, 2, 5, 1000};
  cluster.window = windows[below(4)];
  constexpr std::int32_t extras[] = {0, 0, 1, 100};
  cluster.extra_blocks = extras[below(4)];
  cluster.seed = random();
  fine_small = 1 + below(layout.tile);
  cluster.fine_workers = fine_workers_of(seed);
  cluster.placement = placement_of(seed);
  cluster.extra_frames = extra_frames_of(seed);
  constexpr Ways ways[] = {Ways::home, Ways::random, Ways::chain, Ways::hosts};
  cluster.ways = ways[cluster.seed % 4];
}

Recording ProgramCase::record_on(Node& node, const Distribution& grid) const {
  const Matrix<double> a = without_memory(node, MatrixSpec(layout, grid, Storage::lower), -1);
  const Matrix<double> r = without_memory(node, MatrixSpec(layout, grid, Storage::lower), -2);
  const Matrix<double> x = right_hand_sides(a, sides);
  const Matrix<double> y = right_hand_sides(a, sides);
  std::int32_t number = -2;
  const auto make = [&](const MatrixSpec& spec) {
    return spec.temporary ? node.matrix<double>(spec) : without_memory(node, spec, --number);
  };
  std::optional<Matrix<double>> inverses;
  if (inverse_block > 0) inverses = make(inverses_spec(a, inverse_block));
  const QrSpecs specs = qr_specs(qr_rows, qr_columns, qr_layout, grid);
  const QrMatrix q = qr_matrix_of(specs, qr_layout, make);
  const QrOperand z = qr_operand_of(qr_operand_specs(q, sides), make);
  const QrOperand explicit_q = qr_operand_of(explicit_q_operand_specs(q), make);
  TileLayout whole_tiles = layout;
  whole_tiles.strip = 0;
  const Matrix<double> full = make(MatrixSpec(whole_tiles, grid, Storage::full));
  const Matrix<double> solution = right_hand_sides(q.r, sides);
  const Matrix<double> x2 = right_hand_sides(a, sides);
  const Matrix<double> y2 = right_hand_sides(a, sides);
  const Matrix<double> solution2 = right_hand_sides(q.r, sides);
  const QrOperand z2 = qr_operand_of(qr_operand_specs(q, sides), make);
  const MatrixOperand passing_r{make(passing_spec(r.spec())), nullptr};
  const MatrixOperand passing_q{make(passing_spec(q.a.spec())), nullptr};
  std::vector<Matrix<double>> all{
      a,        r,    x,  y,  q.a,  q.t,    q.r,      z.x, z.top, explicit_q.x, explicit_q.top,
      solution, full, x2, y2, z2.x, z2.top, solution2};
  if (q.pair_v) all.insert(all.end(), {*q.pair_v, *q.pair_t});
  all.insert(all.end(), z.elsewhere.begin(), z.elsewhere.end());
  Recording recording;
  for (const Matrix<double>& m : all) recording.table.add(m, spare_count);
  recording.table.name_tiles_of(passing_r.tiles);
  recording.table.name_tiles_of(passing_q.tiles);
  for (const Matrix<double>& m : z.elsewhere) recording.table.add_room(m, z.x);
  const FineCut cut{fine_small, [&](protocol::TileId tile) {
                      const auto found = std::ranges::find(all, tile.matrix, &Matrix<double>::id);
                      if (found == all.end()) {  // a temporary one
                        const TileShape shape = NodeInternals(node).store().shape(tile);
                        return OperandShape{shape.rows, shape.columns};
                      }
                      const TileLayout& cuts = found->layout();
                      const auto rows = cuts.tile_rows();
                      return OperandShape{cuts.row_count(TileRow{tile.index % rows}),
                                          cuts.column_count(TileColumn{tile.index / rows})};
                    }};
  for (const Algorithm algorithm : jobs) {
    const JobSpec spec = [&] {
      switch (algorithm) {
        case Algorithm::cholesky:
          return cholesky(a, inverses);
        case Algorithm::solve_cholesky:
          return solve_cholesky(a, x);
        case Algorithm::subtract_symmetric_product:
          return subtract_symmetric_product(y, r, x);
        case Algorithm::subtract_product:
          return subtract_product(r, a);
        case Algorithm::qr:
          return heddle::qr(q);
        case Algorithm::apply_q_transposed:
          return heddle::apply_q_transposed(q, z);
        case Algorithm::apply_q:
          return heddle::apply_q(q, z);
        case Algorithm::apply_q_to_triangle:
          return heddle::apply_q_to_triangle(q, explicit_q);
        case Algorithm::solve_upper:
          return heddle::solve_upper(q.r, solution, z.top);
        case Algorithm::subtract_general_product:
          return subtract_product(z.x, q.a, z.top);
        case Algorithm::subtract_transposed_product:
          return subtract_transposed_product(z.top, q.a, z.x);
        case Algorithm::lu:
          return lu(full);
        case Algorithm::multiply_lower:
          return subtract_product(y, a, x);
        case Algorithm::multiply_lower_transposed:
          return subtract_transposed_product(x, a, y);
        case Algorithm::multiply_upper:
          return subtract_product(z2.top, q.r, z.top);
        case Algorithm::passing_symmetric_products:
          return subtract_symmetric_products(passing_r, {{y, x}, {y2, x2}});
        case Algorithm::passing_products:
          return subtract_products(passing_q, {{z.x, solution}, {z2.x, solution2}}, {{z.top, z.x}});
        case Algorithm::symmetric_products:
          return subtract_symmetric_products({r}, {{y, x}, {y2, x2}});
        case Algorithm::products:
          return subtract_products({q.a}, {{z.x, solution}, {z2.x, solution2}}, {{z.top, z.x}});
      }
      return JobSpec{};
    }();
    recording.jobs.push_back(simulation::record(spec, grid.node_count(), recording.table, cut));
  }
  return recording;
}

Outcome ProgramCase::run(const Recording& recording) const {
  SimulatedCluster simulated(cluster, recording.table.matrices());
  for (const RecordedJob& job : recording.jobs) {
    std::string defect;
    WalkedProgram walked = walked_program(job, recording.table, defect);
    if (!defect.empty()) {
      Outcome outcome;
      outcome.ok = false;
      outcome.failure = std::move(defect);
      return outcome;
    }
    simulated.submit(std::move(walked));
  }
  return simulated.run();
}

std::string ProgramCase::describe() const {
  std::string text = fmt::format(
      "{} x {} nodes with {} devices; n = {}, tile {}, strip {}, small {}, inverse blocks of {}; "
      "{} "
      "right-hand sides; window {}, {} extra blocks; {} workers divide into parts of {}, {} "
      "placement, {} extra frames; programs:",
      distribution.grid_rows, distribution.grid_columns, distribution.devices, layout.rows,
      layout.tile, layout.strip, layout.small, inverse_block, sides, cluster.window,
      cluster.extra_blocks, cluster.fine_workers, fine_small,
      cluster.placement == Placement::fixed ? "static" : "dynamic", cluster.extra_frames);
  text +=
      fmt::format(" (qr: {} x {} in virtual tiles of {}, {})", qr_rows, qr_columns,
                  qr_layout.virtual_tiles, qr_layout.tree == QrTree::flat ? "flat" : "binomial");
  for (const Algorithm a : jobs) text += fmt::format(" {}", name(a));
  return text;
}

Node& HandleLender::node() {
  constexpr std::int32_t uses_max = 100;
  if (node_ == nullptr || uses_++ == uses_max) {
    const Config config =
        Config::from_text("runtime: {cpu_workers: 1, devices: {backend: none}}\n", "test_programs");
    node_.reset();
    node_ = std::make_unique<Node>(config);
    uses_ = 0;
  }
  return *node_;
}

std::vector<Content> final_contents(const Recording& recording) {
  const std::vector<SimulatedMatrix>& matrices = recording.table.matrices();
  Reference reference(matrices);
  for (const RecordedJob& job : recording.jobs) {
    std::string defect;
    const WalkedProgram walked = walked_program(job, recording.table, defect);
    HEDDLE_CHECK(defect.empty(), "{}", defect);
    reference.run(walked.program);
  }
  std::vector<Content> contents;
  for (std::size_t m = 0; m < matrices.size(); ++m) {
    const protocol::MatrixId number{static_cast<std::int32_t>(m)};
    if (matrices[m].temporary || recording.table.is_room(number)) continue;
    for (std::size_t t = 0; t < matrices[m].homes.size(); ++t) {
      contents.push_back(reference.last({number, static_cast<std::int32_t>(t)}));
    }
  }
  return contents;
}

}  // namespace heddle::simulation
