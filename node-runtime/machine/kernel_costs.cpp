#include "node-runtime/machine/kernel_costs.hpp"

#include <cmath>
#include <limits>
#include <utility>

#include "kernels/kernel_case.hpp"
#include "kernels/kernels.hpp"

namespace heddle {
namespace {

constexpr double worker_flops_unmeasured = 1e10;
constexpr double device_flops_unmeasured = 1e12;
constexpr double bytes_per_s = 1e10;

double area(double rows, double columns) {
  return std::log(std::max(1.0, rows) * std::max(1.0, columns));
}

/// Operations per second of `kernel` where it was measured with a main output nearest in size; 0:
/// it was not.
double rate_of(const KernelTimes& times, const Kernel& kernel, double size) {
  double rate = 0;
  double nearest = std::numeric_limits<double>::infinity();
  for (const KernelTime& time : times) {
    if (time.kernel != &kernel || time.microseconds <= 0) continue;
    const double distance =
        std::abs(area(static_cast<double>(time.rows), static_cast<double>(time.columns)) - size);
    if (distance >= nearest) continue;
    nearest = distance;
    rate = flops_of(kernel, time.rows, time.columns) / (time.microseconds * 1e-6);
  }
  return rate;
}

}  // namespace

KernelCosts::KernelCosts(KernelTimes worker, KernelTimes device)
    : worker_(std::move(worker)), device_(std::move(device)) {}

double KernelCosts::seconds(const KernelCase& what, bool on_device) const {
  const KernelTimes& times = on_device ? device_ : worker_;
  const auto rows = static_cast<double>(what.operands[0].rows);
  const auto columns = static_cast<double>(what.operands[0].columns);
  const double flops = flops_of(what);
  if (flops <= 0) return rows * columns * sizeof(double) / bytes_per_s;
  double rate = rate_of(times, *what.kernel, area(rows, columns));
  if (rate <= 0) rate = rate_of(times, kernel::gsmm, area(rows, columns));
  if (rate <= 0) rate = on_device ? device_flops_unmeasured : worker_flops_unmeasured;
  return flops / rate;
}

}  // namespace heddle
