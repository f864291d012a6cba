#include "node-runtime/trace/node_stream.hpp"

#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "node-runtime/trace/node_file.hpp"
#include "tests/trace/trace_fixture.hpp"

namespace heddle::trace {
namespace {

using test::contents;
using test::error_of;

class Stream : public test::TraceTest {
 protected:
  static RecorderOptions options(std::size_t records_max = 4 * ThreadTrace::chunk_records) {
    return {
        .node = NodeId(2), .node_count = 3, .enabled = true, .records_per_thread_max = records_max};
  }

  /// Waits until the file can be read so far that `is_there`.
  void await(const std::function<bool(const NodeTrace&)>& is_there) const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!is_there(salvage_node_file(file("t")).trace)) {
      ASSERT_LT(std::chrono::steady_clock::now(), end) << "nothing was written";
      std::this_thread::yield();
    }
  }
};

TEST_F(Stream, FinishedIsWhatWasRecorded) {
  Recorder recorder(options());
  recorder.describe_matrix({.matrix = 5, .name = "A", .tile_rows = 8, .tile_columns = 9});
  recorder.describe_matrix({.matrix = 0, .name = "b", .tile_rows = 8, .tile_columns = 1});
  ThreadTrace& worker = recorder.thread("worker 0", 0);
  ThreadTrace& progress = recorder.thread("MPI progress", 1);
  const NameId kernel = recorder.intern("potrf");
  for (std::size_t i = 0; i < 2 * ThreadTrace::chunk_records; ++i) {
    worker.task({.kernel = kernel, .order = i, .start_ns = 1, .end_ns = 3}, {});
  }
  progress.message({.kind = RecordKind::receive, .peer = NodeId(1)});
  NodeTrace expected = collect(recorder, {.clock_offsets = {{1, 2}, {9, 4}}, .metadata = "[2]"});

  NodeStream stream(file("t"), recorder, {.clock_offsets = {{1, 2}}, .metadata = "[1]"});
  stream.finish({.clock_offsets = {{9, 4}}, .metadata = "[2]"});

  const NodeTrace trace = read_node_file(file("t"));
  EXPECT_EQ(trace, expected);
  EXPECT_EQ(trace.node, NodeId(2));
  EXPECT_EQ(trace.threads[0].records.size(), 2 * ThreadTrace::chunk_records);
  EXPECT_EQ(trace.threads[0].totals.busy_ns, std::int64_t{4} * ThreadTrace::chunk_records);
  EXPECT_EQ(trace.matrices[0].name, "b");
  EXPECT_EQ(files_in_folder(), std::vector<std::string>{"t"});
}

TEST_F(Stream, OfASwitchedOffRecorderIsValidAndEmpty) {
  Recorder recorder(RecorderOptions{});
  recorder.thread("worker 0", 0).wait(WaitCause::no_task, 0, 5);
  NodeStream(file("t"), recorder, {}).finish({});
  const NodeTrace trace = read_node_file(file("t"));
  EXPECT_TRUE(trace.threads.at(0).records.empty());
  EXPECT_EQ(trace.threads.at(0).totals.waiting_ns, 5);
}

TEST_F(Stream, TakesWhatComesLater) {
  Recorder recorder(options());
  NodeStream stream(file("t"), recorder, {});
  ThreadTrace& first = recorder.thread("worker 0", 0);
  first.task({.kernel = recorder.intern("potrf"), .start_ns = 1, .end_ns = 2}, {});
  await([](const NodeTrace& trace) {
    return trace.threads.size() == 1 && trace.threads[0].records.size() == 1;
  });
  recorder.describe_matrix({.matrix = 1, .name = "A", .tile_rows = 2, .tile_columns = 2});
  ThreadTrace& second = recorder.thread("worker 1", 1);
  second.task({.kernel = recorder.intern("trsm"), .start_ns = 3, .end_ns = 4}, {});
  first.wait(WaitCause::no_task, 5, 6);
  await([](const NodeTrace& trace) {
    return trace.threads.size() == 2 && trace.threads[1].records.size() == 1 &&
           trace.threads[0].records.size() == 2;
  });
  recorder.describe_matrix({.matrix = 1, .name = "B", .tile_rows = 3, .tile_columns = 1});
  stream.finish({});
  const NodeTrace trace = read_node_file(file("t"));
  EXPECT_EQ(trace.names, (std::vector<std::string>{"potrf", "trsm"}));
  ASSERT_EQ(trace.matrices.size(), 1U);
  EXPECT_EQ(trace.matrices[0].name, "B");
  EXPECT_EQ(trace.threads[1].records[0].as<TaskRecord>().kernel, NameId(1));
}

