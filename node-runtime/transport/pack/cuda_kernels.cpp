#include "kernels/cuda/byte_launch.hpp"
#include "node-runtime/transport/pack/cuda_launches.hpp"
#include "node-runtime/transport/pack/pack_kernels.hpp"

namespace heddle::packing {
namespace {

class CudaLauncher final : public Launcher {
 public:
  CudaLauncher(const kernel::cuda::Context& context, bool packs, std::uint32_t blocks_max)
      : packs_(packs),
        grid_{context.stream(), static_cast<std::uint32_t>(context.multiprocessors()), blocks_max} {
  }

  void launch(const Strided& work, std::size_t word_bytes) override {
    launch_strided(work, word_bytes, packs_, grid_);
  }
  void launch(const Transposed& work, std::size_t word_bytes) override {
    launch_transposed(work, word_bytes, packs_, grid_);
  }
  void launch(const Trapezoid& work, std::size_t word_bytes) override {
    launch_trapezoid(work, word_bytes, packs_, grid_);
  }
  void launch(const Units& work) override { launch_units(work, packs_, grid_); }
  void launch(const StridedBetween& work, std::size_t word_bytes) override {
    launch_between(work, word_bytes, grid_);
  }
  void launch(const TrapezoidBetween& work, std::size_t word_bytes) override {
    launch_between(work, word_bytes, grid_);
  }

 private:
  bool packs_;
  Grid grid_;
};

template <class Work>
void run(const CudaByteLaunch& launch) {
  const Work work = launch.parameters.as<Work>();
  CudaLauncher launcher(launch.context, work.packs, work.blocks_max);
  prepare(work, launcher);
}

}  // namespace

void blocks_cuda(const CudaByteLaunch& launch) {
  run<BlocksWork>(launch);
}

void units_cuda(const CudaByteLaunch& launch) {
  run<UnitsWork>(launch);
}

void between_cuda(const CudaByteLaunch& launch) {
  const auto work = launch.parameters.as<BetweenWork>();
  CudaLauncher launcher(launch.context, true, work.blocks_max);
  prepare(work, launcher);
}

}  // namespace heddle::packing
