#pragma once

#include "kernels/kernels.hpp"

namespace heddle::tuning {

/// What other workers run while one runs this kernel: a factorization runs some kernels one at a
/// time, on its critical path, beside the updates that are left. (All workers at once would wait
/// for each other in OpenBLAS, whose buffers for narrow products are behind a lock.) Null: the same
/// one.
[[nodiscard]] inline const Kernel* update_beside(const Kernel& kernel) {
  if (&kernel == &kernel::potrf) return &kernel::gsmm;
  if (&kernel == &kernel::geqrt || &kernel == &kernel::tsqrt) return &kernel::tsmqr;
  return nullptr;
}

}  // namespace heddle::tuning
