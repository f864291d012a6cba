#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "node-runtime/node.hpp"
#include "node-runtime/trace/chrome_export.hpp"

namespace heddle {

/// Called with the path of each temporary file before it is made; what it returns lives as long as
/// the file. For programs that remove such files even when they are killed.
using TemporaryFileGuard = std::function<std::shared_ptr<void>(const std::string& path)>;

/// What `path` is to become: one file of the Chrome format, whose name ends in ".json", or a run's
/// folder.
[[nodiscard]] bool is_chrome_trace(const std::filesystem::path& path);

/// Writes what all nodes have recorded so far to a run's folder (trace/run_folder.hpp), for `heddle
/// analyze`: one file by each node, which appears complete or not at all. `about` is node 0's: JSON
/// with what is to be known of the run. Collective, while no job is in flight; what any node could
/// not write is thrown on all (AgreedError). How many records found no room, on all nodes.
std::uint64_t write_run(Node& node, const std::filesystem::path& folder, const std::string& about,
                        const TemporaryFileGuard& guard = {});

/// Writes what all nodes have recorded so far to one file in the Chrome trace format, which appears
/// complete or not at all. Each node writes its records beside it, under a temporary name, and node
/// 0 merges these. The nodes' configuration must have had a trace file, or there is nothing to
/// write. Collective, while no job is in flight; what any node could not write is thrown on all
/// (AgreedError). The summary is node 0's; the others' is empty.
trace::ExportSummary write_trace(Node& node, const std::filesystem::path& path,
                                 const TemporaryFileGuard& guard = {});

}  // namespace heddle
