#include "kernels/kernel_case.hpp"

#include <string_view>

#include "kernels/cholesky.hpp"
#include "kernels/piece.hpp"
#include "kernels/qr.hpp"

namespace heddle {
namespace {

/// Of a panel's w reflectors of `m` rows, applied to n columns.
double application(double m, double w, double n) {
  return (4 * m - 2 * w) * w * n;
}

}  // namespace

double flops_of(const KernelCase& what) {
  const auto rows = [&](std::size_t i) { return static_cast<double>(what.operands[i].rows); };
  const auto columns = [&](std::size_t i) { return static_cast<double>(what.operands[i].columns); };
  const std::string_view name = what.kernel->name;
  const double m = rows(0);
  const double w = columns(0);
  if (name == "potrf" || name == "syrk") {
    const auto offset = static_cast<double>(what.parameters.as<kernel::PieceParameters>().offset);
    const double below = m - offset - w;
    if (name == "potrf") return w * w * w / 3 + below * w * w;
    return (w + 2 * below) * w * columns(1);
  }
  if (name == "trsm") return m * w * w;
  if (name == "gsmm") return 2 * m * w * columns(1);
  const auto active = [&] {
    return m - static_cast<double>(what.parameters.as<kernel::PanelParameters>().first);
  };
  if (name == "geqrt") return 2 * w * w * (active() - w / 3);
  if (name == "tsqrt") return 2 * m * w * w;
  if (name == "unmqr" || name == "unmqr_back") return application(active(), columns(2), w);
  if (name == "tsmqr" || name == "tsmqr_back") return 4 * m * columns(2) * w;
  if (name == "ttqrt") return 2 * w * w * w / 3;
  if (name == "ttmqr" || name == "ttmqr_back") return 2 * columns(2) * columns(2) * w;
  return 0;
}

}  // namespace heddle
