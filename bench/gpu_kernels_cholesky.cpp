#include <algorithm>
#include <array>
#include <cstdint>
#include <fmt/core.h>
#include <string>
#include <vector>

#include "bench/gpu_kernels.hpp"
#include "kernels/cuda/definitions.hpp"
#include "kernels/cuda/factor.hpp"
#include "kernels/kernels.hpp"

namespace heddle::bench {
namespace {

using kernel::cuda::FactorMethod;

const KernelParameters whole_tile(kernel::PieceParameters{0});

double cube(std::int64_t n) {
  const auto x = static_cast<double>(n);
  return x * x * x;
}

/// Both methods without inverse blocks (inner 0) and with those of the usual widths.
void time_potrf(GpuBench& bench) {
  for (const std::int64_t w : {256, 512, 768, 1024, 1536, 2048, 4096}) {
    const DeviceMatrix definite(w, w);
    bench.fill_definite(definite);
    const DeviceMatrix tile(w, w);
    for (const FactorMethod method : {FactorMethod::own, FactorMethod::cusolver}) {
      const std::string name = method == FactorMethod::own ? "potrf_own" : "potrf_cusolver";
      if (!bench.wants(name)) continue;
      for (const std::int64_t inner : {0, 256, 512}) {
        const DeviceMatrix inverses(std::max<std::int64_t>(1, inner), w);
        GpuBench::Case timed{
            .kernel = name,
            .shape = fmt::format("w {} inner {}", w, inner),
            .flops = cube(w) / 3,
            .definition = [=](const CudaLaunch& launch) { kernel::cuda::potrf_by(method, launch); },
            .parameters = whole_tile,
            .tiles = {tile.view()},
            .restored = {{&tile, &definite}}};
        if (inner > 0) timed.tiles.push_back(inverses.view());
        bench.time(timed);
      }
    }
  }
}

/// A panel of a column of tiles: potrf with the rows beneath it.
void time_potrf_panel(GpuBench& bench) {
  if (!bench.wants("potrf_panel")) return;
  for (const std::int64_t w : {512, 1024}) {
    const std::int64_t rows = 4 * w;
    const DeviceMatrix definite(rows, w);
    bench.fill_definite(definite);
    const DeviceMatrix tile(rows, w);
    bench.time({.kernel = "potrf_panel",
                .shape = fmt::format("rows {} w {}", rows, w),
                .flops = cube(w) / 3 + 3 * cube(w),
                .definition = kernel::cuda::potrf,
                .parameters = whole_tile,
                .tiles = {tile.view()},
                .restored = {{&tile, &definite}}});
  }
}

void time_trsm(GpuBench& bench) {
  if (!bench.wants("trsm")) return;
  for (const std::int64_t w : {512, 1024, 2048}) {
    for (const std::int64_t inner : {0, 256, 512, 1024}) {
      if (inner > w) continue;
      const DeviceMatrix l(w, w);
      bench.fill_definite(l);
      const DeviceMatrix inverses(std::max<std::int64_t>(1, inner), w);
      std::vector<TileView> factored{l.view()};
      if (inner > 0) factored.push_back(inverses.view());
      bench.run(kernel::cuda::potrf, whole_tile, factored);
      for (const std::int64_t m : {w, 4 * w}) {
        const DeviceMatrix b(m, w);
        bench.fill_normal(b);
        const DeviceMatrix x(m, w);
        std::vector<TileView> tiles{x.view()};
        tiles.insert(tiles.end(), factored.begin(), factored.end());
        bench.time({.kernel = "trsm",
                    .shape = fmt::format("m {} w {} inner {}", m, w, inner),
                    .flops = static_cast<double>(m) * static_cast<double>(w * w),
                    .definition = kernel::cuda::trsm,
                    .parameters = whole_tile,
                    .tiles = tiles,
                    .restored = {{&x, &b}}});
      }
    }
  }
}

constexpr std::array<std::int64_t, 6> update_sizes{512, 768, 1024, 1536, 2048, 4096};

void time_updates(GpuBench& bench) {
  for (const std::int64_t w : update_sizes) {
    const DeviceMatrix a(w, w);
    const DeviceMatrix b(w, w);
    const DeviceMatrix c(w, w);
    for (const DeviceMatrix* matrix : {&a, &b, &c}) bench.fill_normal(*matrix);
    if (bench.wants("syrk")) {
      bench.time({.kernel = "syrk",
                  .shape = fmt::format("w {} depth {}", w, w),
                  .flops = cube(w),
                  .definition = kernel::cuda::syrk,
                  .parameters = whole_tile,
                  .tiles = {c.view(), a.view()},
                  .restored = {}});
    }
    if (bench.wants("gsmm")) {
      bench.time({.kernel = "gsmm",
                  .shape = fmt::format("m {} w {} depth {}", w, w, w),
                  .flops = 2 * cube(w),
                  .definition = kernel::cuda::gsmm,
                  .parameters = KernelParameters(kernel::UpdateParameters{0}),
                  .tiles = {c.view(), a.view(), b.view()},
                  .restored = {}});
    }
  }
}

}  // namespace

void time_cholesky_kernels(GpuBench& bench) {
  time_potrf(bench);
  time_potrf_panel(bench);
  time_trsm(bench);
  time_updates(bench);
}

}  // namespace heddle::bench
