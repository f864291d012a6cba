#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "node-runtime/node.hpp"
#include "node-runtime/trace/chrome_export.hpp"
#include "node-runtime/trace/node_stream.hpp"

namespace heddle {

/// Called with the path of each temporary file before it is made; what it returns lives as long as
/// the file. For programs that remove such files even when they are killed.
using TemporaryFileGuard = std::function<std::shared_ptr<void>(const std::string& path)>;

/// What `path` is to become: one file of the Chrome format, whose name ends in ".json", or a run's
/// folder.
[[nodiscard]] bool is_chrome_trace(const std::filesystem::path& path);

/// The trace of what a node records, while it runs (trace/node_stream.hpp): a run's folder
/// (trace/run_folder.hpp) with a file of each node, for `heddle analyze`, which outlives the run
/// however that ends; or one file in the Chrome trace format, which node 0 merges at the end from
/// temporary ones beside it, and which appears complete or not at all. Each node's file says what
/// that node is and how it was configured.
///
/// The nodes' configuration must have had a trace file, or nothing is recorded. Errors of any node
/// are thrown on all (AgreedError).
class TraceFile {
 public:
  /// `about` is node 0's: JSON with what is known of the run so far. Collective.
  TraceFile(Node& node, std::filesystem::path path, const std::string& about,
            TemporaryFileGuard guard = {});
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;
  /// As abandon(), unless it was finished.
  ~TraceFile();

  /// Completes the trace. `about` replaces what was said at the beginning. Collective, while no job
  /// is in flight. The summary is node 0's, of the Chrome format, and but for the records that
  /// found no room empty with a run's folder.
  trace::ExportSummary finish(const std::string& about);

  /// The run does not come to its end: a run's folder keeps what this node has recorded so far; a
  /// file of the Chrome format is not written. Not collective.
  void abandon() noexcept;

 private:
  [[nodiscard]] std::string metadata(const std::string& about) const;
  trace::ExportSummary merge();
  void remove_mine() noexcept;
  [[nodiscard]] std::filesystem::path file_of(std::int32_t rank) const;

  Node& node_;
  const std::filesystem::path path_;
  const TemporaryFileGuard guard_;
  const bool is_chrome_;
  std::string run_;  ///< the same on all nodes, so that files of different runs are told apart
  std::shared_ptr<void> guarded_;
  std::optional<trace::NodeStream> stream_;
};

}  // namespace heddle
