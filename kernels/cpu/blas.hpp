#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kernels/cpu/micro/micro.hpp"
#include "kernels/kernel.hpp"

namespace heddle {

/// The choices of load_blas(). An empty member leaves the choice open.
struct BlasOptions {
  /// OpenBLAS kernel set, a name that OPENBLAS_CORETYPE takes ("HASWELL", "SKYLAKEX"). Empty: the
  /// environment's OPENBLAS_CORETYPE if set, otherwise the library's own choice.
  std::string core_type;
  /// Which kernels do the tile operations that dominate, as a text of TileKernels. Empty: the
  /// widest own ones that this processor runs, otherwise OpenBLAS.
  std::string tile_kernels;
};

/// "openblas", or heddle's own kernels by instruction set, "avx2" or "avx512" (MicroKernels), less
/// some operations that are OpenBLAS's: "avx2 but gemm syrk".
struct TileKernels {
  static constexpr std::array<std::string_view, 3> operations{"gemm", "syrk", "trsm"};

  std::string set;
  std::array<bool, operations.size()> of_library{};  ///< beside own kernels

  /// Nothing for a text that is none; the set's name is not looked at.
  [[nodiscard]] static std::optional<TileKernels> parse(const std::string& text);
  [[nodiscard]] std::string text() const;
};

/// The routines of OpenBLAS that the host kernels use, found in the library at run time.
///
/// OpenBLAS chooses its kernels (by processor, or by OPENBLAS_CORETYPE) while the dynamic loader
/// loads it, once per process. Linking it would make that choice before main(); it is therefore
/// loaded by name. The members with BLAS names follow CBLAS; the pointers are
/// valid for the rest of the process.
struct Blas {
  using Dgemm = void (*)(int order, int transpose_a, int transpose_b, int m, int n, int k,
                         double alpha, const double* a, int lda, const double* b, int ldb,
                         double beta, double* c, int ldc);
  using Dsyrk = void (*)(int order, int triangle, int transpose, int n, int k, double alpha,
                         const double* a, int lda, double beta, double* c, int ldc);
  using Dsymm = void (*)(int order, int side, int triangle, int m, int n, double alpha,
                         const double* a, int lda, const double* b, int ldb, double beta, double* c,
                         int ldc);
  using Dtrmm = void (*)(int order, int side, int triangle, int transpose, int diagonal, int m,
                         int n, double alpha, const double* a, int lda, double* b, int ldb);
  using Dtrsm = void (*)(int order, int side, int triangle, int transpose, int diagonal, int m,
                         int n, double alpha, const double* a, int lda, double* b, int ldb);

  Dgemm dgemm = nullptr;
  Dsyrk dsyrk = nullptr;
  Dsymm dsymm = nullptr;
  Dtrmm dtrmm = nullptr;
  Dtrsm dtrsm = nullptr;

  /// Allocation and release of a thread's buffer; null where the library does not export them.
  void* (*take_buffer)(int) = nullptr;
  void (*give_buffer)(void*) = nullptr;

  /// heddle's own tile kernels in use; null when OpenBLAS does all.
  const MicroKernels* micro = nullptr;
  /// The same for single operations; null where OpenBLAS does one.
  const MicroKernels* micro_gemm = nullptr;
  const MicroKernels* micro_syrk = nullptr;
  const MicroKernels* micro_trsm = nullptr;

  std::string version;        ///< "0.3.21"
  std::string core_name;      ///< kernel set in use, upper case: "HASWELL"
  std::string configuration;  ///< openblas_get_config()'s text
  /// The hosting program had loaded OpenBLAS before; its kernel set could not be chosen any more.
  bool preloaded = false;

  std::string tile_kernels;  ///< as BlasOptions has it
};

/// Loads OpenBLAS with the given kernel set and makes it single-threaded: each worker calls it for
/// itself. Returns the process's table, valid until the process ends.
///
/// This is the one process-wide object of the kernels, and it mirrors a process-wide fact: the
/// dynamic loader holds one OpenBLAS per process, with one kernel set and one thread count, so two
/// nodes in one process cannot have different ones. Handing a reference through every task would
/// only pretend otherwise. So the choice is explicit: the program makes it once, at start-up; later
/// calls return the same table and must agree. A later call agrees when each of its
/// options is empty, equals the first call's, or describes what is in use; otherwise it throws
/// Error(usage). Kernels that run before any call load with default options.
///
/// If the hosting program has OpenBLAS loaded already (linked or dlopened), that one is used, its
/// kernel set is reported in `core_name` whatever any call's `core_type` asks for, and its thread
/// count becomes 1 for the whole program.
///
/// Throws Error(usage) when OpenBLAS is missing or unusable (64-bit integers), or when this
/// processor does not run the named tile kernels.
/// Thread: any, but the first call sets environment variables while the library loads and restores
/// them, so no other thread may use the environment then. Call it before starting threads.
const Blas& load_blas(const BlasOptions& options = {});

/// The loaded table; loads with default options if it is not loaded. Any thread; one atomic load.
[[nodiscard]] const Blas& blas();

/// How OpenBLAS came into this process.
enum class BlasPresence : std::uint8_t {
  absent,           ///< not yet: the kernel set can still be chosen
  hosting_program,  ///< linked or loaded outside heddle, load_blas() not called yet
  heddle,           ///< load_blas() has run
};

/// Does not load the library. Any thread.
[[nodiscard]] BlasPresence blas_presence();

}  // namespace heddle
