#include "node-runtime/trace/node_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fmt/core.h>
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
#include "node-runtime/trace/node_file_writer.hpp"

namespace heddle::trace {

namespace {

using format::ChunkHeader;
using format::ChunkType;
using format::FileHeader;

/// Decodes a payload whose checksum was correct.
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
    // A killed process leaves its file cut anywhere.
    constexpr std::string_view unfinished =
        "its run did not come to its end or goes on, or the file was cut later";
    ChunkHeader header;
    if (sizeof(header) > size_ - at) {
      fail(fmt::format("is truncated: it ends at byte {} without its last part; {}", size_,
                       unfinished));
    }
    read_bytes(std::as_writable_bytes(std::span(&header, 1)));
    if (header.bytes > size_ - position_) {
      fail(
          fmt::format("is truncated or corrupt: the part at byte {} has {} bytes, but the file "
                      "ends at {}; {}",
                      at, header.bytes, size_, unfinished));
    }
    if (header.type == ChunkType::records) {
      read_records(header, at);
      return true;
    }
    std::vector<std::byte> payload(header.bytes);
    read_bytes(payload);
    check_sum(payload, header, at);
    if (header.type == ChunkType::end) return false;
    understand(header, payload, at);
    return true;
  }

  void check_sum(std::span<const std::byte> payload, const ChunkHeader& header,
                 std::uint64_t at) const {
    if (format::checksum_of(header, payload) != header.checksum) {
      fail(fmt::format("is corrupt: the checksum of the part at byte {} does not match", at));
    }
  }

  void read_records(const ChunkHeader& header, std::uint64_t at) {
    auto& records = thread_of(header, at).records;
    if (header.bytes % record_bytes != 0) {
      fail(fmt::format("is corrupt: the part at byte {} has {} bytes, which are no whole records",
                       at, header.bytes));
    }
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

  void understand(const ChunkHeader& header, std::span<const std::byte> payload, std::uint64_t at) {
    PayloadReader from(payload, source_);
    switch (header.type) {
      case ChunkType::node:
        has_node_ = true;
        trace_.node = NodeId(from.get<std::int32_t>());
        trace_.node_count = from.get<std::int32_t>();
        return;
      case ChunkType::metadata:
        trace_.info.metadata = from.get_text();
        return;
      case ChunkType::clock:
        for (auto count = from.get<std::uint32_t>(); count > 0; --count) {
          ClockOffset& offset = trace_.info.clock_offsets.emplace_back();
          offset.local_ns = from.get<std::int64_t>();
          offset.offset_ns = from.get<std::int64_t>();
        }
        return;
      case ChunkType::names:
        for (auto count = from.get<std::uint32_t>(); count > 0; --count) {
          trace_.names.push_back(from.get_text());
        }
        return;
      case ChunkType::matrices:
        for (auto count = from.get<std::uint32_t>(); count > 0; --count) add_matrix(from);
        return;
      case ChunkType::thread: {
        ThreadRecords& thread = trace_.threads.emplace_back();
        thread.name = from.get_text();
        thread.sort_order = from.get<std::int32_t>();
        return;
      }
      case ChunkType::totals: {
        ThreadRecords& thread = thread_of(header, at);
        thread.totals.busy_ns = from.get<std::int64_t>();
        thread.totals.waiting_ns = from.get<std::int64_t>();
        thread.totals.tasks = from.get<std::uint64_t>();
        thread.dropped = from.get<std::uint64_t>();
        return;
      }
      default:
        return;
    }
  }

  void add_matrix(PayloadReader& from) {
    MatrixDescription matrix;
    matrix.matrix = from.get<std::int32_t>();
    matrix.tile_rows = from.get<std::int32_t>();
    matrix.tile_columns = from.get<std::int32_t>();
    matrix.name = from.get_text();
    const auto known =
        std::ranges::lower_bound(trace_.matrices, matrix.matrix, {}, &MatrixDescription::matrix);
    if (known != trace_.matrices.end() && known->matrix == matrix.matrix) {
      *known = std::move(matrix);
    } else {
      trace_.matrices.insert(known, std::move(matrix));
    }
  }

  ThreadRecords& thread_of(const ChunkHeader& header, std::uint64_t at) {
    if (header.thread < trace_.threads.size()) return trace_.threads[header.thread];
    fail(fmt::format("is corrupt: the part at byte {} is of thread {}, there are {} threads", at,
                     header.thread, trace_.threads.size()));
  }

  std::string source_;
  std::ifstream file_;
  std::uint64_t size_ = 0;
  std::uint64_t position_ = 0;
  bool has_node_ = false;
  NodeTrace trace_;
};

}  // namespace

void write_node_file(const std::filesystem::path& path, const NodeTrace& trace) {
  check_metadata(path, trace.info.metadata);
  AtomicFile file(path.string());
  NodeFileWriter to(file.sink());
  to.node(trace.node, trace.node_count);
  to.metadata(trace.info.metadata);
  to.clock_offsets(trace.info.clock_offsets);
  to.names(trace.names);
  to.matrices(trace.matrices);
  for (const ThreadRecords& thread : trace.threads) to.thread(thread.name, thread.sort_order);
  for (std::size_t i = 0; i < trace.threads.size(); ++i) {
    const ThreadRecords& thread = trace.threads[i];
    to.records(i, thread.records);
    to.totals(i, thread.totals, thread.dropped);
  }
  to.end();
  file.commit();
}

NodeTrace read_node_file(const std::filesystem::path& path) {
  return NodeFileReader(path).read();
}

SalvagedTrace salvage_node_file(const std::filesystem::path& path) {
  return NodeFileReader(path).salvage();
}

}  // namespace heddle::trace
