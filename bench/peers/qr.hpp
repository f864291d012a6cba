#pragma once

#include "bench/peers/peer.hpp"

/// What the QR peers share beyond peer.hpp.
namespace heddle::peer {

/// Element (i, j) of the test matrix, heddle's own drivers' as well.
inline double qr_element(std::int64_t i, std::int64_t j) {
  return noise(i, j) + (i == j ? 2.0 : 0.0);
}

inline double qr_flops(std::int64_t m, std::int64_t n) {
  const auto rows = static_cast<double>(m);
  const auto columns = static_cast<double>(n);
  return 2 * columns * columns * (rows - columns / 3);
}

/// The options of every QR driver: `n` columns and `m` >= n rows.
struct QrOptions : FactorOptions {
  std::int64_t m = 0;  ///< after the command line was read never 0
};

inline void add_qr_options(CLI::App& app, QrOptions& options) {
  app.add_option("--m", options.m, "rows; left out: as many as columns")
      ->check(CLI::Range(1, 1 << 20));
  add_factor_options(app, options);
  app.parse_complete_callback([&options] {
    if (options.m == 0) options.m = options.n;
    if (options.m < options.n) throw CLI::ValidationError("--m", "fewer rows than columns");
  });
}

inline void print_qr(const std::string& peer, const std::string& details, const QrOptions& options,
                     const std::vector<double>& seconds) {
  print_rate(peer,
             "op=qr m=" + std::to_string(options.m) + " n=" + std::to_string(options.n) +
                 " nb=" + std::to_string(options.block) + " " + details,
             qr_flops(options.m, options.n), seconds);
}

/// ‖AᵀA x − RᵀR x‖ / ‖AᵀA x‖ for a fixed x, A the m×n test matrix. `r(i, j)` gives R's element for
/// i <= j.
template <class R>
double triangle_error(std::int64_t m, std::int64_t n, R r) {
  const auto gram_times_x = [n](std::int64_t rows, auto last_row, auto element) {
    std::vector<double> product(static_cast<std::size_t>(rows));
    for (std::int64_t j = 0; j < n; ++j) {
      const double x = noise(j, n + 1);
      for (std::int64_t i = 0; i <= last_row(j); ++i) {
        product[static_cast<std::size_t>(i)] += element(i, j) * x;
      }
    }
    std::vector<double> result(static_cast<std::size_t>(n));
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::int64_t i = 0; i <= last_row(j); ++i) {
        sum += element(i, j) * product[static_cast<std::size_t>(i)];
      }
      result[static_cast<std::size_t>(j)] = sum;
    }
    return result;
  };
  const auto all_rows = [m](std::int64_t) { return m - 1; };
  const auto to_diagonal = [](std::int64_t j) { return j; };
  return relative_difference(gram_times_x(m, all_rows, qr_element),
                             gram_times_x(n, to_diagonal, r));
}

}  // namespace heddle::peer
