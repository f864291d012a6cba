#include "apps/gpu_need.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "algorithms/cholesky/cholesky.hpp"
#include "algorithms/qr/qr.hpp"

namespace heddle {
namespace {

constexpr const char* variable = "CUDA_VISIBLE_DEVICES";

/// Rate of a factorization on one GPU of the latest kinds. On older ones more of them would save a
/// few tenths of a second more than is counted here.
constexpr double flops_per_second = 50e12;
/// What each GPU beside the first takes to start; measured on hosts with two and four
/// (bench/results/2026-11-28-whole-job-2-h200.md).
constexpr double start_seconds = 0.25;
/// What one GPU holds in any case: its part of the matrix, and a copy of it for the verification.
constexpr double bytes_max = 16.0 * (std::uint64_t{1} << 30U);

double flops_of(config::Factorization factorization, double m, double n) {
  return factorization == config::Factorization::cholesky ? cholesky_flops(n) : qr_flops(m, n);
}

double bytes_of(config::Factorization factorization, double m, double n) {
  const double elements = factorization == config::Factorization::cholesky ? n * n / 2 : m * n;
  return 2 * elements * sizeof(double);
}

}  // namespace

int gpus_worth_starting(const Config& config, std::int64_t rows, std::int64_t columns, int nodes,
                        int gpus) {
  const config::Devices& wanted = config.runtime.devices;
  const bool is_open =
      !wanted.per_node.has_value() &&
      (!wanted.backend.has_value() || *wanted.backend == config::DeviceBackend::cuda);
  if (!is_open || !config.problem || nodes > 1) return gpus;
  const auto m = static_cast<double>(rows);
  const auto n = static_cast<double>(columns);
  const config::Factorization factorization = config.problem->factorization;
  const double work_seconds = flops_of(factorization, m, n) / flops_per_second;
  const auto seconds = [&](int count) { return start_seconds * count + work_seconds / count; };
  int best = gpus;
  for (int count = 1; count < gpus; count *= 2) {
    if (bytes_of(factorization, m, n) > bytes_max * count) continue;
    if (seconds(count) < seconds(best)) best = count;
  }
  return best;
}

int gpus_in_sight() {
  if (const char* const listed = std::getenv(variable)) {
    const std::string_view list(listed);
    return list.empty() ? 0 : 1 + static_cast<int>(std::ranges::count(list, ','));
  }
  std::error_code error;
  int count = 0;
  for (std::filesystem::directory_iterator each("/proc/driver/nvidia/gpus", error), end;
       !error && each != end; each.increment(error)) {
    ++count;
  }
  return count;
}

void leave_gpus_in_sight(int count) {
  const char* const listed = std::getenv(variable);
  std::string first;
  if (listed == nullptr) {
    for (int k = 0; k < count; ++k) first += (k > 0 ? "," : "") + std::to_string(k);
  } else {
    const std::string_view list(listed);
    std::size_t end = 0;
    for (int k = 0; k < count && end != std::string_view::npos; ++k) {
      end = list.find(',', k == 0 ? 0 : end + 1);
    }
    first = list.substr(0, end);
  }
  static_cast<void>(::setenv(variable, first.c_str(), 1));
}

}  // namespace heddle
