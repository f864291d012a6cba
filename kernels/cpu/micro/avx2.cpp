#include "kernels/cpu/micro/micro.hpp"
#include "kernels/cpu/micro/tile_algorithms.hpp"

namespace heddle {

// 12 rows x 4 columns: 12 sums, 3 columns of the left factor and a broadcast fill 16 registers.
using Algorithms = TileAlgorithms<4, 3, 4>;

constinit const MicroKernels micro_avx2{"avx2",
                                        &Algorithms::update_entry,
                                        &Algorithms::update_lower_entry,
                                        &Algorithms::solve_entry,
                                        &Algorithms::inner_entry,
                                        &Algorithms::dots_entry,
                                        &Algorithms::subtract_multiples_entry};

}  // namespace heddle
