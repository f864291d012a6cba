#include "apps/output_file.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/core.h>
#include <unistd.h>

#include "algorithms/matrix/npy_writer.hpp"
#include "base/error.hpp"
#include "node-runtime/trace/run_folder.hpp"

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

void check_run_writable(const std::string& path) {
  if (!std::filesystem::exists(path)) return check_writable(path);
  if (std::filesystem::is_directory(path)) {
    return check_writable(path + "/" + trace::node_file_name(NodeId{0}));
  }
  throw Error(
      ErrorCode::usage,
      fmt::format("cannot write '{}': a run's trace is a folder, but this is a file; choose "
                  "another name, or one that ends in .json for a viewer's format (heddle solve)",
                  path));
}

}  // namespace heddle
