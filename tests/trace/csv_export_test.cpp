#include "node-runtime/trace/csv_export.hpp"

#include <gtest/gtest.h>
#include <sstream>
#include <string>
#include <vector>

#include "tests/trace/trace_fixture.hpp"

namespace heddle::trace {
namespace {

using test::contents;
using test::error_of;
using test::TraceBuilder;

class CsvExport : public test::TraceTest {
 protected:
  [[nodiscard]] std::vector<std::string> lines_of(const std::vector<NodeTrace>& traces) const {
    const std::uint64_t written = write_csv(traces, file("t.csv"));
    std::istringstream text(contents(file("t.csv")));
    std::vector<std::string> lines;
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    EXPECT_EQ(lines.size(), written + 1);
    return lines;
  }
};

}  // namespace

TEST_F(CsvExport, has_a_line_for_each_record_under_one_that_names_the_columns) {
  TraceBuilder build(0, 2);
  build.thread("worker 0").task(1'000, 3'500, 5, 3).wait(3'500, 4'000, WaitCause::dependency);
  build.thread("copy").copy(2'000, 2'500, 1).fetch(2'600, 2'700, 1);
  build.thread("mpi").message(RecordKind::send, 1, 5'000, 6'000, 4).by_path(3);
  build.message(RecordKind::receive, 1, 5'000, 6'500, 6);
  build.fragment(FragmentStep::pack, 5'100, 5'200, 4).counter(7'000, -8, 1);
  EXPECT_EQ(
      lines_of({build.trace()}),
      (std::vector<std::string>{
          "kind,node,thread,name,job,order,priority,start_us,end_us,matrix,tile,version,from,to,"
          "bytes,stream",
          "task,0,worker 0,gsmm,0,0,0,0.000,2.500,0,35,,,0,,",
          "wait,0,worker 0,dependency,,,,2.500,3.000,,,,,,,",
          "copy,0,copy,copy,0,,,1.000,1.500,0,1,1,0,1,4096,",
          "copy,0,copy,fetch,,,,1.600,1.700,0,1,,0,1,4096,",
          "send,0,mpi,shared,0,,,4.000,5.000,0,4,1,0,1,8192,",
          "receive,0,mpi,unknown,0,,,4.000,5.500,0,6,1,1,0,8192,",
          "fragment,0,mpi,pack,0,,,4.100,4.200,0,4,1,,,1024,",
          "counter,0,mpi,ready tasks,,,,6.000,6.000,,,,,1,-8,"}));
}

TEST_F(CsvExport, has_operations_of_groups) {
  TraceBuilder build(0, 4);
  build.thread(std::string(collectives_row)).collective(1'000, 3'500, 7);
  EXPECT_EQ(lines_of({build.trace()})[1],
            "collective,0,collectives,all_reduce,,7,,0.000,2.500,,,,,,640,");
}

TEST_F(CsvExport, is_on_the_clock_of_node_0) {
  TraceBuilder first(0, 2);
  first.thread("worker 0").task(10'000, 11'000, 0, 0);
  TraceBuilder second(1, 2);
  second.thread("worker 0").task(1'000, 2'000, 0, 0);
  second.trace().info.clock_offsets = {{0, 12'000}};
  const auto lines = lines_of({first.trace(), second.trace()});
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_NE(lines[1].find(",0.000,1.000,"), std::string::npos) << lines[1];
  EXPECT_NE(lines[2].find("task,1,"), std::string::npos) << lines[2];
  EXPECT_NE(lines[2].find(",3.000,4.000,"), std::string::npos) << lines[2];
}

TEST_F(CsvExport, quotes_what_would_be_several_fields) {
  TraceBuilder build(0, 1);
  build.thread("a, \"b\"").wait(0, 1, WaitCause::other);
  EXPECT_EQ(lines_of({build.trace()})[1], "wait,0,\"a, \"\"b\"\"\",other,,,,0.000,0.001,,,,,,,");
}

TEST_F(CsvExport, of_nothing_has_the_first_line) {
  EXPECT_EQ(lines_of({}).size(), 1U);
}

TEST_F(CsvExport, in_a_folder_that_is_missing_is_an_error_that_names_it) {
  const std::string error =
      error_of([&] { static_cast<void>(write_csv({}, file("nowhere/t.csv"))); });
  EXPECT_NE(error.find("nowhere/t.csv"), std::string::npos) << error;
}

}  // namespace heddle::trace
