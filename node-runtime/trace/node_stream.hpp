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

/// Writes a node's file (node_file.hpp) while the node runs, by a thread of its own that looks
/// several times a second what was recorded: after a crash all is in the file but the last moments,
/// and what was written makes room in the recorder. The file stands under its name from the first
/// moment on; only finish() gives it its last part.
///
/// When writing fails (disk full) no more is written and the recorder fills up; finish() tells.
///
/// One thread. The stream is its recorder's reader (ThreadTrace).
class NodeStream {
 public:
  /// Makes the file. `info` is what is known at the beginning. The recorder outlives the stream.
  /// `begin` is the first that the stream's thread does, and does not throw. Throws Error(usage)
  /// when the file cannot be made or the metadata is no JSON.
  NodeStream(const std::filesystem::path& path, Recorder& recorder, const RunInfo& info,
             std::function<void()> begin = {});
  NodeStream(const NodeStream&) = delete;
  NodeStream& operator=(const NodeStream&) = delete;
  /// Writes what is there, without the last part unless finish() has done so; what fails is lost.
  ~NodeStream();

  /// Writes what is there, when the recorder's threads are stopped or idle, and completes the file:
  /// the last call. `info.clock_offsets` are those since the beginning; its metadata replace the
  /// beginning's. Throws Error(internal) when writing fails or has failed, Error(usage) when the
  /// metadata is no JSON.
  void finish(const RunInfo& info);

 private:
  /// Between two looks. A thread records less than a million times in it (RecorderOptions).
  static constexpr std::chrono::milliseconds interval{100};

  void run(const std::stop_token& stop, const std::function<void()>& begin);
  void stop();
  /// Writes what was recorded since it was called last; what fails is kept in `trouble_`.
  void write_on() noexcept;
  void write_news();
  void write_totals();

  const std::filesystem::path path_;
  Recorder& recorder_;
  FileSink sink_;
  NodeFileWriter writer_;
  std::optional<Error> trouble_;
  // What is in the file already.
  std::size_t names_ = 0;
  std::size_t threads_ = 0;
  std::vector<MatrixDescription> matrices_;

  std::mutex mutex_;  ///< of the condition alone: there is nothing to guard
  std::condition_variable_any wake_;
  /// Last: ends before what it uses. All above is its own while it runs.
  std::jthread thread_;
};

}  // namespace heddle::trace
