#include "node-runtime/collectives/reduce/cuda_built_in.hpp"

namespace heddle::reduction {

CudaForm cuda_extrema(BuiltIn operation, Scalar scalar) {
  if (operation == BuiltIn::minimum) return cuda_form_of<Minimum>(scalar);
  if (operation == BuiltIn::maximum) return cuda_form_of<Maximum>(scalar);
  return nullptr;
}

}  // namespace heddle::reduction
