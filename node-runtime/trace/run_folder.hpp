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

/// Makes the folder, in one that is there; an older run of more nodes in it loses the files that
/// this one does not replace. Throws Error(usage) when it cannot be made, or the name is a file's.
void prepare_run_folder(const std::filesystem::path& folder, std::int32_t nodes);

}  // namespace heddle::trace
