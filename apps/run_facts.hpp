#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "replay/run.hpp"

namespace heddle {

/// Facts from a run's own report; missing for a failed run, and possibly for a damaged one.
struct RunFacts {
  bool is_there = false;
  bool is_simulated = false;
  std::optional<std::int32_t> job;  ///< job of the report
  bool is_of_job = true;            ///< it is the job to analyse
  std::optional<std::string> status;
  std::optional<std::string> factorization;
  std::optional<std::int64_t> m, n, tile;
  std::optional<double> factor_s;
  std::optional<double> gflops;
  std::optional<double> gemm_gflops;  ///< of products on the same cores and devices
  /// Fraction of the workers' time taken by a virtual machine's host.
  std::optional<double> stolen_share;
  /// Settings and choices by their names in the report: "tile", "160".
  std::vector<std::pair<std::string, std::string>> settings;

  /// Time of the factorization's flops at the measured rate of matrix products.
  [[nodiscard]] std::optional<double> products_s() const;
  /// Why that is unknown; empty if known.
  [[nodiscard]] std::string why_no_products() const;
};

/// Facts for `job`; without rates and times if the report is of another one.
[[nodiscard]] RunFacts facts_of(const replay::RunTrace& run, std::int32_t job);

}  // namespace heddle
