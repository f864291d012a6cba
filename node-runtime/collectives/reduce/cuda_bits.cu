#include "node-runtime/collectives/reduce/cuda_built_in.hpp"

namespace heddle::reduction {

CudaForm cuda_bits(BuiltIn operation, Scalar scalar) {
  if (operation == BuiltIn::bit_and) return cuda_form_of<BitAnd>(scalar);
  if (operation == BuiltIn::bit_or) return cuda_form_of<BitOr>(scalar);
  if (operation == BuiltIn::bit_xor) return cuda_form_of<BitXor>(scalar);
  return nullptr;
}

}  // namespace heddle::reduction
