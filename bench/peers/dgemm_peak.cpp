// What is the most these cores give: the rate of one large DGEMM, the 100 % of every table.
#include <cblas.h>

#include "bench/peers/peer.hpp"

namespace peer = heddle::peer;

int main(int argc, char** argv) {
  std::int64_t n = 3072;
  int threads = 2;
  int repetitions = 3;
  CLI::App app{"rate of C := C - A B^T for square matrices, threads inside OpenBLAS"};
  app.add_option("--n", n, "order")->check(CLI::Range(1, 1 << 15));
  app.add_option("--threads", threads, "computing threads")->check(CLI::Range(1, 1024));
  app.add_option("--repetitions", repetitions, "timed runs")->check(CLI::Range(1, 1000));
  CLI11_PARSE(app, argc, argv);
  openblas_set_num_threads(threads);

  const peer::Buffer a(n * n);
  const peer::Buffer b(n * n);
  const peer::Buffer c(n * n);
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t i = 0; i < n; ++i) {
      a.data()[i + j * n] = peer::noise(i, j);
      b.data()[i + j * n] = peer::noise(i, j + n);
      c.data()[i + j * n] = 0;
    }
  }
  const double gflop =
      2e-9 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
  const int calls = 1 + static_cast<int>(2.0 / gflop);  // short runs are timed in batches
  const int order = static_cast<int>(n);
  const auto seconds = peer::measure(
      1, repetitions, [] {},
      [&] {
        for (int i = 0; i < calls; ++i) {
          cblas_dgemm(CblasColMajor, CblasNoTrans, CblasTrans, order, order, order, -1.0, a.data(),
                      order, b.data(), order, 1.0, c.data(), order);
        }
      });
  std::printf(
      "peer=openblas op=dgemm n=%d threads=%d coretype=%s gflops_median=%.2f "
      "gflops_best=%.2f\n",
      order, threads, openblas_get_corename(), gflop * calls / peer::median(seconds),
      gflop * calls / *std::min_element(seconds.begin(), seconds.end()));
  return 0;
}
