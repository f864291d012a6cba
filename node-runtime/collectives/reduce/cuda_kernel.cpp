#include "kernels/cuda/byte_launch.hpp"
#include "node-runtime/collectives/reduce/cuda_built_in.hpp"
#include "node-runtime/collectives/reduce/reduction_kernel.hpp"

namespace heddle::reduction {

CudaForm built_in_cuda_form(BuiltIn operation, Scalar scalar) {
  for (const auto forms :
       {cuda_arithmetic, cuda_extrema, cuda_with_index, cuda_bits, cuda_logical}) {
    if (const CudaForm found = forms(operation, scalar)) return found;
  }
  return nullptr;
}

void reduce_cuda(const CudaByteLaunch& launch) {
  const Work work = launch.parameters.as<Work>();
  const int status = work.cuda(work, {launch.context.stream(), work.blocks_max});
  kernel::cuda::check(static_cast<cudaError_t>(status), "launch of a reduction");
}

}  // namespace heddle::reduction
