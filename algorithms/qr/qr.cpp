#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/io/agreement.hpp"
#include "algorithms/qr/program.hpp"
#include "algorithms/qr/qr_matrix.hpp"
#include "algorithms/qr/steps.hpp"
#include "algorithms/walk/job.hpp"
#include "base/require.hpp"
#include "node-runtime/node.hpp"
#include "node-runtime/threads/program.hpp"

namespace heddle {
namespace {

using qr_tree::Work;

JobSpec qr_job(std::string name, const QrMatrix& q, const QrOperand& x, Work work) {
  std::vector<Matrix<double>> matrices{q.a, q.t, x.x, x.top, x.traveling};
  matrices.insert(matrices.end(), x.elsewhere.begin(), x.elsewhere.end());
  if (q.pair_v) matrices.insert(matrices.end(), {*q.pair_v, *q.pair_t});
  JobSpec spec = job_of(std::move(name), matrices, [q, x, work](TaskStream& tasks) {
    return qr_tree::walk(tasks, q, x, work);
  });
  spec.fine = q.a.layout().fine;
  spec.part = [q, x, work](protocol::TileId tile, Version version) {
    return qr_tree::part_of(q, x, work, tile, version);
  };
  spec.readers = [q, x, work](protocol::TileId tile, Version version) {
    return qr_tree::readers_of(q, x, work, tile, version);
  };
  return spec;
}

void require_operand(const char* function, const QrMatrix& q, const QrOperand& x) {
  require(
      x.x.rows() == q.a.rows() && x.x.layout().tile == q.a.layout().tile &&
          x.top.rows() == q.a.columns() && x.top.columns() == x.x.columns(),
      "{}: the operand is {} x {} in tiles of {} rows, its top {} x {}; beside a factorization "
      "of {} x {} in tiles of {} rows it must have {} rows in such tiles, its top {} rows and as "
      "many columns",
      function, x.x.rows(), x.x.columns(), x.x.layout().tile, x.top.rows(), x.top.columns(),
      q.a.rows(), q.a.columns(), q.a.layout().tile, q.a.rows(), q.a.columns());
}

auto maker(Node& node) {
  return [&node](const MatrixSpec& spec) { return node.matrix<double>(spec); };
}

}  // namespace

QrSpecs qr_specs(std::int64_t rows, std::int64_t columns, const QrLayout& layout,
                 const Distribution& distribution) {
  require(columns >= 0 && rows >= columns,
          "qr_specs: a matrix of {} x {}; it must have at least as many rows as columns", rows,
          columns);
  require(
      layout.tile >= 1 && layout.virtual_tiles >= 1 && layout.inner >= 1 &&
          layout.inner <= layout.tile,
      "qr_specs: tiles of {}, {} to a virtual tile, inner blocks of {} columns; each must be at "
      "least 1, and an inner block no wider than a tile",
      layout.tile, layout.virtual_tiles, layout.inner);
  const MatrixSpec a({.rows = rows,
                      .columns = columns,
                      .tile = layout.tile * layout.virtual_tiles,
                      .strip = layout.strip,
                      .small = layout.small,
                      .fine = layout.fine,
                      .wide = layout.tile},
                     distribution);
  const std::int64_t tall = a.layout.tile_rows();
  const std::int32_t slots = qr_tree::slots(layout.tree);
  const auto with_rows = [&](std::int64_t each, std::int64_t count) {
    MatrixSpec spec = a;
    spec.layout.rows = count;
    spec.layout.tile = each;
    return spec;
  };
  QrSpecs specs{.a = a,
                .t = with_rows(layout.inner, tall * layout.inner),
                .r = with_rows(layout.tile, columns),
                .traveling_r = with_rows(layout.tile, tall * slots * layout.tile),
                .pair_v = with_rows(layout.tile, tall * layout.tile),
                .pair_t = with_rows(layout.inner, tall * layout.inner)};
  specs.r.storage = Storage::upper;
  specs.r.distribution.row_group = layout.virtual_tiles;
  specs.traveling_r.temporary = true;
  specs.traveling_r.distribution.row_group = slots;
  return specs;
}

QrMatrix qr_matrix(Node& node, std::int64_t rows, std::int64_t columns, const QrLayout& layout,
                   const Distribution& distribution) {
  const QrSpecs specs = qr_specs(rows, columns, layout, distribution);
  std::optional<QrMatrix> q;
  // All nodes fill R, or none.
  together(node, [&] { q = qr_matrix_of(specs, layout, maker(node)); });
  q->r.fill([](std::int64_t /*i*/, std::int64_t /*j*/) { return 0.0; });
  return *q;
}

JobSpec qr(const QrMatrix& q) {
  return qr_job("qr", q, {q.a, q.r, q.traveling_r}, Work::factorize);
}

QrOperandSpecs qr_operand_specs(const QrMatrix& q, std::int64_t columns) {
  const std::int64_t tile = q.a.layout().wide_width();
  const std::int64_t parts = std::max<std::int64_t>(1, (columns + tile - 1) / tile);
  const auto like = [&](const Matrix<double>& m) {
    MatrixSpec spec = m.spec();
    spec.storage = Storage::full;
    spec.layout.columns = columns;
    spec.layout.strip = spec.layout.small = spec.layout.fine = 0;
    spec.layout.wide = std::max<std::int64_t>(1, (columns + parts - 1) / parts);
    return spec;
  };
  const MatrixSpec x = like(q.a);
  return {x, like(q.r), like(q.traveling_r), specs_elsewhere(q, x)};
}

std::vector<MatrixSpec> specs_elsewhere(const QrMatrix& q, const MatrixSpec& x) {
  const std::int32_t devices = q.a.distribution().devices;
  const bool is_on_host = x.distribution.devices == 0;
  std::vector<MatrixSpec> specs;
  for (std::int32_t shift = is_on_host ? 0 : 1; shift < devices; ++shift) {
    MatrixSpec& spec = specs.emplace_back(x);
    spec.distribution.devices = devices;
    spec.distribution.device_shift = shift;
  }
  if (!is_on_host && q.a.layout().strip > 0) specs.emplace_back(x).distribution.devices = 0;
  return specs;
}

QrOperand qr_operand(const QrMatrix& q, std::int64_t columns) {
  return qr_operand_of(qr_operand_specs(q, columns), maker(q.a.node()));
}

QrOperandSpecs explicit_q_operand_specs(const QrMatrix& q) {
  return {q.a.spec(), q.r.spec(), q.traveling_r.spec()};
}

QrOperand explicit_q_operand(const QrMatrix& q) {
  return qr_operand_of(explicit_q_operand_specs(q), maker(q.a.node()));
}

JobSpec apply_q_transposed(const QrMatrix& q, const QrOperand& x) {
  require_operand("apply_q_transposed", q, x);
  return qr_job("Q^T x", q, x, Work::apply_transposed);
}

JobSpec apply_q(const QrMatrix& q, const QrOperand& x) {
  require_operand("apply_q", q, x);
  return qr_job("Q x", q, x, Work::apply);
}

JobSpec apply_q_to_triangle(const QrMatrix& q, const QrOperand& x) {
  require_operand("apply_q_to_triangle", q, x);
  require(
      x.x.layout() == q.a.layout() && x.top.layout() == q.r.layout(),
      "apply_q_to_triangle: an operand of {} columns in wide columns of {}; it must be cut as A, "
      "which has {} columns in wide columns of {} (explicit_q_operand)",
      x.x.columns(), x.x.layout().wide_width(), q.a.columns(), q.a.layout().wide_width());
  return qr_job("Q [R; 0]", q, x, Work::generate);
}

}  // namespace heddle
