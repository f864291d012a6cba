#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "node-runtime/machine/host.hpp"
#include "node-runtime/machine/kernel_sets.hpp"
#include "node-runtime/machine/measurements.hpp"

namespace heddle {

/// Values that somebody has written into the file by hand: they win over what follows from the
/// measurements, and `heddle tune` leaves them there. Each may be absent.
struct TunedValues {
  std::optional<std::int64_t> tile;           ///< B
  std::optional<std::int64_t> strip;          ///< columns of each tile that the CPUs keep
  std::optional<std::int64_t> small;          ///< b, columns of a strip's pieces
  std::optional<std::int64_t> inner;          ///< inner blocking of QR kernels
  std::optional<std::int64_t> virtual_tiles;  ///< `virtual`: tiles per virtual tile in QR
  std::optional<std::int64_t> streams;        ///< per device

  friend bool operator==(const TunedValues&, const TunedValues&) = default;
};

/// What the sizes of tiles and the like follow from; the same on all nodes of a run.
struct Tuning {
  TunedValues fixed;
  Measurements measured;

  friend bool operator==(const Tuning&, const Tuning&) = default;
};

/// As text, for other nodes, and back. Throws Error(usage) when the text is something else.
[[nodiscard]] std::string to_text(const Tuning& tuning);
[[nodiscard]] Tuning tuning_from_text(const std::string& text);

/// What was measured on one machine with one OpenBLAS.
struct MachineFile {
  static constexpr int format = 2;

  std::string host;
  std::string cpu_model;
  int cores = 1;
  OpenBlasIdentity openblas;
  KernelChoice kernels;
  TunedValues tuned = {};
  Measurements measured = {};

  friend bool operator==(const MachineFile&, const MachineFile&) = default;
};

/// Reads and checks a machine file: format, types, ranges, unknown and missing keys, and that the
/// chosen sets are among the measured ones. Throws Error(usage) that names the file, the place in
/// it, what is wrong and what was expected.
[[nodiscard]] MachineFile read_machine_file(const std::filesystem::path& path);

/// Writes to a temporary name beside `path` and renames, so that a reader finds the old file or
/// the new one and a failure leaves nothing. Throws Error(usage) with the system's reason.
void write_machine_file(const std::filesystem::path& path, const MachineFile& contents);

/// The temporary name that this process uses meanwhile.
[[nodiscard]] std::filesystem::path machine_file_temporary_path(const std::filesystem::path& path);

/// $XDG_CACHE_HOME/heddle/machine-HOST-CPU.yaml, or the same below ~/.cache; the names made safe
/// for files. Nothing when neither XDG_CACHE_HOME nor HOME is an absolute path. Reads the
/// environment; makes no folder.
[[nodiscard]] std::optional<std::filesystem::path> default_machine_file(const Host& host);

}  // namespace heddle
