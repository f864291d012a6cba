#pragma once

#include <condition_variable>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "node-runtime/trace/file_sink.hpp"
#include "node-runtime/trace/node_file_writer.hpp"
#include "node-runtime/trace/node_trace.hpp"
#include "node-runtime/trace/recorder.hpp"

namespace heddle::trace {

/// Writes a node's file (node_file.hpp) while the node runs: a thread writes new records several
/// times a second, so a crash loses only the last moments, and written records free room in the
/// recorder. The file has its final name from the start; finish() adds the last chunk.
///
/// After a write error (disk full) nothing more is written and the recorder fills up; finish()
/// reports it.
///
/// Not thread-safe. The stream is its recorder's reader (ThreadTrace).
class NodeStream {
 public:
  /// Creates the file with the initial `info`. `recorder` must outlive the stream. The stream's
  /// thread calls `begin` first; it must not throw. Throws Error(usage) if the file cannot be
  /// created or the metadata is not JSON.
  NodeStream(const std::filesystem::path& path, Recorder& recorder, const RunInfo& info,
             std::function<void()> begin = {});
  NodeStream(const NodeStream&) = delete;
  NodeStream& operator=(const NodeStream&) = delete;
  /// Writes remaining records, without the last chunk unless finish() was called; ignores errors.
  ~NodeStream();

  /// Writes remaining records and completes the file, when the recorder's threads are stopped or
  /// idle; the last call. `info.clock_offsets` are those since the start; its metadata replaces the
  /// initial one. Throws Error(internal) if writing fails or has failed, Error(usage) if the
  /// metadata is not JSON.
  void finish(const RunInfo& info);

 private:
  /// Time between two writes; a thread records less than a million records in it (RecorderOptions).
  static constexpr std::chrono::milliseconds interval{100};

  void run(const std::stop_token& stop, const std::function<void()>& begin);
  void stop();
  /// Writes what was recorded since the last call; keeps an error in `trouble_`.
  void write_on() noexcept;
  void write_news();
  void write_totals();

  const std::filesystem::path path_;
  Recorder& recorder_;
  FileSink sink_;
  NodeFileWriter writer_;
  std::optional<Error> trouble_;
  // Already in the file.
  std::size_t names_ = 0;
  std::size_t threads_ = 0;
  std::vector<MatrixDescription> matrices_;

  std::mutex mutex_;  ///< only for the condition variable: guards nothing
  std::condition_variable_any wake_;
  /// Last, so that it ends before the members above, which only it uses while it runs.
  std::jthread thread_;
};

}  // namespace heddle::trace
