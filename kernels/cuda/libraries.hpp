#pragma once

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cusolverDn.h>

/// cuBLAS and cuSOLVER, loaded with the first work on a GPU: that takes a third of a second,
/// which the program's every start would pay if they were linked, GPU or not.
namespace heddle::kernel::cuda {

/// A shared library that stays loaded until the process ends.
class LoadedLibrary {
 protected:
  /// Loads it by its name, where the system looks for libraries, or else from the CUDA toolkit that
  /// heddle was built with. Throws Error(usage) that says what was missing.
  explicit LoadedLibrary(const char* name);

  /// An entry point, which becomes the function pointer that it is assigned to.
  class Entry {
   public:
    explicit Entry(void* address) : address_(address) {}
    template <class Function>
    operator Function*() const {  // NOLINT(google-explicit-constructor)
      return reinterpret_cast<Function*>(address_);
    }

   private:
    void* address_;
  };
  /// Throws Error(usage) where the library is one that has none of that name.
  [[nodiscard]] Entry entry(const char* symbol) const;

 private:
  const char* name_;
  void* handle_;
};

class BlasLibrary : private LoadedLibrary {
 public:
  BlasLibrary();

  decltype(&cublasCreate_v2) create = entry("cublasCreate_v2");
  decltype(&cublasDestroy_v2) destroy = entry("cublasDestroy_v2");
  decltype(&cublasSetStream_v2) set_stream = entry("cublasSetStream_v2");
  decltype(&cublasSetWorkspace_v2) set_workspace = entry("cublasSetWorkspace_v2");
  decltype(&cublasGetStatusString) status_text = entry("cublasGetStatusString");
  decltype(&cublasDgemm_v2) dgemm = entry("cublasDgemm_v2");
  decltype(&cublasDgeam) dgeam = entry("cublasDgeam");
  decltype(&cublasDsyrk_v2) dsyrk = entry("cublasDsyrk_v2");
  decltype(&cublasDsymm_v2) dsymm = entry("cublasDsymm_v2");
  decltype(&cublasDtrsm_v2) dtrsm = entry("cublasDtrsm_v2");
};

/// cublasLt, which knows each kernel of a product by itself.
class ProductLibrary : private LoadedLibrary {
 public:
  ProductLibrary();

  decltype(&cublasLtCreate) create = entry("cublasLtCreate");
  decltype(&cublasLtDestroy) destroy = entry("cublasLtDestroy");
  decltype(&cublasLtGetVersion) version = entry("cublasLtGetVersion");
  decltype(&cublasLtMatmul) multiply = entry("cublasLtMatmul");
  decltype(&cublasLtMatmulAlgoGetHeuristic) algorithms = entry("cublasLtMatmulAlgoGetHeuristic");
  decltype(&cublasLtMatmulAlgoConfigGetAttribute) algorithm_attribute =
      entry("cublasLtMatmulAlgoConfigGetAttribute");
  decltype(&cublasLtMatmulDescInit_internal) initialise_operation =
      entry("cublasLtMatmulDescInit_internal");
  decltype(&cublasLtMatmulDescSetAttribute) set_operation_attribute =
      entry("cublasLtMatmulDescSetAttribute");
  decltype(&cublasLtMatrixLayoutInit_internal) initialise_matrix =
      entry("cublasLtMatrixLayoutInit_internal");
  decltype(&cublasLtMatmulPreferenceCreate) create_preference =
      entry("cublasLtMatmulPreferenceCreate");
  decltype(&cublasLtMatmulPreferenceDestroy) destroy_preference =
      entry("cublasLtMatmulPreferenceDestroy");
  decltype(&cublasLtMatmulPreferenceSetAttribute) set_preference_attribute =
      entry("cublasLtMatmulPreferenceSetAttribute");
};

class SolverLibrary : private LoadedLibrary {
 public:
  SolverLibrary();

  decltype(&cusolverDnCreate) create = entry("cusolverDnCreate");
  decltype(&cusolverDnDestroy) destroy = entry("cusolverDnDestroy");
  decltype(&cusolverDnSetStream) set_stream = entry("cusolverDnSetStream");
  decltype(&cusolverDnDpotrf_bufferSize) dpotrf_buffer_size = entry("cusolverDnDpotrf_bufferSize");
  decltype(&cusolverDnDpotrf) dpotrf = entry("cusolverDnDpotrf");
};

/// Each is loaded by the first call. Any thread.
[[nodiscard]] const BlasLibrary& cublas();
[[nodiscard]] const ProductLibrary& cublas_lt();
[[nodiscard]] const SolverLibrary& cusolver();

}  // namespace heddle::kernel::cuda
