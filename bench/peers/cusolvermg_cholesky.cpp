// How fast is cuSOLVERMg's potrf on several GPUs of one host, the matrix in their memories?
#include <cstdlib>
#include <cusolverMg.h>
#include <exception>
#include <stdexcept>

#include "bench/peers/cuda_support.hpp"
#include "bench/peers/gpu_checks.hpp"

namespace peer = heddle::peer;

namespace {

struct Options : peer::GpuOptions {
  int gpus = 0;
  std::vector<std::int64_t> blocks{256, 512, 1024};
};

void synchronize_all(int gpus) {
  for (int gpu = 0; gpu < gpus; ++gpu) {
    const peer::CurrentGpu current(gpu);
    peer::synchronize();
  }
}

/// The library on GPUs 0 to `gpus` - 1, which read each other's memory where they can.
class Session {
 public:
  explicit Session(int gpus) : gpus_(gpus) {
    for (int gpu = 0; gpu < gpus; ++gpu) {
      devices_.push_back(gpu);
      enable_peers(gpu);
    }
    peer::check(cusolverMgCreate(&handle_), "cusolverMgCreate");
    peer::check(cusolverMgDeviceSelect(handle_, gpus, devices_.data()), "cusolverMgDeviceSelect");
    peer::check(cusolverMgCreateDeviceGrid(&grid_, 1, gpus, devices_.data(),
                                           CUDALIBMG_GRID_MAPPING_COL_MAJOR),
                "cusolverMgCreateDeviceGrid");
  }
  ~Session() {
    if (grid_ != nullptr) cusolverMgDestroyGrid(grid_);
    if (handle_ != nullptr) cusolverMgDestroy(handle_);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  [[nodiscard]] int gpus() const { return gpus_; }
  [[nodiscard]] cusolverMgHandle_t handle() const { return handle_; }
  [[nodiscard]] cudaLibMgGrid_t grid() const { return grid_; }

 private:
  void enable_peers(int gpu) const {
    const peer::CurrentGpu current(gpu);
    for (int other = 0; other < gpus_; ++other) {
      int possible = 0;
      if (other == gpu) continue;
      peer::check(cudaDeviceCanAccessPeer(&possible, gpu, other), "cudaDeviceCanAccessPeer");
      if (possible != 0) peer::check(cudaDeviceEnablePeerAccess(other, 0), "peer access");
    }
  }

  int gpus_;
  std::vector<int> devices_;
  cusolverMgHandle_t handle_ = nullptr;
  cudaLibMgGrid_t grid_ = nullptr;
};

/// A matrix whose columns are dealt out cyclically in blocks, all rows of a block on one GPU; and
/// what its factorization needs.
class Potrf {
 public:
  Potrf(const Session& session, std::int64_t n, std::int64_t block)
      : session_(session), n_(n), block_(block) {
    const std::int64_t blocks = (n + block - 1) / block;
    const std::int64_t blocks_each = (blocks + session.gpus() - 1) / session.gpus();
    for (int gpu = 0; gpu < session.gpus(); ++gpu) {
      const peer::CurrentGpu current(gpu);
      parts_.emplace_back(n * block * blocks_each);
      part_pointers_.push_back(parts_.back().data());
    }
    for (std::int64_t b = 0; b < blocks; ++b) {
      columns_.push_back({.gpu = gpu_of(b),
                          .first = b * block,
                          .columns = std::min(block, n - b * block),
                          .data = data_of(b)});
    }
    peer::check(
        cusolverMgCreateMatrixDesc(&descriptor_, n, n, n, block, CUDA_R_64F, session.grid()),
        "cusolverMgCreateMatrixDesc");
    peer::check(cusolverMgPotrf_bufferSize(session.handle(), CUBLAS_FILL_MODE_LOWER, order(),
                                           part_pointers_.data(), 1, 1, descriptor_, CUDA_R_64F,
                                           &work_count_),
                "potrf's workspace");
    for (int gpu = 0; gpu < session.gpus(); ++gpu) {
      const peer::CurrentGpu current(gpu);
      work_.emplace_back(work_count_);
      work_pointers_.push_back(work_.back().data());
    }
    synchronize_all(session.gpus());
  }
  ~Potrf() {
    if (descriptor_ != nullptr) cusolverMgDestroyMatrixDesc(descriptor_);
  }
  Potrf(const Potrf&) = delete;
  Potrf& operator=(const Potrf&) = delete;

  void generate() {
    for (std::size_t b = 0; b < columns_.size(); ++b) {
      const peer::CurrentGpu current(columns_[b].gpu);
      peer::fill_spd({.data = data_of(static_cast<std::int64_t>(b)),
                      .rows = n_,
                      .columns = columns_[b].columns,
                      .leading = n_,
                      .column = columns_[b].first},
                     n_);
    }
    synchronize_all(session_.gpus());
  }

