#include "kernels/cpu/micro/micro.hpp"
#include "kernels/cpu/micro/tile_algorithms.hpp"

namespace heddle {

// 24 rows x 8 columns: 24 sums and 3 columns of the left factor in 32 registers; the broadcast is
// part of the instruction.
using Algorithms = TileAlgorithms<8, 3, 8>;

constinit const MicroKernels micro_avx512{"avx512",
                                          &Algorithms::update_entry,
                                          &Algorithms::update_lower_entry,
                                          &Algorithms::solve_entry,
                                          &Algorithms::inner_entry,
                                          &Algorithms::dots_entry,
                                          &Algorithms::subtract_multiples_entry};

}  // namespace heddle
