#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/kernels.hpp"

namespace heddle {

/// A kernel that sets are compared by, on square tiles.
struct ComparedKernel {
  const Kernel* kernel;
  const char* key;  ///< in the machine file and in messages
  double count;     ///< runs in a tile Cholesky with n = 4000 and tiles of 320
};
inline constexpr std::array<ComparedKernel, 4> compared_kernels{{{&kernel::gsmm, "gemm", 286},
                                                                 {&kernel::syrk, "syrk", 78},
                                                                 {&kernel::trsm, "trsm", 78},
                                                                 {&kernel::potrf, "potrf", 13}}};

/// A value for each of compared_kernels.
using ComparedValues = std::array<double, compared_kernels.size()>;
/// GFLOP/s on one core.
using KernelRates = ComparedValues;

/// Rate of a whole tile Cholesky whose kernels run `count` times at these rates: what kernel sets
/// are compared by. GFLOP/s.
[[nodiscard]] double cholesky_rate(const KernelRates& rates);

/// One measured set of kernels.
struct KernelSet {
  std::string name;  ///< OpenBLAS: upper case, as OPENBLAS_CORETYPE takes it. Own: "avx512".
  bool own = false;  ///< heddle's own tile kernels, otherwise OpenBLAS
  KernelRates rates{};

  friend bool operator==(const KernelSet&, const KernelSet&) = default;
};

/// What was measured, and what to use. `core_type` and `tile_kernels` are BlasOptions' members.
struct KernelChoice {
  std::int64_t tile = 0;        ///< rows and columns of the measured tiles
  std::string library_default;  ///< the set that OpenBLAS takes by itself
  std::string core_type;        ///< the fastest OpenBLAS set
  std::string tile_kernels;     ///< "openblas", or the own set that is faster, for what it is
  std::vector<KernelSet> sets;

  [[nodiscard]] const KernelSet* find(const std::string& name) const;
  /// The own set that `tile_kernels` names; null where OpenBLAS does all.
  [[nodiscard]] const KernelSet* own() const;
  /// Every name is that of a measured set of the right kind, and every rate is finite and positive.
  [[nodiscard]] bool is_valid() const;

  friend bool operator==(const KernelChoice&, const KernelChoice&) = default;
};

/// The OpenBLAS that would be loaded.
struct OpenBlasIdentity {
  std::string version;        ///< "0.3.21"
  std::string configuration;  ///< openblas_get_config()'s text with the library's own choice

  friend bool operator==(const OpenBlasIdentity&, const OpenBlasIdentity&) = default;
};

/// Asks the library in a child process, so that it is not loaded into this one. Throws Error(usage)
/// when it cannot be loaded, Error(internal) when the child fails or is silent for some seconds.
[[nodiscard]] OpenBlasIdentity identify_openblas();

/// Measures every kernel set that this processor can run: OpenBLAS's by name, OpenBLAS's own
/// choice, heddle's own. Each set has a child process (a process has one OpenBLAS); the children
/// take turns on one core, then on another, and each kernel's best of several turns counts, so that
/// a passing disturbance or a slow core hits all sets or none. About half a second. A child that
/// dies or hangs drops its set.
///
/// Must be called while OpenBLAS is not in this process (blas_presence()). Forks: the usual
/// cautions for programs with threads apply, so call it at start-up. Leaves no process behind.
/// Throws as identify_openblas().
[[nodiscard]] KernelChoice measure_blas_kernel_sets();

/// OpenBLAS's names of the sets that this processor has the instructions for. A set without its
/// instructions would end in an illegal instruction.
[[nodiscard]] std::vector<std::string> runnable_core_types();

/// Completes a choice from its `sets` and `library_default`: sets within 3 % of the best OpenBLAS
/// set yield to the library's own choice, and OpenBLAS yields to own kernels, operation by
/// operation, unless it is faster by a tenth: many workers at once lose more in it than one core
/// shows.
void choose_kernels(KernelChoice& choice);

}  // namespace heddle
