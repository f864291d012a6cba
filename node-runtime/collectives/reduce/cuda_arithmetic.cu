#include "node-runtime/collectives/reduce/cuda_built_in.hpp"

namespace heddle::reduction {

CudaForm cuda_arithmetic(BuiltIn operation, Scalar scalar) {
  if (operation == BuiltIn::sum) return cuda_form_of<Sum>(scalar);
  if (operation == BuiltIn::product) return cuda_form_of<Product>(scalar);
  return nullptr;
}

}  // namespace heddle::reduction
