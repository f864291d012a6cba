// How fast is LAPACK's own dgeqrf with the threads inside OpenBLAS?
#include <cblas.h>
#include <lapack.h>
#include <string>

#include "bench/peers/qr.hpp"

namespace peer = heddle::peer;

int main(int argc, char** argv) {
  peer::QrOptions options;
  CLI::App app{"dgeqrf of threaded OpenBLAS"};
  peer::add_qr_options(app, options);
  CLI11_PARSE(app, argc, argv);
  options.block = 0;  // LAPACK chooses
  openblas_set_num_threads(options.threads);

  const int m = static_cast<int>(options.m);
  const int n = static_cast<int>(options.n);
  const peer::Buffer a(options.m * options.n);
  const peer::Buffer tau(options.n);
  int info = 0;
  const int ask = -1;
  double wanted = 0;
  LAPACK_dgeqrf(&m, &n, a.data(), &m, tau.data(), &wanted, &ask, &info);
  const peer::Buffer work(static_cast<std::int64_t>(wanted));
  const int work_count = static_cast<int>(wanted);
  const auto seconds = peer::measure(
      options.warm_up, options.repetitions,
      [&] {
        double* element = a.data();
        for (std::int64_t j = 0; j < n; ++j) {
          for (std::int64_t i = 0; i < m; ++i) *element++ = peer::qr_element(i, j);
        }
      },
      [&] { LAPACK_dgeqrf(&m, &n, a.data(), &m, tau.data(), work.data(), &work_count, &info); });
  if (info != 0) {
    std::fprintf(stderr, "peer_lapack_qr: dgeqrf says info = %d\n", info);
    return 1;
  }
  peer::print_qr("lapack", "threads=" + std::to_string(options.threads), options, seconds);
  const auto r = [&](std::int64_t i, std::int64_t j) { return a.data()[i + j * options.m]; };
  return !options.check ||
                 peer::judge_factor(options.m, peer::triangle_error(options.m, options.n, r))
             ? 0
             : 1;
}
