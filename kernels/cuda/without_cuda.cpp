#include <cstdlib>

#include "base/assert.hpp"
#include "kernels/cuda/definitions.hpp"
#include "kernels/cuda/loading.hpp"
#include "kernels/cuda/product_choice.hpp"

// Without CUDA there is no device that could call these.
namespace heddle::kernel::cuda {
namespace {

[[noreturn]] void refuse() {
  HEDDLE_CHECK(false, "heddle was built without CUDA");
  std::abort();
}

}  // namespace

#define HEDDLE_STUB(name)        \
  void name(const CudaLaunch&) { \
    refuse();                    \
  }
HEDDLE_KERNELS(HEDDLE_STUB)
#undef HEDDLE_STUB

ProductChoices built_in_product_choices() {
  return {};
}
std::string product_library() {
  return "";
}
std::string why_not_loaded() {
  return "";
}
ProductChoices product_candidates(std::int32_t, std::int32_t, std::int32_t) {
  return {};
}

}  // namespace heddle::kernel::cuda
