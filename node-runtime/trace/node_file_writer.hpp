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

/// Writes the parts of a node's file (node_file.hpp). The order is the caller's: node() first, the
/// names and threads that records speak of before these, end() last. Functions throw
/// Error(internal) as FileSink::write(). One thread at a time.
class NodeFileWriter {
 public:
  /// The sink outlives the writer.
  explicit NodeFileWriter(FileSink& sink);

  void node(NodeId node, std::int32_t node_count);
  /// JSON; replaces what was said before.
  void metadata(std::string_view text);
  /// These behind those before, likewise below.
  void clock_offsets(std::span<const ClockOffset> offsets);
  void names(std::span<const std::string> names);
  void matrices(std::span<const MatrixDescription> matrices);
  void thread(const std::string& name, int sort_order);
  /// Of threads in the order of thread().
  void totals(std::size_t thread, const ThreadTotals& totals, std::uint64_t dropped);
  void records(std::size_t thread, std::span<const Record> records);
  void end();

 private:
  void chunk(format::ChunkType type, std::size_t thread, std::span<const std::byte> payload);

  FileSink& sink_;
};

/// Throws Error(usage) that names the file when `metadata` is no JSON.
void check_metadata(const std::filesystem::path& path, std::string_view metadata);

}  // namespace heddle::trace
