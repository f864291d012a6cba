#include "apps/output_file.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include "algorithms/matrix/npy_writer.hpp"
#include "base/error.hpp"

namespace heddle {

void check_writable(const std::string& path) {
  check_output_path(path);
  // Permissions do not tell everything (root, file systems without room for files).
  const std::string name = fmt::format("{}.{}.probe.heddle-part", path, ::getpid());
  const int file = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0) {
    throw Error(ErrorCode::usage, fmt::format("cannot write '{}': creating '{}' failed: {}", path,
                                              name, std::strerror(errno)));
  }
  ::close(file);
  ::unlink(name.c_str());
}

}  // namespace heddle
