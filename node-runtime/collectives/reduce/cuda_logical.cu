#include "node-runtime/collectives/reduce/cuda_built_in.hpp"

namespace heddle::reduction {

CudaForm cuda_logical(BuiltIn operation, Scalar scalar) {
  if (operation == BuiltIn::logical_and) return cuda_form_of<LogicalAnd>(scalar);
  if (operation == BuiltIn::logical_or) return cuda_form_of<LogicalOr>(scalar);
  if (operation == BuiltIn::logical_xor) return cuda_form_of<LogicalXor>(scalar);
  return nullptr;
}

}  // namespace heddle::reduction
