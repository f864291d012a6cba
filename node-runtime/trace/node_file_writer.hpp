#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "node-runtime/trace/file_format.hpp"
#include "node-runtime/trace/file_sink.hpp"
#include "node-runtime/trace/node_trace.hpp"

namespace heddle::trace {

/// Writes the chunks of a node's file (node_file.hpp). The caller keeps the order: node() first,
/// names and threads before records that refer to them, end() last. Functions throw Error(internal)
/// as FileSink::write(). Not thread-safe.
class NodeFileWriter {
 public:
  /// `sink` must outlive the writer.
  explicit NodeFileWriter(FileSink& sink);

  void node(NodeId node, std::int32_t node_count);
  /// JSON; replaces earlier metadata.
  void metadata(std::string_view text);
  /// Appends to earlier ones; so do the functions below.
  void clock_offsets(std::span<const ClockOffset> offsets);
  void names(std::span<const std::string> names);
  void matrices(std::span<const MatrixDescription> matrices);
  void thread(const std::string& name, int sort_order);
  /// `thread`: index in the order of thread() calls.
  void totals(std::size_t thread, const ThreadTotals& totals, std::uint64_t dropped);
  void records(std::size_t thread, std::span<const Record> records);
  void end();

 private:
  void chunk(format::ChunkType type, std::size_t thread, std::span<const std::byte> payload);

  FileSink& sink_;
};

/// Throws Error(usage) with the file if `metadata` is not JSON.
void check_metadata(const std::filesystem::path& path, std::string_view metadata);

}  // namespace heddle::trace
