#include "kernels/cuda/libraries.hpp"

#include <dlfcn.h>
#include <fmt/core.h>
#include <string>

#include "base/error.hpp"
#include "kernels/cuda/loading.hpp"

namespace heddle::kernel::cuda {
namespace {

// Libraries are named by the major version of their interface, which the headers tell.
#define HEDDLE_TEXT_OF(value) #value
#define HEDDLE_TEXT(value) HEDDLE_TEXT_OF(value)
constexpr const char* blas_name = "libcublas.so." HEDDLE_TEXT(CUBLAS_VER_MAJOR);
constexpr const char* product_name = "libcublasLt.so." HEDDLE_TEXT(CUBLAS_VER_MAJOR);
constexpr const char* solver_name = "libcusolver.so." HEDDLE_TEXT(CUSOLVER_VER_MAJOR);
#undef HEDDLE_TEXT
#undef HEDDLE_TEXT_OF

void* load(const char* name) {
  constexpr int mode = RTLD_NOW | RTLD_LOCAL;
  if (void* handle = ::dlopen(name, mode)) return handle;
  const std::string first = ::dlerror();
  if (void* handle = ::dlopen(fmt::format("{}/{}", HEDDLE_CUDA_LIBRARIES, name).c_str(), mode)) {
    return handle;
  }
  const std::string second = ::dlerror();
  throw Error(ErrorCode::usage,
              fmt::format("{}, with which GPUs compute, cannot be loaded: {}; {}; add the CUDA "
                          "toolkit's folder of libraries to LD_LIBRARY_PATH",
                          name, first, second));
}

}  // namespace

LoadedLibrary::LoadedLibrary(const char* name) : name_(name), handle_(load(name)) {}

LoadedLibrary::Entry LoadedLibrary::entry(const char* symbol) const {
  void* address = ::dlsym(handle_, symbol);
  if (address == nullptr) {
    throw Error(ErrorCode::usage, fmt::format("{} has no {}: it is another version than heddle was "
                                              "built with; look at LD_LIBRARY_PATH",
                                              name_, symbol));
  }
  return Entry(address);
}

BlasLibrary::BlasLibrary() : LoadedLibrary(blas_name) {}
ProductLibrary::ProductLibrary() : LoadedLibrary(product_name) {}
SolverLibrary::SolverLibrary() : LoadedLibrary(solver_name) {}

const BlasLibrary& cublas() {
  static const BlasLibrary library;
  return library;
}

const ProductLibrary& cublas_lt() {
  static const ProductLibrary library;
  return library;
}

const SolverLibrary& cusolver() {
  static const SolverLibrary library;
  return library;
}

std::string why_not_loaded() {
  try {
    static_cast<void>(cublas());
    static_cast<void>(cublas_lt());
    static_cast<void>(cusolver());
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace heddle::kernel::cuda
