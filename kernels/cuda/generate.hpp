#pragma once

#include "kernels/cuda/context.hpp"
#include "kernels/kernels.hpp"

namespace heddle::kernel::cuda {

/// The kernel `generate` on views of the GPU's memory, queued on the context's stream: `columns`
/// begins at the part's first column. Shapes are the caller's to check.
void launch_generate(Context& context, const GenerateParameters& parameters, const TileView& out,
                     const TileView& columns, const TileView& rows);

}  // namespace heddle::kernel::cuda
