#include "apps/output_file.hpp"

#include <filesystem>
#include <fmt/core.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/replacement.hpp"
#include "node-runtime/trace/run_folder.hpp"

namespace heddle {

void check_writable(const std::string& path, Janitor& janitor) {
  check_output_path(path);
  // Permissions do not tell everything (root, file systems without free inodes, owners).
  const std::string target = target_of(path);
  const TemporaryName name(janitor, fmt::format("{}.{}.probe.heddle-part", target, ::getpid()));
  ::close(renew_replacement(name.path(), target));
  ::unlink(name.path().c_str());
}

void check_run_writable(const std::string& path, Janitor& janitor) {
  if (std::filesystem::is_directory(path)) {
    // Files of an older run will be removed, which needs only the folder's permission.
    for (const auto& [node, file] : trace::node_files_in(path)) check_output_path(file.string());
    return check_writable(path + "/" + trace::node_file_name(NodeId{0}), janitor);
  }
  if (!std::filesystem::exists(path)) {
    const auto last = path.find_last_not_of('/');
    return check_writable(path.substr(0, last == std::string::npos ? 0 : last + 1), janitor);
  }
  throw Error(
      ErrorCode::usage,
      fmt::format("cannot write '{}': a run's trace is a folder, but this is a file; choose "
                  "another name, or one that ends in .json for a viewer's format (heddle solve)",
                  path));
}

}  // namespace heddle
