#include "node-runtime/trace/node_file.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <gtest/gtest.h>
#include <string>

#include "node-runtime/trace/file_format.hpp"
#include "tests/trace/trace_fixture.hpp"

namespace heddle::trace {
namespace {

using test::contents;
using test::error_of;
using test::replace_contents;
using test::TraceBuilder;

class NodeFile : public test::TraceTest {
 protected:
  /// Something of each kind.
  static NodeTrace example() {
    TraceBuilder build(1, 4);
    build.thread("worker 0", 2).task(100, 200, 5, 3).wait(200, 210, WaitCause::dependency);
    build.thread("MPI progress", 9)
        .message(RecordKind::send, 2, 150, 180, 4)
        .message(RecordKind::receive, 0, 150, 190, 6);
    build.thread("copy \xc3\xa9\"\n", 5).copy(120, 140, 1).counter(130, -8, 1);
    build.thread("silent");
    NodeTrace trace = build.trace();
    trace.info = {.clock_offsets = {{10, -5}, {20, 7}}, .metadata = R"({"n": 4000})"};
    trace.threads[0].totals = {.busy_ns = 100, .waiting_ns = 10, .tasks = 1};
    trace.threads[0].dropped = 12;
    return trace;
  }

  [[nodiscard]] std::string reading_fails() const {
    return error_of([&] { static_cast<void>(read_node_file(file("t.node1"))); });
  }
};

TEST_F(NodeFile, IsReadBackAsItWasWritten) {
  const NodeTrace trace = example();
  write_node_file(file("t.node1"), trace);
  EXPECT_EQ(read_node_file(file("t.node1")), trace);
  EXPECT_EQ(files_in_folder(), std::vector<std::string>{"t.node1"});
}

TEST_F(NodeFile, CutAnywhereIsNamedAsTruncated) {
  write_node_file(file("t.node1"), example());
  const std::string whole = contents(file("t.node1"));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    replace_contents(file("t.node1"), whole.substr(0, size));
    const std::string error = reading_fails();
    EXPECT_NE(error.find("t.node1'"), std::string::npos) << error;
    EXPECT_NE(error.find("truncated"), std::string::npos) << error;
  }
}

TEST_F(NodeFile, DamagedAnywhereIsAnErrorThatNamesIt) {
  write_node_file(file("t.node1"), example());
  const std::string whole = contents(file("t.node1"));
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x40);
    replace_contents(file("t.node1"), damaged);
    const std::string error = reading_fails();
    EXPECT_NE(error.find("t.node1'"), std::string::npos) << "byte " << at << ": " << error;
  }
}

TEST_F(NodeFile, CutAnywhereIsReadUpToThere) {
  const NodeTrace all = example();
  write_node_file(file("t.node1"), all);
  const std::string whole = contents(file("t.node1"));
  std::size_t most = 0;
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    replace_contents(file("t.node1"), whole.substr(0, size));
    SalvagedTrace salvaged;
    try {
      salvaged = salvage_node_file(file("t.node1"));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::usage);
      continue;  // it does not say which node it is of
    }
    // As a process leaves it that is killed between two parts, or while it writes one.
    EXPECT_EQ(salvaged.damage.find("its run did not come to its end") == std::string::npos,
              size == whole.size())
        << size << ": " << salvaged.damage;
    EXPECT_EQ(salvaged.damage.empty(), size == whole.size());
    EXPECT_EQ(salvaged.trace.node, all.node);
    std::size_t records = 0;
    for (std::size_t t = 0; t < salvaged.trace.threads.size(); ++t) {
      const auto& found = salvaged.trace.threads[t].records;
      const auto& expected = all.threads[t].records;
      ASSERT_LE(found.size(), expected.size());
      EXPECT_TRUE(std::equal(found.begin(), found.end(), expected.begin()));
      records += found.size();
    }
    EXPECT_GE(records, most) << "a longer file tells no less";
    most = records;
  }
  EXPECT_EQ(salvage_node_file(file("t.node1")).trace, all);
}

