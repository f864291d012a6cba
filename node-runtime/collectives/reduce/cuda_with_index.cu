#include "node-runtime/collectives/reduce/cuda_built_in.hpp"

namespace heddle::reduction {

CudaForm cuda_with_index(BuiltIn operation, Scalar scalar) {
  if (operation == BuiltIn::minimum_with_index) return cuda_form_of<MinimumWithIndex>(scalar);
  if (operation == BuiltIn::maximum_with_index) return cuda_form_of<MaximumWithIndex>(scalar);
  return nullptr;
}

}  // namespace heddle::reduction
