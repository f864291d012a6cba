#pragma once

#include <string>

namespace heddle::kernel::cuda {

/// Loads cuBLAS and cuSOLVER, which GPUs compute with: a third of a second. What keeps them from
/// being loaded, and what to do; empty: they load, or heddle was built without CUDA. Any thread.
[[nodiscard]] std::string why_not_loaded();

}  // namespace heddle::kernel::cuda
