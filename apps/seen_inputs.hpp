#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/launcher.hpp"
#include "config/config.hpp"

namespace heddle {

/// An input file as this process sees it.
struct SeenFile {
  std::string path;
  std::string what;           ///< "of 200 x 200"; "of 312 bytes"; "that cannot be read: ..."
  std::uint64_t content = 0;  ///< checksum of size and content; sampled for large files
  std::string changed;        ///< time of the last modification

  friend bool operator==(const SeenFile&, const SeenFile&) = default;
};

/// Does not throw: an unreadable file is described as such. `is_matrix`: describes its shape.
///
/// The checksum covers all bytes up to `checked_bytes_max`; of larger files 256 pieces of 16 KiB,
/// evenly spread from the first byte to the last, equal on all nodes and without a full pass.
[[nodiscard]] SeenFile see_file(const std::string& path, bool is_matrix);
inline constexpr std::uint64_t checked_bytes_max = std::uint64_t{16} << 20U;

/// Inputs of a run with this configuration: problem.matrix.file, problem.rhs.file, machine.
[[nodiscard]] std::vector<SeenFile> see_inputs(const Config& config);

/// A sentence if node `node` sees other inputs than node 0, else empty. Modification times are not
/// compared: copies with equal content are equivalent.
[[nodiscard]] std::string difference(const std::vector<SeenFile>& first,
                                     const std::vector<SeenFile>& other, std::size_t node);

/// Throws Error(usage) on all processes if their configurations or inputs differ. A null `config`
/// could not be read and is not compared.
void compare_inputs(const MpiSession& mpi, const Config* config);

}  // namespace heddle
