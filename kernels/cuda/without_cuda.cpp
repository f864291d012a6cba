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

void potrf(const CudaLaunch&) {
  refuse();
}
void trsm(const CudaLaunch&) {
  refuse();
}
void gsmm(const CudaLaunch&) {
  refuse();
}
void syrk(const CudaLaunch&) {
  refuse();
}
void solve_lower(const CudaLaunch&) {
  refuse();
}
void solve_lower_transposed(const CudaLaunch&) {
  refuse();
}
void solve_upper(const CudaLaunch&) {
  refuse();
}
void product(const CudaLaunch&) {
  refuse();
}
void product_transposed(const CudaLaunch&) {
  refuse();
}
void product_symmetric(const CudaLaunch&) {
  refuse();
}
void subtract(const CudaLaunch&) {
  refuse();
}
void copy(const CudaLaunch&) {
  refuse();
}
void geqrt(const CudaLaunch&) {
  refuse();
}
void unmqr(const CudaLaunch&) {
  refuse();
}
void unmqr_back(const CudaLaunch&) {
  refuse();
}
void tsqrt(const CudaLaunch&) {
  refuse();
}
void tsmqr(const CudaLaunch&) {
  refuse();
}
void tsmqr_back(const CudaLaunch&) {
  refuse();
}
void ttqrt(const CudaLaunch&) {
  refuse();
}
void ttmqr(const CudaLaunch&) {
  refuse();
}
void ttmqr_back(const CudaLaunch&) {
  refuse();
}
void copy_rows(const CudaLaunch&) {
  refuse();
}
void copy_triangle(const CudaLaunch&) {
  refuse();
}

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
