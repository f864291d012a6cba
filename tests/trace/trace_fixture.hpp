#pragma once

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fmt/core.h>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

#include "base/error.hpp"
#include "node-runtime/trace/node_trace.hpp"

namespace heddle::trace::test {

/// A test with a new folder of its own, removed with all it holds.
class TraceTest : public ::testing::Test {
 public:
  TraceTest() {
    std::string name = (std::filesystem::temp_directory_path() / "heddle-trace-XXXXXX").string();
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  ~TraceTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  TraceTest(const TraceTest&) = delete;
  TraceTest& operator=(const TraceTest&) = delete;

 protected:
  [[nodiscard]] std::filesystem::path file(const std::string& name) const { return folder_ / name; }

  [[nodiscard]] std::vector<std::string> files_in_folder() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      names.push_back(entry.path().filename().string());
    }
    return names;
  }

 private:
  std::filesystem::path folder_;
};

[[nodiscard]] inline std::string contents(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void replace_contents(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

/// What the Error says that `call` throws; empty, and a failure, when it throws none.
template <class Call>
[[nodiscard]] std::string error_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return {};
}

/// Puts records into traces in memory, as a recorder would.
class TraceBuilder {
 public:
  TraceBuilder(std::int32_t node, std::int32_t node_count) {
    trace_.node = NodeId(node);
    trace_.node_count = node_count;
    trace_.names = {"gsmm", "ready tasks"};
    trace_.matrices = {{.matrix = 0, .name = "A", .tile_rows = 10, .tile_columns = 10}};
  }
  static constexpr NameId gsmm{0};
  static constexpr NameId ready_tasks{1};

  [[nodiscard]] NodeTrace& trace() { return trace_; }

  TraceBuilder& thread(const std::string& name, int sort_order = 0) {
    trace_.threads.push_back({.name = name, .sort_order = sort_order, .records = {}});
    return *this;
  }
  TraceBuilder& task(std::int64_t start, std::int64_t end, std::int32_t row, std::int32_t column) {
    put(TaskRecord{.access_count = 1,
                   .kernel = gsmm,
                   .job = 0,
                   .order = order_++,
                   .start_ns = start,
                   .end_ns = end,
                   .tile = tile(row, column)});
    AccessRecord accesses;
    accesses.fill({.kind = RecordKind::none});
    accesses[0] = {
        .mode = AccessMode::read_write, .tile = tile(row, column), .version = Version(0)};
    return put(accesses);
  }
  /// The task before was run by that stream of its device, from 1.
  TraceBuilder& by_stream(std::uint8_t stream) {
    std::vector<Record>& records = trace_.threads.back().records;
    Record& record = records[records.size() - 2];  // its accesses follow
    auto task = record.as<TaskRecord>();
    task.stream = stream;
    record = Record::of(task);
    return *this;
  }
  TraceBuilder& wait(std::int64_t start, std::int64_t end, WaitCause cause) {
    return put(WaitRecord{.cause = cause, .start_ns = start, .end_ns = end});
  }
  TraceBuilder& copy(std::int64_t start, std::int64_t end, std::int32_t row) {
    return put(CopyRecord{.job = 0,
                          .tile = tile(row, 0),
                          .version = Version(1),
                          .from = host_place,
                          .to = PlaceId(1),
                          .bytes = 4096,
                          .posted_ns = start - 2,
                          .start_ns = start,
                          .end_ns = end});
  }
  TraceBuilder& fetch(std::int64_t start, std::int64_t end, std::int32_t row) {
    return put(CopyRecord{.reason = CopyReason::fetch,
                          .tile = tile(row, 0),
                          .from = host_place,
                          .to = PlaceId(1),
                          .bytes = 4096,
                          .posted_ns = start,
                          .start_ns = start,
                          .end_ns = end});
  }
  TraceBuilder& message(RecordKind kind, std::int32_t peer, std::int64_t start, std::int64_t end,
                        std::int32_t row, std::int32_t version = 1) {
    return put(MessageRecord{.kind = kind,
                             .job = 0,
                             .tile = tile(row, 0),
                             .version = Version(version),
                             .peer = NodeId(peer),
                             .tag = 7,
                             .bytes = 8192,
                             .posted_ns = start,
                             .start_ns = start,
                             .end_ns = end});
  }
  /// The last message came this way.
  TraceBuilder& by_path(PathNumber path) {
    Record& last = trace_.threads.back().records.back();
    auto message = last.as<MessageRecord>();
    message.path = path;
    last = Record::of(message);
    return *this;
  }
  TraceBuilder& fragment(FragmentStep step, std::int64_t start, std::int64_t end,
                         std::int32_t row) {
    return put(FragmentRecord{.step = step,
                              .job = 0,
                              .tile = tile(row, 0),
                              .version = Version(1),
                              .peer = NodeId(1),
                              .begin = 4096,
                              .bytes = 1024,
                              .start_ns = start,
                              .end_ns = end});
  }
  /// An all_reduce of the group of four nodes.
  TraceBuilder& collective(std::int64_t start, std::int64_t end, std::int64_t number,
                           bool is_on_stream = false) {
    const auto name = [&](const char* text) {
      trace_.names.emplace_back(text);
      return NameId(static_cast<std::uint32_t>(trace_.names.size() - 1));
    };
    return put(CollectiveRecord{.is_on_stream = static_cast<std::uint8_t>(is_on_stream ? 1 : 0),
                                .operation = name("all_reduce"),
                                .algorithm = name("host \"chain\""),
                                .group = 3,
                                .number = number,
                                .bytes = 640,
                                .ranks = 4,
                                .start_ns = start,
                                .end_ns = end});
  }
  TraceBuilder& counter(std::int64_t time, std::int64_t value, std::int32_t place = 0) {
    return put(CounterRecord{
        .name = ready_tasks, .place = PlaceId(place), .time_ns = time, .value = value});
  }

 private:
  static Tile tile(std::int32_t row, std::int32_t column) { return {0, row + column * 10}; }
  template <class T>
  TraceBuilder& put(const T& record) {
    trace_.threads.back().records.push_back(Record::of(record));
    return *this;
  }

  NodeTrace trace_;
  std::uint64_t order_ = 0;
};

}  // namespace heddle::trace::test
