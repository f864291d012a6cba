#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace heddle {

class Node;

/// Called with the path of each temporary file before it is made; what it returns lives as long as
/// the file. For programs that remove such files even when they are killed.
using TemporaryFileGuard = std::function<std::shared_ptr<void>(const std::string& path)>;

/// What `path` is to become: one file of the Chrome format, whose name ends in ".json", or a run's
/// folder.
[[nodiscard]] bool is_chrome_trace(const std::string& path);

/// The trace of what a node records, while it runs: a run's folder with a file of each node, for
/// `heddle analyze`, which outlives the run however that ends; or one file in the Chrome trace
/// format, which node 0 merges at the end from temporary ones beside it, and which appears complete
/// or not at all. Each node's file says what that node is and how it was configured.
///
/// The nodes' configuration must have had a trace file, or nothing is recorded.
class TraceFile {
 public:
  /// What became of the trace. The first two are node 0's, of the Chrome format.
  struct Summary {
    std::uint64_t slices = 0;
    std::uint64_t arrows = 0;
    std::uint64_t records_dropped = 0;  ///< of all nodes: they found no room
  };

  /// `about` is node 0's: JSON with what is known of the run so far. Collective.
  TraceFile(Node& node, const std::string& path, const std::string& about = "null",
            TemporaryFileGuard guard = {});
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;
  /// As abandon(), unless it was finished.
  ~TraceFile();

  /// Completes the trace. `about` replaces what was said at the beginning. Collective, while no job
  /// is in flight.
  Summary finish(const std::string& about = "null");
  /// The run does not come to its end: a run's folder keeps what this node has recorded so far; a
  /// file of the Chrome format is not written. Not collective.
  void abandon() noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace heddle
