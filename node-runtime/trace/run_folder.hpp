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

/// Whether a file of a run's folder that is called so is a node's.
[[nodiscard]] bool is_node_file_name(const std::string& name);

/// The nodes' files in a folder, by node. Throws Error(usage) when it cannot be read.
[[nodiscard]] std::map<NodeId, std::filesystem::path> node_files_in(
    const std::filesystem::path& folder);

/// Makes the folder, in one that is there, unless it is there itself. Throws Error(usage) when it
/// cannot be made, or the name is a file's.
void make_run_folder(const std::filesystem::path& folder);

/// Removes the files of nodes from `first` on, which are of an older run. Throws Error(usage).
void remove_node_files(const std::filesystem::path& folder, NodeId first);

/// A folder for a new run, without files of an older one. Throws Error(usage).
void prepare_run_folder(const std::filesystem::path& folder);

}  // namespace heddle::trace
