#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "base/index.hpp"

/// The trace of a run as it is kept for analysis: a folder with one file per node (node_file.hpp).
namespace heddle::trace {

/// "node-3.trace".
[[nodiscard]] std::string node_file_name(NodeId node);

/// The nodes' files in a folder, by node. Throws Error(usage) when it cannot be read.
[[nodiscard]] std::map<NodeId, std::filesystem::path> node_files_in(
    const std::filesystem::path& folder);

/// Makes the folder, in one that is there, or removes the nodes' files of an older run from it.
/// Throws Error(usage) when it cannot be made, or the name is a file's.
void prepare_run_folder(const std::filesystem::path& folder);

}  // namespace heddle::trace
