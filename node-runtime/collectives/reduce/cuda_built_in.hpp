#pragma once

#include "node-runtime/collectives/reduce/built_in.hpp"
#include "node-runtime/collectives/reduce/cuda_form.hpp"

/// The kernels of heddle's own operations, in sources of similar length: null for other operations.
namespace heddle::reduction {

[[nodiscard]] CudaForm cuda_arithmetic(BuiltIn operation, Scalar scalar);
[[nodiscard]] CudaForm cuda_extrema(BuiltIn operation, Scalar scalar);
[[nodiscard]] CudaForm cuda_with_index(BuiltIn operation, Scalar scalar);
[[nodiscard]] CudaForm cuda_bits(BuiltIn operation, Scalar scalar);
[[nodiscard]] CudaForm cuda_logical(BuiltIn operation, Scalar scalar);

#ifdef __CUDACC__
template <class Operation>
CudaForm cuda_form_of(Scalar scalar) {
  CudaForm form = nullptr;
  with_element<Operation>(scalar,
                          [&]<class T>(ElementType<T>) { form = launch_reduction<T, Operation>; });
  return form;
}
#endif

}  // namespace heddle::reduction
