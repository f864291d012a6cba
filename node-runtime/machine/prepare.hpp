#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kernels/cpu/blas.hpp"
#include "node-runtime/machine/machine_file.hpp"

namespace heddle {

/// Where a MachineProfile's choice of kernels comes from.
enum class ProfileSource : std::uint8_t {
  file,         ///< read from the machine file
  measured,     ///< measured by this call
  environment,  ///< OPENBLAS_CORETYPE: the user's word
  process,      ///< OpenBLAS was in the process already
  unmeasured,   ///< measuring failed (a warning says why): the library's own choice
};

/// What a run needs to know about its machine before it starts.
struct MachineProfile {
  ProfileSource source = ProfileSource::unmeasured;
  BlasOptions blas;                     ///< for load_blas()
  std::string explanation;              ///< one line for the plan: which kernels, why, from where
  std::vector<std::string> warnings;    ///< one line each, for the user
  std::optional<KernelChoice> kernels;  ///< the rates behind the choice, where there are any
  Tuning tuning;                        ///< from the machine file
  std::filesystem::path file;           ///< the machine file read or written; empty if none
};

/// How prepare_machine() learns about the machine; tests put their own in.
struct MachineProbes {
  std::function<Host()> host = describe_host;
  std::function<OpenBlasIdentity()> identify = identify_openblas;
  std::function<KernelChoice()> measure = measure_blas_kernel_sets;
};

/// Finds the fastest kernels for this machine: from the machine file if it fits this processor and
/// this OpenBLAS, otherwise by measuring (about half a second), and then it writes the file.
///
/// `file` is a file that the user named: it must exist and be sound (else Error(usage)), and is
/// never written; if it is of another processor or OpenBLAS, the kernels are measured for this run
/// and a warning says so. Without it the default place is used (default_machine_file()): there a
/// broken or foreign file is named in a warning and replaced, and a place that cannot be written
/// is a warning.
///
/// OPENBLAS_CORETYPE in the environment wins over any measurement, which is then not made; and an
/// OpenBLAS that is in the process already stays as it is. Of the processes on a host that start
/// together one measures, the others wait for its file.
///
/// Does not load OpenBLAS; hand the result's `blas` to load_blas(). May fork and reads the
/// environment: call it at start-up, before threads. Throws Error(usage) if OpenBLAS is missing.
[[nodiscard]] MachineProfile prepare_machine(
    const std::optional<std::filesystem::path>& file = std::nullopt,
    const MachineProbes& probes = {});

}  // namespace heddle
