#include "node-runtime/trace/chrome_export.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "node-runtime/trace/node_file.hpp"
#include "tests/trace/trace_fixture.hpp"

namespace heddle::trace {
namespace {

using nlohmann::json;
using test::contents;
using test::error_of;
using test::replace_contents;
using test::TraceBuilder;

/// What Perfetto makes of a time in microseconds.
std::int64_t truncated_ns(const json& microseconds) {
  return static_cast<std::int64_t>(microseconds.get<double>() * 1000.0);
}

/// An exported trace, read back.
class Exported {
 public:
  explicit Exported(const std::filesystem::path& path) : all_(json::parse(contents(path))) {
    for (const json& event : all_.at("traceEvents")) {
      if (event.at("ph") != "M") continue;
      if (event.at("name") == "thread_name") {
        rows_[event.at("tid")] = event.at("args").at("name");
      } else if (event.at("name") == "process_name") {
        processes_[event.at("pid")] = event.at("args").at("name");
      }
    }
  }

  [[nodiscard]] const json& all() const { return all_; }

  [[nodiscard]] std::vector<json> events(const std::string& phase) const {
    std::vector<json> found;
    for (const json& event : all_.at("traceEvents")) {
      if (event.at("ph") == phase) found.push_back(event);
    }
    return found;
  }
  [[nodiscard]] std::vector<json> slices(const std::string& row) const {
    std::vector<json> found;
    for (const json& event : events("X")) {
      if (row_of(event) == row) found.push_back(event);
    }
    return found;
  }
  [[nodiscard]] std::vector<std::string> names(const std::string& row) const {
    std::vector<std::string> found;
    for (const json& slice : slices(row)) found.push_back(slice.at("name"));
    return found;
  }
  /// "node 0/worker 0"
  [[nodiscard]] std::string row_of(const json& event) const {
    return processes_.at(event.at("pid")) + "/" + rows_.at(event.at("tid"));
  }
  [[nodiscard]] std::vector<std::string> rows() const {
    std::map<int, std::string> by_index;
    for (const json& event : events("M")) {
      if (event.at("name") == "thread_sort_index") {
        by_index[event.at("args").at("sort_index")] = row_of(event);
      }
    }
    std::vector<std::string> found;
    found.reserve(by_index.size());
    for (const auto& [index, row] : by_index) found.push_back(row);
    return found;
  }

  /// What viewers demand: the slices of a row in order and apart, as Perfetto reads the times; both
  /// ends of each arrow once, inside a slice, the first not after the second.
  void expect_sound() const {
    std::map<int, std::int64_t> end_of_row;
    std::map<int, std::vector<std::pair<std::int64_t, std::int64_t>>> spans;
    for (const json& slice : events("X")) {
      const std::int64_t start = truncated_ns(slice.at("ts"));
      const std::int64_t end = start + truncated_ns(slice.at("dur"));
      const int tid = slice.at("tid");
      EXPECT_GE(start, 0);
      const auto [last, is_first] = end_of_row.try_emplace(tid, end);
      if (!is_first) {
        EXPECT_GE(start, last->second) << slice << " on " << row_of(slice);
        last->second = end;
      }
      spans[tid].emplace_back(start, end);
    }
    std::map<std::uint64_t, json> starts;
    for (const json& start : events("s")) EXPECT_TRUE(starts.emplace(start.at("id"), start).second);
    std::set<std::uint64_t> ends;
    for (const json& end : events("f")) {
      EXPECT_TRUE(ends.insert(end.at("id").get<std::uint64_t>()).second);
      EXPECT_EQ(end.at("bp"), "e");
      ASSERT_TRUE(starts.contains(end.at("id")));
      EXPECT_LE(starts[end.at("id")].at("ts").get<double>(), end.at("ts").get<double>());
    }
    EXPECT_EQ(starts.size(), ends.size());
    for (const char* phase : {"s", "f"}) {
      for (const json& event : events(phase)) {
        const std::int64_t time = truncated_ns(event.at("ts"));
        EXPECT_TRUE(std::ranges::any_of(spans[event.at("tid")], [&](const auto& span) {
          return span.first <= time && time < span.second + 1;
        })) << event;
      }
    }
  }