  void factorize() {
    int info = 0;
    peer::check(
        cusolverMgPotrf(session_.handle(), CUBLAS_FILL_MODE_LOWER, order(), part_pointers_.data(),
                        1, 1, descriptor_, CUDA_R_64F, work_pointers_.data(), work_count_, &info),
        "potrf");
    synchronize_all(session_.gpus());
    if (info != 0) throw std::runtime_error("potrf says info = " + std::to_string(info) + "\n");
  }

  [[nodiscard]] double residual() const { return peer::cholesky_residual(n_, columns_); }

 private:
  [[nodiscard]] int order() const { return static_cast<int>(n_); }
  /// Where block b of columns lies.
  [[nodiscard]] int gpu_of(std::int64_t b) const { return static_cast<int>(b % session_.gpus()); }
  [[nodiscard]] double* data_of(std::int64_t b) const {
    return parts_[static_cast<std::size_t>(gpu_of(b))].data() + b / session_.gpus() * block_ * n_;
  }

  const Session& session_;
  std::int64_t n_;
  std::int64_t block_;
  std::vector<peer::DeviceArray<double>> parts_;
  std::vector<peer::DeviceArray<double>> work_;
  std::vector<void*> part_pointers_;
  std::vector<void*> work_pointers_;
  std::vector<peer::ColumnBlock> columns_;
  cudaLibMgMatrixDesc_t descriptor_ = nullptr;
  std::int64_t work_count_ = 0;
};

/// Seconds of each of `repetitions` runs.
std::vector<double> seconds_of(Potrf& potrf, int warm_up, int repetitions) {
  return peer::measure(
      warm_up, repetitions, [&] { potrf.generate(); }, [&] { potrf.factorize(); });
}

/// The block size that is the fastest in one run each.
std::int64_t best_block(const Session& session, const Options& options, std::int64_t n) {
  std::int64_t best = options.blocks.front();
  double least = 0;
  for (const std::int64_t block : options.blocks) {
    if (options.blocks.size() == 1) break;
    Potrf potrf(session, n, block);
    const double seconds = seconds_of(potrf, 0, 1).front();
    std::fprintf(stderr, "n=%lld nb=%lld: %.1f GFLOP/s\n", static_cast<long long>(n),
                 static_cast<long long>(block), peer::cholesky_flops(n) * 1e-9 / seconds);
    if (least == 0 || seconds < least) {
      least = seconds;
      best = block;
    }
  }
  return best;
}

/// False when the factor is wrong.
bool run(const Session& session, const Options& options, std::int64_t n) {
  const std::int64_t block = best_block(session, options, n);
  Potrf potrf(session, n, block);
  const auto seconds = seconds_of(potrf, 0, options.repetitions);
  std::string details = peer::figure("sm_mhz", peer::clock_now());
  const double residual = options.check ? potrf.residual() : 0;
  if (options.check) details += peer::figure("residual", residual);
  peer::print_rate("cusolvermg",
                   "op=cholesky n=" + std::to_string(n) + " nb=" + std::to_string(block) +
                       " gpus=" + std::to_string(session.gpus()) + details,
                   peer::cholesky_flops(n), seconds);
  return residual < peer::residual_max;
}

/// What libraries load and allocate when they are first used shows in small matrices as well.
void warm_up(const Session& session, const Options& options) {
  constexpr std::int64_t n = 8192;
  for (const std::int64_t block : options.blocks) {
    Potrf potrf(session, n, block);
    seconds_of(potrf, options.warm_up, 0);
  }
}

}  // namespace

int main(int argc, char** argv) try {
  Options options;
  options.n = {32768, 65536, 98304};
  CLI::App app{"cuSOLVERMg's potrf on the GPUs of one host; warms up with a small matrix"};
  peer::add_gpu_options(app, options);
  app.add_option("--gpus", options.gpus, "GPUs; left out: all")->check(CLI::Range(1, 64));
  app.add_option("--nb", options.blocks, "columns of a block; of several the best one counts")
      ->check(CLI::Range(1, 1 << 16));
  CLI11_PARSE(app, argc, argv);
  const int found = peer::gpu_count();
  if (options.gpus == 0) options.gpus = found;
  if (options.gpus > found || found == 0) {
    std::fprintf(stderr, "peer_cusolvermg_cholesky: %d GPUs asked for, %d found\n", options.gpus,
                 found);
    return EXIT_FAILURE;
  }
  const Session session(options.gpus);
  warm_up(session, options);
  bool is_right = true;
  for (const std::int64_t n : options.n) is_right = run(session, options, n) && is_right;
  return is_right ? EXIT_SUCCESS : EXIT_FAILURE;
} catch (const std::exception& error) {
  std::fputs(error.what(), stderr);
  return EXIT_FAILURE;
}
