#include "algorithms/io/agreement.hpp"
#include "algorithms/qr/layout.hpp"
#include "algorithms/qr/measures.hpp"
#include "algorithms/qr/qr.hpp"
#include "algorithms/qr/qr_matrix.hpp"
#include "base/require.hpp"
#include "node-runtime/node.hpp"
#include "node-runtime/node_facts.hpp"

namespace heddle {

QrFactors::QrFactors(std::shared_ptr<const QrMatrix> matrices) : matrices_(std::move(matrices)) {}

const Matrix<double>& QrFactors::a() const {
  return matrices_->a;
}

const Matrix<double>& QrFactors::r() const {
  return matrices_->r;
}

JobSpec QrFactors::factorize() const {
  return heddle::qr(*matrices_);
}

QrOperand QrFactors::operand(std::int64_t columns) const {
  std::optional<QrOperand> made;
  together(a().node(), [&] { made = qr_operand(*matrices_, columns); });
  return *made;
}

QrOperand QrFactors::operand(const Matrix<double>& x) const {
  QrOperandSpecs specs = qr_operand_specs(*matrices_, x.columns());
  Distribution wanted = specs.x.distribution;
  if (x.distribution().devices == 0) wanted.devices = 0;
  require(
      x.rows() == a().rows() && x.layout().tile == a().layout().tile &&
          x.storage() == Storage::full && x.spec().dealing == Dealing::cyclic &&
          x.distribution() == wanted,
      "QrFactors::operand: a matrix of {} x {} in tiles of {} rows; beside a factorization of {} "
      "x {} in tiles of {} rows it must have {} rows in such tiles, Storage::full, and the same "
      "distribution, or that on the host",
      x.rows(), x.columns(), x.layout().tile, a().rows(), a().columns(), a().layout().tile,
      a().rows());
  specs.top.layout.wide = specs.traveling.layout.wide = x.layout().wide_width();
  Node& node = a().node();
  std::optional<QrOperand> made;
  together(node, [&] {
    made = QrOperand{x, node.matrix<double>(specs.top), node.matrix<double>(specs.traveling)};
    for (const MatrixSpec& spec : specs_elsewhere(*matrices_, x.spec())) {
      made->elsewhere.push_back(node.matrix<double>(spec));
    }
  });
  return *made;
}

JobSpec QrFactors::apply_q_transposed(const QrOperand& x) const {
  return heddle::apply_q_transposed(*matrices_, x);
}

JobSpec QrFactors::apply_q(const QrOperand& x) const {
  return heddle::apply_q(*matrices_, x);
}

std::optional<DependentColumn> QrFactors::first_dependent_column() const {
  return heddle::first_dependent_column(*matrices_);
}

MatrixSpec qr_spec(const Node& node, std::int64_t rows, std::int64_t columns) {
  const QrCut cut = choose_qr_cut(rows, columns, node.config().layout, node.facts());
  return qr_specs(rows, columns, cut.layout, cut.distribution).a;
}

QrFactors qr(Node& node, const Matrix<double>& a) {
  require(&a.node() == &node, "qr: the matrix is of another node");
  const QrLayout layout = qr_layout_of(a.spec(), node.config().layout, node.facts());
  const QrSpecs specs = qr_specs(a.rows(), a.columns(), layout, a.distribution());
  std::optional<QrMatrix> q;
  // All nodes fill R, or none.
  together(node, [&] {
    q = qr_matrix_of(specs, layout, [&](const MatrixSpec& spec) {
      return &spec == &specs.a ? a : node.matrix<double>(spec);
    });
  });
  q->r.fill([](std::int64_t /*i*/, std::int64_t /*j*/) { return 0.0; });
  return QrFactors(std::make_shared<const QrMatrix>(*q));
}

}  // namespace heddle