 private:
  json all_;
  std::map<int, std::string> rows_;
  std::map<int, std::string> processes_;
};

class ChromeExport : public test::TraceTest {
 protected:
  Exported exported(const std::vector<NodeTrace>& traces) {
    summary_ = merge_to_chrome(traces, file("out.json"));
    Exported result(file("out.json"));
    result.expect_sound();
    return result;
  }
  ExportSummary summary_;
};

TEST_F(ChromeExport, NamesProcessesRowsAndSlices) {
  TraceBuilder node0(0, 2);
  node0.thread("MPI progress", 20).message(RecordKind::send, 1, 1500, 1600, 4);
  node0.thread("worker 0", 10).task(1000, 2000, 5, 3).wait(2000, 2500, WaitCause::window_full);
  node0.thread("copy", 15).copy(1200, 1300, 2);
  TraceBuilder node1(1, 2);
  node1.thread("worker 0", 10).task(1100, 1900, 7, 7);

  const Exported trace = exported({node0.trace(), node1.trace()});

  EXPECT_EQ(trace.rows(),
            (std::vector<std::string>{"node 0/worker 0", "node 0/copy", "node 0/copy: copies",
                                      "node 0/MPI progress", "node 0/MPI progress: sends",
                                      "node 1/worker 0"}));
  EXPECT_EQ(trace.names("node 0/worker 0"),
            (std::vector<std::string>{"gsmm (5, 3)", "wait: window full"}));
  EXPECT_EQ(trace.names("node 1/worker 0"), (std::vector<std::string>{"gsmm (7, 7)"}));
  EXPECT_EQ(trace.names("node 0/copy: copies"), (std::vector<std::string>{"copy A (2, 0)"}));
  EXPECT_EQ(trace.names("node 0/MPI progress: sends"), (std::vector<std::string>{"send A (4, 0)"}));
  EXPECT_EQ(summary_.slices, 5U);
}

TEST_F(ChromeExport, TellsCopiesForTasksFromThoseForWantOfRoom) {
  TraceBuilder node(0, 1);
  node.thread("copy", 15).copy(1200, 1300, 2).fetch(1300, 1500, 4);

  const Exported trace = exported({node.trace()});

  EXPECT_EQ(trace.names("node 0/copy: copies"),
            (std::vector<std::string>{"copy A (2, 0)", "fetch A (4, 0)"}));
  const std::vector<json> copies = trace.slices("node 0/copy: copies");
  EXPECT_EQ(copies.at(0).at("args").at("version"), 1);
  const json expected{{"from", "host"}, {"to", "device 0"}, {"bytes", 4096}, {"queued us", 0}};
  EXPECT_EQ(copies.at(1).at("args"), expected);
}

TEST_F(ChromeExport, TellsOfATaskWhatTheGraphNeeds) {
  TraceBuilder node(0, 1);
  node.thread("worker 0").task(1000, 3500, 5, 3);

  const Exported trace = exported({node.trace()});

  const json task = trace.slices("node 0/worker 0").at(0);
  EXPECT_EQ(task.at("cat"), "task");
  EXPECT_DOUBLE_EQ(task.at("dur"), 2.5);
  const json expected{{"job", 0},
                      {"order", 0},
                      {"priority", 0},
                      {"place", "host"},
                      {"accesses", {"read_write A (5, 3) v0 -> v1"}}};
  EXPECT_EQ(task.at("args"), expected);
}

TEST_F(ChromeExport, TellsOfOperationsOfGroups) {
  TraceBuilder node(0, 4);
  node.thread(std::string(collectives_row))
      .collective(1000, 3500, 7)
      .collective(2000, 4000, 8, true);

  const Exported trace = exported({node.trace()});

  const json first = trace.slices("node 0/collectives").at(0);
  EXPECT_EQ(first.at("name"), "all_reduce");
  EXPECT_EQ(first.at("cat"), "collective");
  EXPECT_DOUBLE_EQ(first.at("dur"), 2.5);
  const json expected{{"algorithm", "host \"chain\""},
                      {"group", 3},
                      {"number", 7},
                      {"ranks", 4},
                      {"bytes", 640},
                      {"calls", "host"}};
  EXPECT_EQ(first.at("args"), expected);
  const std::vector<json> beside = trace.slices("node 0/collectives (2)");
  ASSERT_EQ(beside.size(), 1U) << "operations that overlap have rows of their own";
  EXPECT_EQ(beside.at(0).at("args").at("calls"), "stream");
}

TEST_F(ChromeExport, RefusesOperationsOfGroupsWithoutTheirNames) {
  TraceBuilder node(0, 4);
  node.thread(std::string(collectives_row)).collective(1000, 3500, 7);
  node.trace().names.pop_back();
  const std::string error =
      error_of([&] { static_cast<void>(merge_to_chrome({node.trace()}, file("out.json"))); });
  EXPECT_NE(
      error.find("record 0 of thread 'collectives' is corrupt: it has name 3, but there are 3"),
      std::string::npos)
      << error;
}

TEST_F(ChromeExport, TellsWhatWasCopiedAndSent) {
  TraceBuilder node(0, 2);
  node.thread("io").copy(1000, 3000, 2).message(RecordKind::receive, 1, 2000, 3000, 6);

  const Exported trace = exported({node.trace()});

  const json copied{{"job", 0},         {"tile", "A (2, 0)"}, {"version", 1},      {"from", "host"},
                    {"to", "device 0"}, {"bytes", 4096},      {"queued us", 0.002}};
  EXPECT_EQ(trace.slices("node 0/io: copies").at(0).at("args"), copied);
  const json received{{"job", 0},       {"tile", "A (6, 0)"}, {"version", 1},  {"from", "node 1"},
                      {"to", "node 0"}, {"tag", 7},           {"bytes", 8192}, {"queued us", 0.0}};
  EXPECT_EQ(trace.slices("node 0/io: receives").at(0).at("args"), received);
}

TEST_F(ChromeExport, TellsWhichWayMessagesTookAndWhatWasDoneWithTheirFragments) {
  TraceBuilder node(0, 2);
  node.thread("mpi")
      .fragment(FragmentStep::fill, 1000, 2000, 6)
      .fragment(FragmentStep::unpack, 1500, 2500, 6)
      .message(RecordKind::send, 1, 1000, 3000, 6)
      .by_path(6);

  const Exported trace = exported({node.trace()});

  EXPECT_EQ(trace.slices("node 0/mpi: sends").at(0).at("args").at("path"), "ring");
  const json fill = trace.slices("node 0/mpi: fragments").at(0);
  EXPECT_EQ(fill.at("name"), "fill A (6, 0)");
  const json told{{"job", 0},         {"tile", "A (6, 0)"}, {"version", 1},
                  {"peer", "node 1"}, {"begin", 4096},      {"bytes", 1024}};
  EXPECT_EQ(fill.at("args"), told);
  EXPECT_EQ(trace.slices("node 0/mpi: fragments (2)").at(0).at("name"), "unpack A (6, 0)");
}

TEST_F(ChromeExport, HasARowForEachStreamOfADevice) {
  TraceBuilder node(0, 1);
  node.thread("device 0").task(1'000, 5'000, 0, 0).by_stream(2);
  node.task(5'000, 6'000, 1, 0).by_stream(1).task(5'500, 7'000, 2, 0).by_stream(2);
  node.wait(2'000, 4'000, WaitCause::other);

  const Exported trace = exported({node.trace()});

  EXPECT_EQ(trace.slices("node 0/device 0").size(), 1U) << "what its manager waited";
  EXPECT_EQ(trace.slices("node 0/device 0: stream 0").size(), 1U);
  EXPECT_EQ(trace.slices("node 0/device 0: stream 1").size(), 2U);
}

TEST_F(ChromeExport, DrawsAnArrowFromEachSendToItsReceive) {
  TraceBuilder node0(0, 3);
  TraceBuilder node1(1, 3);
  TraceBuilder node2(2, 3);
  node0.thread("MPI")
      .message(RecordKind::send, 1, 100, 200, 4)
      .message(RecordKind::send, 2, 110, 210, 4)
      .message(RecordKind::send, 1, 120, 220, 5);
  node1.thread("MPI")
      .message(RecordKind::receive, 0, 90, 310, 5)
      .message(RecordKind::receive, 0, 90, 300, 4);
  node2.thread("MPI").message(RecordKind::receive, 0, 150, 290, 4);

  const Exported trace = exported({node0.trace(), node1.trace(), node2.trace()});

  EXPECT_EQ(summary_.arrows, 3U);
  std::map<std::uint64_t, std::pair<std::string, std::string>> arrows;
  const auto name_at = [&](const json& end) {
    for (const json& slice : trace.events("X")) {
      if (slice.at("tid") == end.at("tid") && slice.at("ts") <= end.at("ts") &&
          end.at("ts").get<double>() <
              slice.at("ts").get<double>() + slice.at("dur").get<double>()) {
        return trace.row_of(slice).substr(0, 6) + " " + slice.at("name").get<std::string>();
      }
    }
    return std::string("nothing");
  };
  for (const json& end : trace.events("s")) arrows[end.at("id")].first = name_at(end);
  for (const json& end : trace.events("f")) arrows[end.at("id")].second = name_at(end);
  std::set<std::pair<std::string, std::string>> seen;
  for (const auto& [id, arrow] : arrows) seen.insert(arrow);
  EXPECT_EQ(seen, (std::set<std::pair<std::string, std::string>>{
                      {"node 0 send A (4, 0)", "node 1 receive A (4, 0)"},
                      {"node 0 send A (4, 0)", "node 2 receive A (4, 0)"},
                      {"node 0 send A (5, 0)", "node 1 receive A (5, 0)"}}));
}

TEST_F(ChromeExport, LeavesMessagesWithoutPartnerWithoutArrow) {
  TraceBuilder node0(0, 2);
  TraceBuilder node1(1, 2);
  node0.thread("MPI")
      .message(RecordKind::send, 1, 100, 200, 4)
      .message(RecordKind::send, 1, 100, 200, 4, 2);
  node1.thread("MPI")
      .message(RecordKind::receive, 0, 150, 250, 4)
      .message(RecordKind::receive, 0, 150, 250, 8);

  const Exported trace = exported({node0.trace(), node1.trace()});

  EXPECT_EQ(trace.events("X").size(), 4U);
  EXPECT_EQ(summary_.arrows, 1U);
  EXPECT_EQ(summary_.messages_without_partner, 2U);
  EXPECT_EQ(trace.all().at("otherData").at("messages").at("lone sends"), 1);
}

TEST_F(ChromeExport, ReportsMessagesThatArriveBeforeTheyWereSent) {
  TraceBuilder node0(0, 2);
  TraceBuilder node1(1, 2);
  node0.thread("MPI").message(RecordKind::send, 1, 1000, 1100, 4);
  node1.thread("MPI").message(RecordKind::receive, 0, 500, 600, 4);

  EXPECT_TRUE(exported({node0.trace(), node1.trace()}).events("s").empty());
  EXPECT_EQ(summary_.messages_backwards, 1U);

  node1.trace().info.clock_offsets = {{0, 600}};
  EXPECT_EQ(exported({node0.trace(), node1.trace()}).events("s").size(), 1U);
  EXPECT_EQ(summary_.messages_backwards, 0U);
}

TEST_F(ChromeExport, PutsAllTimesOnTheClockOfNode0AndBeginsAtZero) {
  TraceBuilder node0(0, 2);
  TraceBuilder node1(1, 2);
  node0.thread("worker 0").task(7'000'000'500, 7'000'001'000, 0, 0);
  node1.thread("worker 0").task(400, 900, 1, 1);
  node1.trace().info.clock_offsets = {{0, 7'000'000'000}};

  const Exported trace = exported({node0.trace(), node1.trace()});

  EXPECT_EQ(truncated_ns(trace.slices("node 1/worker 0").at(0).at("ts")), 0);
  EXPECT_EQ(truncated_ns(trace.slices("node 0/worker 0").at(0).at("ts")), 100);
}

TEST_F(ChromeExport, GivesOverlappingSlicesRowsOfTheirOwn) {
  TraceBuilder node(0, 2);
  node.thread("MPI", 0)
      .message(RecordKind::send, 1, 100, 400, 1)
      .message(RecordKind::send, 1, 300, 500, 3)
      .message(RecordKind::send, 1, 200, 300, 2)
      .message(RecordKind::send, 1, 400, 600, 4);

  const Exported trace = exported({node.trace()});

  EXPECT_EQ(trace.names("node 0/MPI: sends"),
            (std::vector<std::string>{"send A (1, 0)", "send A (4, 0)"}));
  EXPECT_EQ(trace.names("node 0/MPI: sends (2)"),
            (std::vector<std::string>{"send A (2, 0)", "send A (3, 0)"}));
}

TEST_F(ChromeExport, KeepsSlicesThatTouchOnOneRowInSpiteOfRounding) {
  TraceBuilder node(0, 1);
  node.thread("worker 0");
  std::int64_t time = 1;
  std::mt19937_64 random(1);
  for (int i = 0; i < 20'000; ++i) {
    const auto next = time + 1 + static_cast<std::int64_t>(random() % 1'000'000);
    node.task(time, next, 0, 0);
    time = next;
  }
  const Exported trace = exported({node.trace()});
  EXPECT_EQ(trace.rows().size(), 1U);
  EXPECT_EQ(trace.slices("node 0/worker 0").size(), 20'000U);
}

TEST_F(ChromeExport, CountsReadyTasksPerPlaceInOrderOfTime) {
  TraceBuilder node(0, 1);
  node.thread("worker 0").counter(100, 5).counter(300, 3).counter(150, 1, 2);
  node.thread("worker 1").counter(200, 4);

  const Exported trace = exported({node.trace()});

  std::map<std::string, std::vector<std::pair<std::int64_t, int>>> tracks;
  for (const json& event : trace.events("C")) {
    tracks[event.at("name")].emplace_back(truncated_ns(event.at("ts")),
                                          event.at("args").at("count"));
  }
  using Track = std::vector<std::pair<std::int64_t, int>>;
  EXPECT_EQ(tracks.at("ready tasks, host"), (Track{{0, 5}, {100, 4}, {200, 3}}));
  EXPECT_EQ(tracks.at("ready tasks, device 1"), (Track{{50, 1}}));
}

TEST_F(ChromeExport, EscapesTextsOfAnyKind) {
  const std::string odd = "q\"uote \\ \n\t\x01 \xc3\xa9";
  TraceBuilder node(0, 1);
  node.trace().names[0] = odd;
  node.trace().matrices[0].name = odd;
  node.trace().info.metadata = R"({"command": "a\"b\n"})";
  node.thread(odd).task(0, 10, 1, 2);
  node.thread("not UTF-8 \xff").copy(0, 10, 3);

  const Exported trace = exported({node.trace()});

  EXPECT_EQ(trace.names("node 0/" + odd).at(0), odd + " (1, 2)");
  EXPECT_EQ(trace.slices("node 0/" + odd).at(0).at("args").at("accesses").at(0),
            "read_write " + odd + " (1, 2) v0 -> v1");
  EXPECT_EQ(trace.names("node 0/not UTF-8 \xef\xbf\xbd: copies").at(0), "copy " + odd + " (3, 0)");
  EXPECT_EQ(trace.all().at("otherData").at("nodes").at(0).at("metadata").at("command"), "a\"b\n");
}

TEST_F(ChromeExport, NamesTilesOfUndescribedMatricesByNumber) {
  TraceBuilder node(0, 1);
  node.trace().matrices.clear();
  node.thread("worker 0").task(0, 10, 1, 2).copy(20, 30, 3);
  const Exported trace = exported({node.trace()});
  EXPECT_EQ(trace.names("node 0/worker 0").at(0), "gsmm tile 21");
  EXPECT_EQ(trace.names("node 0/worker 0: copies").at(0), "copy matrix 0 tile 3");
}

TEST_F(ChromeExport, SaysHowManyRecordsWereDroppedWhere) {
  TraceBuilder node(0, 1);
  node.thread("worker 0").task(0, 10, 1, 2);
  node.trace().threads[0].dropped = 42;
  const Exported trace = exported({node.trace()});
  EXPECT_EQ(summary_.records_dropped, 42U);
  EXPECT_EQ(trace.rows().at(0), "node 0/worker 0 [42 records dropped]");
  EXPECT_EQ(trace.all().at("otherData").at("nodes").at(0).at("records dropped"), 42);
}

TEST_F(ChromeExport, OfNothingIsStillATrace) {
  EXPECT_TRUE(exported({}).events("X").empty());
  TraceBuilder node(0, 1);
  node.thread("worker 0");
  EXPECT_EQ(exported({node.trace()}).rows(), std::vector<std::string>{"node 0/worker 0"});
}

TEST_F(ChromeExport, OfZeroLengthSlicesIsSound) {
  TraceBuilder node0(0, 2);
  TraceBuilder node1(1, 2);
  node0.thread("MPI").message(RecordKind::send, 1, 100, 100, 1).task(100, 100, 1, 1);
  node1.thread("MPI").message(RecordKind::receive, 0, 100, 100, 1);
  exported({node0.trace(), node1.trace()});
  EXPECT_EQ(summary_.arrows, 1U);
}

TEST_F(ChromeExport, FromFilesIsTheSameAsFromMemory) {
  TraceBuilder node0(0, 2);
  TraceBuilder node1(1, 2);
  node0.thread("MPI").message(RecordKind::send, 1, 100, 200, 4).counter(3, 3).task(1, 2, 3, 4);
  node1.thread("MPI").message(RecordKind::receive, 0, 100, 200, 4);
  write_node_file(file("t.node0"), node0.trace());
  write_node_file(file("t.node1"), node1.trace());

  merge_to_chrome({file("t.node0"), file("t.node1")}, file("from_files.json"));

  exported({node0.trace(), node1.trace()});
  EXPECT_EQ(contents(file("from_files.json")), contents(file("out.json")));
}

TEST_F(ChromeExport, NamesTheNodeFileThatIsCorruptAndLeavesTheOldOutput) {
  TraceBuilder node0(0, 2);
  node0.thread("worker 0").task(1, 2, 3, 4);
  write_node_file(file("t.node0"), node0.trace());
  const std::string whole = contents(file("t.node0"));
  replace_contents(file("t.node1"), whole.substr(0, whole.size() - 10));
  replace_contents(file("out.json"), "old");

  const std::string error = error_of([&] {
    merge_to_chrome({file("t.node0"), file("t.node1")}, file("out.json"));
  });

  EXPECT_NE(error.find("t.node1'"), std::string::npos) << error;
  EXPECT_EQ(contents(file("out.json")), "old");
  EXPECT_EQ(files_in_folder().size(), 3U);
}

TEST_F(ChromeExport, RefusesTwoTracesOfOneNodeAndTracesOfDifferentRuns) {
  const std::vector<NodeTrace> twice{TraceBuilder(1, 2).trace(), TraceBuilder(1, 2).trace()};
  EXPECT_NE(error_of([&] { merge_to_chrome(twice, file("out.json")); }).find("both of node 1"),
            std::string::npos);
  const std::vector<NodeTrace> mixed{TraceBuilder(0, 2).trace(), TraceBuilder(1, 4).trace()};
  EXPECT_NE(error_of([&] { merge_to_chrome(mixed, file("out.json")); }).find("4 nodes"),
            std::string::npos);
  EXPECT_TRUE(files_in_folder().empty());
}

/// Prints, and does not judge: other processes use the same cores.
TEST_F(ChromeExport, SaysHowLongAMillionRecordsTake) {
  std::vector<NodeTrace> traces;
  for (int n = 0; n < 2; ++n) {
    TraceBuilder node(n, 2);
    node.thread("worker 0");
    for (std::int64_t i = 0; i < 200'000; ++i) {
      node.task(1000 * i, 1000 * i + 1000, static_cast<std::int32_t>(i % 10), 5);
    }
    node.thread("MPI");
    for (std::int64_t i = 0; i < 100'000; ++i) {
      node.message(n == 0 ? RecordKind::send : RecordKind::receive, 1 - n, 2000 * i + n,
                   2000 * i + 5000 + n, 3, static_cast<std::int32_t>(i));
    }
    traces.push_back(node.trace());
  }
  const std::int64_t start = now_ns();
  summary_ = merge_to_chrome(traces, file("out.json"));
  const double seconds = static_cast<double>(now_ns() - start) * 1e-9;
  EXPECT_EQ(summary_.arrows, 100'000U);
  fmt::print("1 M records ({} slices, {} arrows) exported in {:.2f} s, {} MB\n", summary_.slices,
             summary_.arrows, seconds, std::filesystem::file_size(file("out.json")) / 1'000'000);
}

}  // namespace
}  // namespace heddle::trace
