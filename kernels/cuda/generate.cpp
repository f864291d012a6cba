#include "kernels/cuda/generate.hpp"

#include "kernels/cpu/arguments.hpp"
#include "kernels/cuda/definitions.hpp"
#include "kernels/cuda/launch.hpp"

namespace heddle::kernel::cuda {

void generate(const CudaLaunch& launch) {
  const GenerateTiles tiles = generate_tiles({launch.tiles, launch.parameters});
  launch_generate(launch.context, launch.parameters.as<GenerateParameters>(), tiles.out,
                  tiles.columns, tiles.rows);
}

}  // namespace heddle::kernel::cuda
