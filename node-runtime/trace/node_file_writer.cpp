#include "node-runtime/trace/node_file_writer.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "base/error.hpp"

namespace heddle::trace {
namespace {

using format::ChunkHeader;
using format::ChunkType;

class Payload {
 public:
  template <class T>
  requires std::is_arithmetic_v<T> Payload& put(T value) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  Payload& put_count(std::size_t count) { return put(static_cast<std::uint32_t>(count)); }
  Payload& put(std::string_view text) {
    put_count(text.size());
    const auto bytes = std::as_bytes(std::span(text));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace

NodeFileWriter::NodeFileWriter(FileSink& sink) : sink_(sink) {
  const format::FileHeader header;
  sink_.write(std::as_bytes(std::span(&header, 1)));
}

void NodeFileWriter::node(NodeId node, std::int32_t node_count) {
  Payload to;
  to.put(node.value()).put(node_count);
  chunk(ChunkType::node, 0, to.bytes());
}

void NodeFileWriter::metadata(std::string_view text) {
  Payload to;
  to.put(text);
  chunk(ChunkType::metadata, 0, to.bytes());
}

void NodeFileWriter::clock_offsets(std::span<const ClockOffset> offsets) {
  Payload to;
  to.put_count(offsets.size());
  for (const ClockOffset& offset : offsets) to.put(offset.local_ns).put(offset.offset_ns);
  chunk(ChunkType::clock, 0, to.bytes());
}

void NodeFileWriter::names(std::span<const std::string> names) {
  Payload to;
  to.put_count(names.size());
  for (const std::string& text : names) to.put(std::string_view(text));
  chunk(ChunkType::names, 0, to.bytes());
}

void NodeFileWriter::matrices(std::span<const MatrixDescription> matrices) {
  Payload to;
  to.put_count(matrices.size());
  for (const MatrixDescription& matrix : matrices) {
    to.put(matrix.matrix).put(matrix.tile_rows).put(matrix.tile_columns);
    to.put(std::string_view(matrix.name));
  }
  chunk(ChunkType::matrices, 0, to.bytes());
}

void NodeFileWriter::thread(const std::string& name, int sort_order) {
  Payload to;
  to.put(std::string_view(name)).put(static_cast<std::int32_t>(sort_order));
  chunk(ChunkType::thread, 0, to.bytes());
}

void NodeFileWriter::totals(std::size_t thread, const ThreadTotals& totals, std::uint64_t dropped) {
  Payload to;
  to.put(totals.busy_ns).put(totals.waiting_ns).put(totals.tasks).put(dropped);
  chunk(ChunkType::totals, thread, to.bytes());
}

void NodeFileWriter::records(std::size_t thread, std::span<const Record> records) {
  chunk(ChunkType::records, thread, std::as_bytes(records));
}

void NodeFileWriter::end() {
  chunk(ChunkType::end, 0, {});
}

void NodeFileWriter::chunk(ChunkType type, std::size_t thread, std::span<const std::byte> payload) {
  ChunkHeader header{type, static_cast<std::uint32_t>(thread), payload.size(), 0};
  header.checksum = format::checksum_of(header, payload);
  sink_.write(std::as_bytes(std::span(&header, 1)));
  sink_.write(payload);
}

void check_metadata(const std::filesystem::path& path, std::string_view metadata) {
  if (nlohmann::json::accept(metadata)) return;
  throw Error(ErrorCode::usage,
              fmt::format("cannot write the trace '{}': its metadata is not JSON: '{}'",
                          path.string(), metadata.substr(0, 60)));
}

}  // namespace heddle::trace
