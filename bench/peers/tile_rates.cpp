// Which rate do the tile kernels reach on one core, and what could a tile Cholesky make of them?
// The answer depends on the kernel set that OpenBLAS loaded (OPENBLAS_CORETYPE), so the last line,
// the mix, is what a choice between the sets goes by.
#include <array>
#include <functional>
#include <string>
#include <vector>

#include "bench/peers/tiles.hpp"

namespace peer = heddle::peer;

namespace {

// More tiles than a core's own caches hold, used in turn, as in a factorization.
constexpr int tile_count = 16;
constexpr int inputs = 4;

struct Kernel {
  std::string name;
  double flops;
  double calls_in_mix;
  std::function<void(int)> run;  ///< on tile i, inputs <= i < tile_count
};

class Tiles {
 public:
  explicit Tiles(int n) : n_(n) {
    for (int t = 0; t < tile_count; ++t) tiles_.emplace_back(std::int64_t{n} * n);
  }

  void generate() {
    for (int t = 0; t < tile_count; ++t) {
      for (int j = 0; j < n_; ++j) {
        for (int i = 0; i < n_; ++i) (*this)(t)[i + j * n_] = peer::spd_element(i, j, n_);
      }
    }
  }

  [[nodiscard]] double* operator()(int t) const {
    return tiles_[static_cast<std::size_t>(t)].data();
  }

 private:
  int n_;
  std::vector<peer::Buffer> tiles_;
};

/// Seconds of one call, the median over repetitions.
double seconds_per_call(const Kernel& kernel, Tiles& tiles, int repetitions) {
  const auto seconds = peer::measure(
      1, repetitions, [&] { tiles.generate(); },
      [&] {
        for (int i = inputs; i < tile_count; ++i) kernel.run(i);
      });
  return peer::median(seconds) / (tile_count - inputs);
}

void print(const std::string& name, int n, double gflops) {
  std::printf("peer=tile_rates op=%s nb=%d coretype=%s gflops_median=%.2f\n", name.c_str(), n,
              openblas_get_corename(), gflops);
  std::fflush(stdout);
}

void rates(int n, int repetitions) {
  Tiles tiles(n);
  const double cube = static_cast<double>(n) * n * n;
  const double steps = 16;  // the mix is a Cholesky of 16 x 16 tiles
  const std::array<Kernel, 4> kernels{{
      {"potrf", cube / 3, steps, [&](int i) { peer::factor_tile(n, tiles(i)); }},
      {"trsm", cube, steps * (steps - 1) / 2,
       [&](int i) { peer::solve_tile(n, n, tiles(i % inputs), tiles(i)); }},
      {"syrk", cube, steps * (steps - 1) / 2,
       [&](int i) { peer::update_diagonal_tile(n, n, tiles(i % inputs), tiles(i)); }},
      {"gemm", 2 * cube, steps * (steps - 1) * (steps - 2) / 6,
       [&](int i) {
         peer::update_tile(n, n, n, tiles(i % inputs), tiles((i + 1) % inputs), tiles(i));
       }},
  }};
  double mix_flops = 0;
  double mix_seconds = 0;
  for (const Kernel& kernel : kernels) {
    const double seconds = seconds_per_call(kernel, tiles, repetitions);
    print(kernel.name, n, kernel.flops / seconds * 1e-9);
    mix_flops += kernel.calls_in_mix * kernel.flops;
    mix_seconds += kernel.calls_in_mix * seconds;
  }
  print("mix", n, mix_flops / mix_seconds * 1e-9);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<int> sizes{128, 200, 256, 320, 400};
  int repetitions = 7;
  CLI::App app{"single-core rates of the tile kernels"};
  app.add_option("--nb", sizes, "tile sizes")->check(CLI::Range(1, 4096));
  app.add_option("--repetitions", repetitions, "timed runs")->check(CLI::Range(1, 1000));
  CLI11_PARSE(app, argc, argv);
  openblas_set_num_threads(1);
  for (const int n : sizes) rates(n, repetitions);
  return 0;
}
