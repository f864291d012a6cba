#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "base/index.hpp"

/// The trace of a run: a folder with one file per node (node_file.hpp).
namespace heddle::trace {

/// "node-3.trace".
[[nodiscard]] std::string node_file_name(NodeId node);

/// Whether a file name in a run's folder is that of a node's file.
[[nodiscard]] bool is_node_file_name(const std::string& name);

/// The nodes' files in a folder. Throws Error(usage) if it cannot be read.
[[nodiscard]] std::map<NodeId, std::filesystem::path> node_files_in(
    const std::filesystem::path& folder);

/// Creates the folder, whose parent exists, unless it exists. Throws Error(usage) if that fails or
/// the name is a file's.
void make_run_folder(const std::filesystem::path& folder);

/// Removes an older run's files of nodes from `first` on. Throws Error(usage).
void remove_node_files(const std::filesystem::path& folder, NodeId first);

/// Creates the folder for a new run; removes node files of an older run. Throws Error(usage).
void prepare_run_folder(const std::filesystem::path& folder);

}  // namespace heddle::trace
