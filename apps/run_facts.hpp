#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "replay/run.hpp"

namespace heddle {

/// What a run's own report says, as far as it has one: a run that failed has none, and of a damaged
/// one it may be lost.
struct RunFacts {
  bool is_there = false;
  bool is_simulated = false;
  std::optional<std::int32_t> job;  ///< that it is about
  bool is_of_job = true;            ///< it is the one that is looked at
  std::optional<std::string> status;
  std::optional<std::string> factorization;
  std::optional<std::int64_t> m, n, tile;
  std::optional<double> factor_s;
  std::optional<double> gflops;
  std::optional<double> gemm_gflops;  ///< of products, on the same cores and devices
  /// What a virtual machine's host gave to others, of the workers' time.
  std::optional<double> stolen_share;
  /// What was set or chosen, as the report has it: "tile", "160".
  std::vector<std::pair<std::string, std::string>> settings;

  /// What products of matrices alone take for the factorization's flops, at the rate that was
  /// measured for them.
  [[nodiscard]] std::optional<double> products_s() const;
  /// Why that is not known; empty where it is.
  [[nodiscard]] std::string why_no_products() const;
};

/// `job` is the one that is looked at: of another one than the report's, rates and times are left
/// out.
[[nodiscard]] RunFacts facts_of(const replay::RunTrace& run, std::int32_t job);

}  // namespace heddle