TEST_F(NodeFile, WithAnUnsoundRecordIsReadUpToThere) {
  NodeTrace trace = example();
  auto& records = trace.threads[0].records;
  records.push_back(Record::of(TaskRecord{.access_count = 1, .kernel = TraceBuilder::gsmm}));
  write_node_file(file("t.node1"), trace);
  const SalvagedTrace salvaged = salvage_node_file(file("t.node1"));
  EXPECT_NE(salvaged.damage.find("the accesses of its task are missing"), std::string::npos)
      << salvaged.damage;
  records.pop_back();
  EXPECT_EQ(salvaged.trace, trace);
}

TEST_F(NodeFile, OfAnotherFormatSaysWhichOneIsRead) {
  write_node_file(file("t.node1"), example());
  std::string bytes = contents(file("t.node1"));
  bytes[8] = 9;
  replace_contents(file("t.node1"), bytes);
  const std::string error = reading_fails();
  EXPECT_NE(error.find("format 9"), std::string::npos) << error;
  EXPECT_NE(error.find("reads format 2"), std::string::npos) << error;
}

TEST_F(NodeFile, ThatIsSomethingElseIsRefused) {
  replace_contents(file("t.node1"), "{\"traceEvents\": []}, and more of that");
  EXPECT_NE(reading_fails().find("no trace of a heddle node"), std::string::npos);
}

TEST_F(NodeFile, ThatIsMissingIsNamed) {
  const std::string error = reading_fails();
  EXPECT_NE(error.find("t.node1"), std::string::npos) << error;
  EXPECT_NE(error.find("No such file"), std::string::npos) << error;
}

TEST_F(NodeFile, WithPartsOfALaterHeddleIsReadWithoutThem) {
  const NodeTrace trace = example();
  write_node_file(file("t.node1"), trace);
  std::string bytes = contents(file("t.node1"));
  format::ChunkHeader news{static_cast<format::ChunkType>(format::four_letters("NEWS"))};
  news.checksum = format::checksum_of(news, {});
  std::string chunk(sizeof(news), '\0');
  std::memcpy(chunk.data(), &news, sizeof(news));
  bytes.insert(bytes.size() - sizeof(news), chunk);  // before the end
  replace_contents(file("t.node1"), bytes);
  EXPECT_EQ(read_node_file(file("t.node1")), trace);
}

TEST_F(NodeFile, WithATaskWithoutItsAccessesIsCorrupt) {
  NodeTrace trace = example();
  trace.threads[0].records.resize(1);
  write_node_file(file("t.node1"), trace);
  const std::string error = reading_fails();
  EXPECT_NE(error.find("record 0 of thread 'worker 0'"), std::string::npos) << error;
}

TEST_F(NodeFile, WithAnUnknownNameIsCorrupt) {
  NodeTrace trace = example();
  trace.names.clear();
  write_node_file(file("t.node1"), trace);
  EXPECT_NE(reading_fails().find("corrupt"), std::string::npos);
}

TEST_F(NodeFile, IsNotWrittenWithMetadataThatIsNoJson) {
  NodeTrace trace = example();
  trace.info.metadata = "{n: 4}";
  const std::string error = error_of([&] { write_node_file(file("t"), trace); });
  EXPECT_NE(error.find("{n: 4}"), std::string::npos) << error;
  EXPECT_TRUE(files_in_folder().empty());
}

TEST_F(NodeFile, InAFolderThatIsMissingIsAnErrorThatNamesIt) {
  const std::string error = error_of([&] { write_node_file(file("no/t"), example()); });
  EXPECT_NE(error.find("no/t"), std::string::npos) << error;
}

TEST_F(NodeFile, DoesNotReplaceAFolder) {
  std::filesystem::create_directory(file("t"));
  const std::string error = error_of([&] { write_node_file(file("t"), example()); });
  EXPECT_NE(error.find("/t'"), std::string::npos) << error;
  EXPECT_TRUE(std::filesystem::is_directory(file("t")));
}

TEST_F(NodeFile, ReplacesAnOlderFile) {
  replace_contents(file("t.node1"), "old");
  write_node_file(file("t.node1"), example());
  EXPECT_EQ(read_node_file(file("t.node1")), example());
}

}  // namespace
}  // namespace heddle::trace
