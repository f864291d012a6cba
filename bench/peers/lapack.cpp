// How fast is LAPACK's own dpotrf with the threads inside OpenBLAS?
#include <cblas.h>
#include <lapack.h>
#include <string>

#include "bench/peers/peer.hpp"

namespace peer = heddle::peer;

int main(int argc, char** argv) {
  peer::FactorOptions options;
  CLI::App app{"dpotrf of threaded OpenBLAS"};
  peer::add_factor_options(app, options);
  CLI11_PARSE(app, argc, argv);
  options.block = 0;  // LAPACK chooses
  openblas_set_num_threads(options.threads);

  const std::int64_t n = options.n;
  const peer::Buffer a(n * n);
  const int order = static_cast<int>(n);
  int info = 0;
  const auto seconds = peer::measure(
      options.warm_up, options.repetitions,
      [&] {
        for (std::int64_t j = 0; j < n; ++j) {
          for (std::int64_t i = j; i < n; ++i) a.data()[i + j * n] = peer::spd_element(i, j, n);
        }
      },
      [&] { LAPACK_dpotrf("L", &order, a.data(), &order, &info); });
  if (info != 0) {
    std::fprintf(stderr, "peer_lapack: dpotrf says info = %d\n", info);
    return 1;
  }
  peer::print_cholesky("lapack", "threads=" + std::to_string(options.threads), options, seconds);
  const auto element = [&](std::int64_t i, std::int64_t j) { return a.data()[i + j * n]; };
  return !options.check || peer::judge_factor(n, peer::factor_error(n, element)) ? 0 : 1;
}
