#include <cstdlib>

#include "node-runtime/collectives/reduce/built_in.hpp"
#include "node-runtime/collectives/reduce/reduction_kernel.hpp"

namespace heddle::reduction {

CudaForm built_in_cuda_form(BuiltIn /*operation*/, Scalar /*scalar*/) {
  return nullptr;
}

// Not called in a build without CUDA.
void reduce_cuda(const CudaByteLaunch&) {
  std::abort();
}

}  // namespace heddle::reduction
