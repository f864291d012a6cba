#include "tests/fine/cases.hpp"

#include <algorithm>
#include <fmt/core.h>

#include "kernels/kernels.hpp"

namespace heddle::test {
namespace {

using kernel::PanelParameters;
using kernel::PieceParameters;
using kernel::UpdateParameters;

class Cases {
 public:
  template <class Parameters>
  void add(const Kernel& kernel, const Parameters& parameters, std::vector<OperandShape> operands) {
    std::string name(kernel.name);
    for (const OperandShape& o : operands) name += fmt::format(" {}x{}", o.rows, o.columns);
    all.push_back({&kernel, KernelParameters(parameters), std::move(operands), name});
  }

  /// A piece of w columns at `offset` of a tile of m rows; another tile of n.
  void add_cholesky(std::int64_t m, std::int64_t w, std::int64_t offset, std::int64_t n) {
    const PieceParameters piece{offset};
    const OperandShape tile{m, w};
    add(kernel::potrf, piece, {tile});
    for (const std::int64_t inner : {std::max<std::int64_t>(1, w / 3), w + 1, std::int64_t{7}}) {
      add(kernel::potrf, piece, {tile, {inner, w}});
    }
    add(kernel::trsm, piece, {{n, w}, tile});
    add(kernel::trsm, piece, {{n, w}, tile, {std::max<std::int64_t>(1, w / 2), w}});
    add(kernel::gsmm, UpdateParameters{offset}, {{n, w}, {n, m}, {m, m}});
    add(kernel::syrk, piece, {tile, {m, n}});
  }

  /// Panels of w columns, m active rows from `first` on, R from `row` on, n columns beside.
  void add_qr(std::int64_t m, std::int64_t w, std::int64_t n, PanelParameters p) {
    const OperandShape r{p.row + w + 2, w};
    const OperandShape beside{p.row + w + 2, n};
    const OperandShape t{std::min(p.inner, std::max<std::int64_t>(1, w)), w};
    if (m >= w) {
      const OperandShape a{p.first + m, w};
      add(kernel::geqrt, p, {a, r, t});
      add(kernel::unmqr, p, {{p.first + m, n}, beside, a, t});
      add(kernel::unmqr_back, p, {{p.first + m, n}, beside, a, t});
    }
    const OperandShape below{m, w};
    add(kernel::tsqrt, p, {below, r, t});
    add(kernel::tsqrt, p, {below, r, t, r});
    for (const Kernel* k : {&kernel::tsmqr, &kernel::tsmqr_back}) {
      add(*k, p, {{m, n}, beside, below, t});
      add(*k, p, {{m, n}, beside, below, t, beside});
    }
    add(kernel::ttqrt, p, {r, r, t, r, r});
    add(kernel::ttmqr, p, {beside, beside, r, t, beside, beside});
    add(kernel::ttmqr_back, p, {beside, beside, r, t, beside, beside});
    add(kernel::copy_rows, PanelParameters{0, p.row, w}, {beside, beside});
    add(kernel::copy_triangle, PanelParameters{0, p.row, w}, {r, r});
  }

  std::vector<FineCase> all;
};

}  // namespace

std::vector<FineCase> fine_cases(std::int64_t scale) {
  Cases cases;
  cases.add_cholesky(scale, scale, 0, scale);
  cases.add_cholesky(scale + 5, scale / 2, scale / 3, scale + 3);
  cases.add_cholesky(scale, scale / 4, scale - scale / 4, 1);
  cases.add_cholesky(1, 1, 0, 2);
  cases.add_cholesky(3, 0, 1, 2);
  cases.add_qr(scale, scale, scale, {0, 0, std::max<std::int64_t>(1, scale / 6)});
  cases.add_qr(2 * scale, scale, scale / 2, {3, 2, std::max<std::int64_t>(1, scale / 5)});
  cases.add_qr(scale / 2, scale, scale + 1, {0, 1, scale});
  cases.add_qr(1, 1, 3, {0, 0, 1});
  cases.add_qr(4, 0, 2, {1, 0, 2});
  return std::move(cases.all);
}

}  // namespace heddle::test
