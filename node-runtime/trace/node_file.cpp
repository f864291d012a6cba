#include "node-runtime/trace/node_file.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "node-runtime/trace/atomic_file.hpp"
#include "node-runtime/trace/file_format.hpp"

namespace heddle::trace {

namespace {

using format::ChunkHeader;
using format::ChunkType;
using format::FileHeader;

class Payload {
 public:
  template <class T>
  requires std::is_arithmetic_v<T>
  void put(T value) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void put_count(std::size_t count) { put(static_cast<std::uint32_t>(count)); }
  void put(std::string_view text) {
    put_count(text.size());
    const auto bytes = std::as_bytes(std::span(text));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

class NodeFileWriter {
 public:
  explicit NodeFileWriter(const std::filesystem::path& path) : file_(path.string()) {
    const FileHeader header;
    file_.write(std::as_bytes(std::span(&header, 1)));
  }

  void node(NodeId node, std::int32_t node_count, const RunInfo& info) {
    Payload to;
    to.put(node.value());
    to.put(node_count);
    to.put_count(info.clock_offsets.size());
    for (const ClockOffset& offset : info.clock_offsets) {
      to.put(offset.local_ns);
      to.put(offset.offset_ns);
    }
    to.put(std::string_view(info.metadata));
    chunk(ChunkType::node, 0, to.bytes());
  }

  void names(const std::vector<std::string>& names) {
    Payload to;
    to.put_count(names.size());
    for (const std::string& text : names) to.put(std::string_view(text));
    chunk(ChunkType::names, 0, to.bytes());
  }

  void matrices(const std::vector<MatrixDescription>& matrices) {
    Payload to;
    to.put_count(matrices.size());
    for (const MatrixDescription& matrix : matrices) {
      to.put(matrix.matrix);
      to.put(matrix.tile_rows);
      to.put(matrix.tile_columns);
      to.put(std::string_view(matrix.name));
    }
    chunk(ChunkType::matrices, 0, to.bytes());
  }

  /// All but the records.
  void threads(const std::vector<ThreadRecords>& threads) {
    Payload to;
    to.put_count(threads.size());
    for (const ThreadRecords& thread : threads) {
      to.put(std::string_view(thread.name));
      to.put(static_cast<std::int32_t>(thread.sort_order));
      to.put(thread.totals.busy_ns);
      to.put(thread.totals.waiting_ns);
      to.put(thread.totals.tasks);
      to.put(thread.dropped);
    }
    chunk(ChunkType::threads, 0, to.bytes());
  }

  void records(std::size_t thread, std::span<const Record> records) {
    chunk(ChunkType::records, static_cast<std::uint32_t>(thread), std::as_bytes(records));
  }

  void finish() {
    chunk(ChunkType::end, 0, {});
    file_.commit();
  }

 private:
  void chunk(ChunkType type, std::uint32_t thread, std::span<const std::byte> payload) {
    ChunkHeader header{type, thread, payload.size(), 0};
    header.checksum = format::checksum_of(header, payload);
    file_.write(std::as_bytes(std::span(&header, 1)));
    file_.write(payload);
  }

  AtomicFile file_;
};

/// Reads the parts of a payload that has been found undamaged.
class PayloadReader {
 public:
  PayloadReader(std::span<const std::byte> bytes, const std::string& source)
      : bytes_(bytes), source_(source) {}

  template <class T>
  requires std::is_arithmetic_v<T>
  [[nodiscard]] T get() {
    T value{};
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }
  [[nodiscard]] std::string get_text() {
    const auto size = get<std::uint32_t>();
    const auto bytes = take(size);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

 private:
  std::span<const std::byte> take(std::size_t size) {
    if (size > bytes_.size()) {
      throw Error(ErrorCode::usage,
                  fmt::format("{} is corrupt: a part of its header ends too early", source_));
    }
    const auto taken = bytes_.first(size);
    bytes_ = bytes_.subspan(size);
    return taken;
  }

  std::span<const std::byte> bytes_;
  const std::string& source_;
};

class NodeFileReader {
 public:
  explicit NodeFileReader(const std::filesystem::path& path)
      : source_(fmt::format("trace file '{}'", path.string())) {
    std::error_code error;
    size_ = std::filesystem::file_size(path, error);
    if (!error) {
      file_.open(path, std::ios::binary);
      if (!file_) error.assign(errno, std::generic_category());
    }
    if (error) fail(fmt::format("cannot be read: {}", error.message()));
  }

  NodeTrace read() {
    read_file_header();
    while (read_chunk()) {
    }
    if (!has_node_) fail("is corrupt: it does not say which node it is of");
    check(trace_, source_);
    return std::move(trace_);
  }

  SalvagedTrace salvage() {
    std::string damage;
    read_file_header();
    try {
      while (read_chunk()) {
      }
    } catch (const Error& error) {
      if (!has_node_) throw;
      damage = error.what();
    }
    if (!has_node_) fail("is corrupt: it does not say which node it is of");
    const std::string unsound = drop_unsound(trace_);
    if (damage.empty() && !unsound.empty()) damage = fmt::format("{} {}", source_, unsound);
    check(trace_, source_);
    return {std::move(trace_), std::move(damage)};
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorCode::usage, fmt::format("{} {}", source_, what));
  }

  void read_bytes(std::span<std::byte> to) {
    if (to.size() > size_ - position_) {
      fail(
          fmt::format("is truncated: it ends at byte {}, {} more are needed after byte {}; was "
                      "it copied whole?",
                      size_, to.size(), position_));
    }
    file_.read(reinterpret_cast<char*>(to.data()), static_cast<std::streamsize>(to.size()));
    if (!file_) fail(fmt::format("cannot be read at byte {}", position_));
    position_ += to.size();
  }

  void read_file_header() {
    FileHeader header;
    read_bytes(std::as_writable_bytes(std::span(&header, 1)));
    if (header.letters != format::magic) fail("is no trace of a heddle node");
    if (header.format_number != format::number || header.bytes_per_record != record_bytes) {
      fail(
          fmt::format("has format {} with records of {} bytes, this heddle reads format {} with "
                      "{}; use the heddle that wrote it",
                      header.format_number, header.bytes_per_record, format::number, record_bytes));
    }
  }

  /// False at the end.
  bool read_chunk() {
    const std::uint64_t at = position_;
    ChunkHeader header;
    read_bytes(std::as_writable_bytes(std::span(&header, 1)));
    if (header.bytes > size_ - position_) {
      fail(
          fmt::format("is truncated or corrupt: the part at byte {} has {} bytes, but the file "
                      "ends at {}",
                      at, header.bytes, size_));
    }
    if (header.type == ChunkType::records) {
      read_records(header, at);
      return true;
    }
    std::vector<std::byte> payload(header.bytes);
    read_bytes(payload);
    check_sum(payload, header, at);
    if (header.type == ChunkType::end) return false;
    understand(header.type, payload);
    return true;
  }

  void check_sum(std::span<const std::byte> payload, const ChunkHeader& header,
                 std::uint64_t at) const {
    if (format::checksum_of(header, payload) != header.checksum) {
      fail(fmt::format("is corrupt: the checksum of the part at byte {} does not match", at));
    }
  }

  void read_records(const ChunkHeader& header, std::uint64_t at) {
    if (header.thread >= trace_.threads.size() || header.bytes % record_bytes != 0) {
      fail(
          fmt::format("is corrupt: the part at byte {} has {} bytes of records of thread {}, "
                      "there are {} threads",
                      at, header.bytes, header.thread, trace_.threads.size()));
    }
    auto& records = trace_.threads[header.thread].records;
    const std::size_t before = records.size();
    records.resize(before + header.bytes / record_bytes);
    const auto bytes = std::as_writable_bytes(std::span(records).subspan(before));
    try {
      read_bytes(bytes);
      check_sum(bytes, header, at);
    } catch (const Error&) {
      records.resize(before);
      throw;
    }
  }

  void understand(ChunkType type, std::span<const std::byte> payload) {
    PayloadReader from(payload, source_);
    if (type == ChunkType::node) {
      has_node_ = true;
      trace_.node = NodeId(from.get<std::int32_t>());
      trace_.node_count = from.get<std::int32_t>();
      for (auto count = from.get<std::uint32_t>(); count > 0; --count) {
        ClockOffset& offset = trace_.info.clock_offsets.emplace_back();
        offset.local_ns = from.get<std::int64_t>();
        offset.offset_ns = from.get<std::int64_t>();
      }
      trace_.info.metadata = from.get_text();
    } else if (type == ChunkType::names) {
      for (auto count = from.get<std::uint32_t>(); count > 0; --count) {
        trace_.names.push_back(from.get_text());
      }
    } else if (type == ChunkType::matrices) {
      for (auto count = from.get<std::uint32_t>(); count > 0; --count) {
        MatrixDescription& matrix = trace_.matrices.emplace_back();
        matrix.matrix = from.get<std::int32_t>();
        matrix.tile_rows = from.get<std::int32_t>();
        matrix.tile_columns = from.get<std::int32_t>();
        matrix.name = from.get_text();
      }
    } else if (type == ChunkType::threads) {
      for (auto count = from.get<std::uint32_t>(); count > 0; --count) {
        ThreadRecords& thread = trace_.threads.emplace_back();
        thread.name = from.get_text();
        thread.sort_order = from.get<std::int32_t>();
        thread.totals.busy_ns = from.get<std::int64_t>();
        thread.totals.waiting_ns = from.get<std::int64_t>();
        thread.totals.tasks = from.get<std::uint64_t>();
        thread.dropped = from.get<std::uint64_t>();
      }
    }
  }

  std::string source_;
  std::ifstream file_;
  std::uint64_t size_ = 0;
  std::uint64_t position_ = 0;
  bool has_node_ = false;
  NodeTrace trace_;
};

void check_metadata(const std::filesystem::path& path, const RunInfo& info) {
  if (!nlohmann::json::accept(info.metadata)) {
    throw Error(ErrorCode::usage, fmt::format("cannot write the trace '{}': its metadata is no "
                                              "JSON: '{}'",
                                              path.string(), info.metadata.substr(0, 60)));
  }
}

}  // namespace

void write_node_file(const std::filesystem::path& path, const Recorder& recorder,
                     const RunInfo& info) {
  check_metadata(path, info);
  const std::vector<const ThreadTrace*> threads = recorder.threads();
  // First of all, so that whatever these records name has been interned before names() is asked.
  std::vector<std::vector<std::span<const Record>>> runs(threads.size());
  std::vector<ThreadRecords> rows(threads.size());
  for (std::size_t i = 0; i < threads.size(); ++i) {
    threads[i]->for_each_run([&](std::span<const Record> run) { runs[i].push_back(run); });
    rows[i].name = threads[i]->name();
    rows[i].sort_order = threads[i]->sort_order();
    rows[i].totals = threads[i]->totals();
    rows[i].dropped = threads[i]->dropped();
  }
  NodeFileWriter file(path);
  file.node(recorder.options().node, recorder.options().node_count, info);
  file.names(recorder.names());
  file.matrices(recorder.matrices());
  file.threads(rows);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (const auto run : runs[i]) file.records(i, run);
  }
  file.finish();
}

void write_node_file(const std::filesystem::path& path, const NodeTrace& trace) {
  check_metadata(path, trace.info);
  NodeFileWriter file(path);
  file.node(trace.node, trace.node_count, trace.info);
  file.names(trace.names);
  file.matrices(trace.matrices);
  file.threads(trace.threads);
  for (std::size_t i = 0; i < trace.threads.size(); ++i) file.records(i, trace.threads[i].records);
  file.finish();
}

NodeTrace read_node_file(const std::filesystem::path& path) {
  return NodeFileReader(path).read();
}

SalvagedTrace salvage_node_file(const std::filesystem::path& path) {
  return NodeFileReader(path).salvage();
}

}  // namespace heddle::trace