TEST_F(Stream, MakesRoomInTheRecorder) {
  Recorder recorder(options(2 * ThreadTrace::chunk_records));
  ThreadTrace& worker = recorder.thread("worker 0", 0);
  NodeStream stream(file("t"), recorder, {});
  constexpr std::uint64_t portion = ThreadTrace::chunk_records;
  for (std::uint64_t portions = 1; portions <= 6; ++portions) {
    for (std::uint64_t i = 0; i < portion; ++i) worker.task({.kernel = recorder.intern("k")}, {});
    await([&](const NodeTrace& trace) {
      return !trace.threads.empty() && trace.threads[0].records.size() == portions * portion;
    });
  }
  stream.finish({});
  EXPECT_EQ(worker.dropped(), 0U);
}

TEST_F(Stream, ThatIsNotFinishedKeepsWhatThereIsAndSaysSo) {
  Recorder recorder(options());
  ThreadTrace& worker = recorder.thread("worker 0", 0);
  const NameId kernel = recorder.intern("potrf");
  {
    const NodeStream stream(file("t"), recorder, {.metadata = "[1]"});
    for (std::size_t i = 0; i < 1000; ++i) worker.task({.kernel = kernel, .order = i}, {});
  }
  const SalvagedTrace salvaged = salvage_node_file(file("t"));
  EXPECT_NE(salvaged.damage.find("did not come to its end"), std::string::npos) << salvaged.damage;
  ASSERT_EQ(salvaged.trace.threads.size(), 1U);
  EXPECT_EQ(salvaged.trace.threads[0].records.size(), 1000U);
  EXPECT_EQ(salvaged.trace.threads[0].totals.tasks, 1000U);
  EXPECT_EQ(salvaged.trace.info.metadata, "[1]");
}

TEST_F(Stream, OutlivesAProcessThatIsKilled) {
  const pid_t child = ::fork();
  if (child == 0) {
    Recorder recorder(options());
    ThreadTrace& worker = recorder.thread("worker 0", 0);
    const NameId kernel = recorder.intern("potrf");
    const NodeStream stream(file("t"), recorder, {});
    for (std::uint64_t i = 0;; ++i) {
      worker.task({.kernel = kernel, .order = i}, {});
      std::this_thread::sleep_for(std::chrono::microseconds(50));  // a task
    }
  }
  ASSERT_GT(child, 0);
  const auto has_some = [](const NodeTrace& trace) {
    return !trace.threads.empty() && trace.threads[0].records.size() > 100;
  };
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  bool is_there = false;
  while (!is_there && std::chrono::steady_clock::now() < end) {
    is_there = std::filesystem::exists(file("t")) &&
               std::filesystem::file_size(file("t")) > 20'000 &&
               has_some(salvage_node_file(file("t")).trace);
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ASSERT_TRUE(is_there);
  const SalvagedTrace salvaged = salvage_node_file(file("t"));
  EXPECT_FALSE(salvaged.damage.empty());
  const auto& records = salvaged.trace.threads.at(0).records;
  for (std::size_t i = 0; i < records.size(); ++i) {
    ASSERT_EQ(records[i].as<TaskRecord>().order, i);
  }
}

TEST_F(Stream, ThatCannotBeWrittenTellsAtTheEnd) {
  Recorder recorder(options());
  ThreadTrace& worker = recorder.thread("worker 0", 0);
  NodeStream stream(file("t"), recorder, {});
  // Past the limit the system refuses, as it does when a disk is full.
  const auto previous = std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  struct rlimit limited = before;
  limited.rlim_cur = 65536;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limited), 0);
  for (std::size_t i = 0; i < 10'000; ++i) worker.task({.kernel = recorder.intern("k")}, {});
  std::string error;
  try {
    stream.finish({});
  } catch (const Error& caught) {
    EXPECT_EQ(caught.code(), ErrorCode::usage);
    error = caught.what();
  }
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, previous);
  EXPECT_NE(error.find("/t': File too large"), std::string::npos) << error;
  EXPECT_FALSE(salvage_node_file(file("t")).damage.empty());
}

TEST_F(Stream, RefusesFoldersMissingFoldersAndMetadataThatIsNoJson) {
  Recorder recorder(options());
  std::filesystem::create_directory(file("folder"));
  EXPECT_NE(error_of([&] { const NodeStream s(file("folder"), recorder, {}); }).find("/folder'"),
            std::string::npos);
  EXPECT_NE(error_of([&] { const NodeStream s(file("no/t"), recorder, {}); }).find("no/t"),
            std::string::npos);
  const std::string error =
      error_of([&] { const NodeStream s(file("t"), recorder, {.metadata = "{n: 4}"}); });
  EXPECT_NE(error.find("{n: 4}"), std::string::npos) << error;
  EXPECT_EQ(files_in_folder(), std::vector<std::string>{"folder"});
}

}  // namespace
}  // namespace heddle::trace
