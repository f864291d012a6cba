#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/launcher.hpp"
#include "config/config.hpp"

namespace heddle {

/// What this process sees of a file that the run reads.
struct SeenFile {
  std::string path;
  std::string what;           ///< "of 200 x 200"; "of 312 bytes"; "that cannot be read: ..."
  std::uint64_t content = 0;  ///< checksum of size and content; of a large file of samples
  std::string changed;        ///< when it was written to last

  friend bool operator==(const SeenFile&, const SeenFile&) = default;
};

/// Never throws: what cannot be read is a way to see it. `is_matrix`: by its shape.
///
/// The checksum is of all bytes up to `checked_bytes_max`. Of a larger file it is of 256 pieces of
/// 16 KiB, evenly spread from the first byte to the last: the same on all nodes, and no second pass
/// over the file.
[[nodiscard]] SeenFile see_file(const std::string& path, bool is_matrix);
inline constexpr std::uint64_t checked_bytes_max = std::uint64_t{16} << 20U;

/// All that a run with this configuration reads: problem.matrix.file, problem.rhs.file, machine.
[[nodiscard]] std::vector<SeenFile> see_inputs(const Config& config);

/// How node `node` sees the inputs otherwise than node 0, as a sentence; empty where it sees the
/// same. When a file was written to does not matter: copies of one content are as good as one file.
[[nodiscard]] std::string difference(const std::vector<SeenFile>& first,
                                     const std::vector<SeenFile>& other, std::size_t node);

/// Throws Error(usage) on all processes when they do not see the same configuration and the same
/// inputs. `config` is null where it could not be read: nothing is compared with that process.
void compare_inputs(const MpiSession& mpi, const Config* config);

}  // namespace heddle
