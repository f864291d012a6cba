#include "apps/gpu_need.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "algorithms/cholesky/cholesky.hpp"
#include "algorithms/qr/qr.hpp"

namespace heddle {
namespace {

constexpr const char* variable = "CUDA_VISIBLE_DEVICES";

/// Rate of a factorization on one GPU. Recent ones reach more, older ones less.
constexpr double flops_per_second = 25e12;
/// What each GPU beside the first takes to start; measured on hosts with four
/// (bench/results/2026-11-28-whole-job-2-h200.md).
constexpr double start_seconds = 0.15;
/// What one GPU holds in any case: the matrix, and a copy of it for the verification.
constexpr double bytes_max = 16.0 * (std::uint64_t{1} << 30U);

double flops_of(config::Factorization factorization, double m, double n) {
  return factorization == config::Factorization::cholesky ? cholesky_flops(n) : qr_flops(m, n);
}

double bytes_of(config::Factorization factorization, double m, double n) {
  const double elements = factorization == config::Factorization::cholesky ? n * n / 2 : m * n;
  return 2 * elements * sizeof(double);
}

}  // namespace

bool one_gpu_does(const Config& config, std::int64_t rows, std::int64_t columns, int nodes,
                  int gpus) {
  const config::Devices& wanted = config.runtime.devices;
  const bool is_open =
      !wanted.per_node.has_value() &&
      (!wanted.backend.has_value() || *wanted.backend == config::DeviceBackend::cuda);
  if (!is_open || !config.problem || nodes > 1 || gpus < 2) return false;
  const auto m = static_cast<double>(rows);
  const auto n = static_cast<double>(columns);
  const config::Factorization factorization = config.problem->factorization;
  if (bytes_of(factorization, m, n) > bytes_max) return false;
  const double saved = flops_of(factorization, m, n) / flops_per_second * (1 - 1.0 / gpus);
  return saved < start_seconds * (gpus - 1);
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

void leave_one_gpu_in_sight() {
  const char* const listed = std::getenv(variable);
  const std::string_view list(listed == nullptr ? "0" : listed);
  const std::string first(list.substr(0, list.find(',')));
  static_cast<void>(::setenv(variable, first.c_str(), 1));
}

}  // namespace heddle
