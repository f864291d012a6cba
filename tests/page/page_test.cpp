#include "apps/page/page.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "apps/page/items.hpp"
#include "base/error.hpp"
#include "replay/analysis.hpp"
#include "replay/idleness.hpp"
#include "tests/page/cholesky_run.hpp"
#include "tests/page/page_reader.hpp"
#include "tests/replay/run_builder.hpp"
#include "tests/trace/trace_fixture.hpp"

namespace heddle::page {
namespace {

using nlohmann::json;
using replay::test::changes;
using replay::test::reads;
using replay::test::RunBuilder;
using test::CholeskyRun;
using test::DecodedTasks;

class PageTest : public trace::test::TraceTest {
 protected:
  struct Written {
    std::string text;
    PageSummary summary;
  };

  [[nodiscard]] Written write(const std::vector<const replay::RunTrace*>& runs,
                              std::uint64_t bytes_max = PageOptions().bytes_max) {
    Page page(file("page.html").string(), {.runs = runs.size(), .bytes_max = bytes_max});
    for (const auto* const run : runs) {
      page.add(*run, replay::analyze(*run, 0), {{"run", run->source}, {"seconds", 1}});
    }
    Written written;
    written.summary = page.write();
    std::ifstream in(file("page.html"), std::ios::binary);
    written.text.assign(std::istreambuf_iterator<char>(in), {});
    EXPECT_EQ(written.text.size(), written.summary.bytes);
    return written;
  }
  [[nodiscard]] static DecodedTasks tasks_of(const std::string& page, std::size_t run,
                                             const replay::RunTrace& trace) {
    return test::decode_tasks(test::part_of(page, run, "tasks").value(), trace.threads.size());
  }
};

std::int64_t origin_of(const replay::RunTrace& run) {
  return run.makespan().value().start_ns;
}

/// Begin and end, sorted, of the tasks of a thread.
std::vector<std::pair<std::int64_t, std::int64_t>> times_of(const replay::RunTrace& run,
                                                            std::size_t thread) {
  std::vector<std::pair<std::int64_t, std::int64_t>> times;
  for (const replay::Task& task : run.tasks) {
    if (static_cast<std::size_t>(task.thread.value()) != thread) continue;
    times.emplace_back(task.time.start_ns - origin_of(run), task.time.end_ns - origin_of(run));
  }
  std::ranges::sort(times);
  return times;
}

}  // namespace

TEST_F(PageTest, has_every_task_as_it_was) {
  const auto run = replay::make_run("a run", CholeskyRun(12, 3, 2).nodes());
  const std::string page = write({&run}).text;
  const DecodedTasks tasks = tasks_of(page, 0, run);
  ASSERT_EQ(tasks.thread.size(), run.tasks.size());
  std::size_t i = 0;
  for (std::size_t t = 0; t < run.threads.size(); ++t) {
    for (const auto& [start, end] : times_of(run, t)) {
      ASSERT_EQ(tasks.thread[i], t);
      EXPECT_EQ(tasks.start_ns[i], start);
      EXPECT_EQ(tasks.end_ns[i], end);
      EXPECT_EQ(tasks.count[i], 1);
      ++i;
    }
  }
  const auto details = test::decode_details(test::part_of(page, 0, "details").value(), tasks);
  const auto accesses =
      test::decode_accesses(test::part_of(page, 0, "accesses").value(), tasks, details, {{0, 12}});
  for (std::size_t k = 0; k < tasks.thread.size(); ++k) {
    const auto found = std::ranges::find_if(run.tasks, [&](const replay::Task& task) {
      return static_cast<std::int64_t>(task.order) == details.order[k];
    });
    ASSERT_NE(found, run.tasks.end());
    EXPECT_EQ(found->time.start_ns - origin_of(run), tasks.start_ns[k]);
    EXPECT_EQ(found->tile.index, details.tile[k]);
    EXPECT_EQ(found->tile.matrix, details.matrix[k]);
    EXPECT_EQ(found->priority, details.priority[k]);
    EXPECT_EQ(found->job, details.job[k]);
    EXPECT_EQ(static_cast<std::int64_t>(found->kernel.value()), tasks.kernel[k]);
    const auto known = run.accesses_of(*found);
    ASSERT_EQ(accesses[k].size(), known.size());
    for (std::size_t a = 0; a < known.size(); ++a) {
      EXPECT_EQ(accesses[k][a].tile, known[a].tile);
      EXPECT_EQ(accesses[k][a].version, known[a].version);
      EXPECT_EQ(accesses[k][a].mode, known[a].mode);
    }
  }
}

TEST_F(PageTest, tells_which_stream_of_a_device_ran_a_task_and_draws_each_for_itself) {
  RunBuilder build(1, 1);
  build.nodes()[0].threads[0].name = "device 0";
  build.task(0, 0, "a", 0, 50, {changes(0, 0)}).by_stream(0, 0, 2);
  build.task(0, 0, "b", 10, 60, {changes(1, 0)}).by_stream(0, 0, 1);
  build.task(0, 0, "c", 50, 70, {changes(2, 0)}).by_stream(0, 0, 2);
  const replay::RunTrace run = build.run();
  const DecodedTasks tasks = tasks_of(write({&run}).text, 0, run);
  EXPECT_EQ(tasks.stream, (std::vector<std::int64_t>{2, 1, 2}));
  // Where all that began in the same 100 us is one item, those of the two streams are two.
  const std::vector<Item> items = items_of(run, 100'000);
  ASSERT_EQ(items.size(), 2U);
  EXPECT_EQ(items[0].stream, 2);
  EXPECT_EQ(items[0].count, 2);
  EXPECT_EQ(items[0].busy_ns, 70'000);
  EXPECT_EQ(items[1].stream, 1);
  EXPECT_EQ(items[1].count, 1);
}

TEST_F(PageTest, links_fine_tasks_to_each_other_and_to_what_the_divided_task_reads_and_writes) {
  RunBuilder build(1, 2);
  build.task(0, 0, "a", 0, 10, {changes(0, 0)});
  build.divided(0, "b", 12, 60, {changes(1, 4), reads(0, 1)},
                {{0, 12, 30, 0}, {1, 12, 25, 0}, {1, 30, 60, 1}});
  const replay::RunTrace run = build.run();
  const std::string page = write({&run}).text;
  const DecodedTasks tasks = tasks_of(page, 0, run);
  const auto details = test::decode_details(test::part_of(page, 0, "details").value(), tasks);
  const auto accesses =
      test::decode_accesses(test::part_of(page, 0, "accesses").value(), tasks, details, {});
  // Worker 0: a, and the first one; worker 1: the second and the third one.
  EXPECT_EQ(details.fine, (std::vector<std::int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(details.last, (std::vector<std::int64_t>{0, 0, 0, 1}));
  using trace::AccessMode;
  using Modes = std::vector<std::pair<std::int32_t, AccessMode>>;
  const auto modes = [&](std::size_t task) {
    Modes all;
    for (const replay::Access& one : accesses[task]) all.emplace_back(one.tile.index, one.mode);
    return all;
  };
  for (const std::size_t first : {1U, 2U}) {
    EXPECT_EQ(modes(first), (Modes{{1, AccessMode::read}, {0, AccessMode::read}}));
    EXPECT_EQ(accesses[first][0].version, Version(4));
  }
  EXPECT_EQ(modes(3), (Modes{{1, AccessMode::write}}));
  EXPECT_EQ(accesses[3][0].version, Version(4)) << "which it replaces";
}

TEST_F(PageTest, keeps_accesses_of_other_matrices_and_of_unknown_ones) {
  RunBuilder build(1, 1);
  build.task(0, 0, "a", 0, 10, {changes(3, 0), reads(7, 2), reads(1, 5)});
  build.task(0, 0, "a", 10, 20, {changes(2, 4), reads(9, 1)});
  replay::RunTrace run = build.run();
  run.accesses[1].tile.matrix = 5;
  run.accesses[2].tile = {-1, -1};
  const std::string page = write({&run}).text;
  const DecodedTasks tasks = tasks_of(page, 0, run);
  const auto details = test::decode_details(test::part_of(page, 0, "details").value(), tasks);
  const auto accesses =
      test::decode_accesses(test::part_of(page, 0, "accesses").value(), tasks, details, {});
  for (std::size_t i = 0; i < 2; ++i) {
    const auto known = run.accesses_of(run.tasks[i]);
    ASSERT_EQ(accesses[i].size(), known.size());
    for (std::size_t a = 0; a < known.size(); ++a) EXPECT_EQ(accesses[i][a].tile, known[a].tile);
  }
}

TEST_F(PageTest, tells_the_same_idle_time_as_the_analysis) {
  const auto run = replay::make_run("a run", CholeskyRun(9, 2, 2).nodes());
  const replay::Analysis analysis = replay::analyze(run, 0);
  test::ColumnReader reader(test::part_of(write({&run}).text, 0, "idle").value());
  const auto counts = reader.column(run.threads.size());
  const auto all = static_cast<std::size_t>(std::reduce(counts.begin(), counts.end()));
  ASSERT_GT(all, 0U);
  const auto starts = reader.column(all);
  const auto lengths = reader.column(all);
  const auto causes = reader.column(all);
  EXPECT_TRUE(reader.at_end());
  std::size_t i = 0;
  for (const replay::ThreadTime& time : analysis.threads) {
    std::array<std::int64_t, replay::idle_cause_count> idle_ns{};
    const auto thread = static_cast<std::size_t>(time.thread.value());
    std::int64_t now = 0;
    for (std::int64_t k = 0; k < counts[thread]; ++k, ++i) {
      now += starts[i] + lengths[i];
      idle_ns.at(static_cast<std::size_t>(causes[i])) += lengths[i];
    }
    EXPECT_LE(now, analysis.span.ns());
    const auto runtime = static_cast<std::size_t>(replay::IdleCause::runtime);
    idle_ns.at(runtime) = time.idle_ns.at(runtime);  // it is what is left
    EXPECT_EQ(idle_ns, time.idle_ns);
  }
  EXPECT_EQ(i, all);
}

TEST_F(PageTest, knows_who_sent_what_to_whom_and_how_many_tasks_were_ready) {
  RunBuilder build(2, 1);
  build.task(0, 0, "make", 0, 100, {changes(0, 0)});
  build.message(0, 1, 0, 1, 110, 150, 5);
  build.copy(1, 0, 1, PlaceId{1}, 150, 170);
  build.task(1, 0, "use", 180, 200, {changes(1, 0), reads(0, 1)});
  build.counter(0, "ready tasks", 50, 4).counter(0, "ready tasks", 100, 2);
  const replay::RunTrace run = build.run();
  const json facts = json::parse(test::part_of(write({&run}).text, 0, "facts").value());
  EXPECT_EQ(facts.at("traffic").at("places"), json::parse("[[0,0],[1,0],[1,1]]"));
  EXPECT_EQ(facts.at("traffic").at("flows"), json::parse("[[0,1,1,4096],[1,2,1,4096]]"));
  EXPECT_EQ(facts.at("span"), json::parse("[0,200000]"));
  const json& series = facts.at("counters").at(0);
  EXPECT_EQ(series.at("name"), "ready tasks");
  const std::size_t buckets = series.at("mean").size();
  EXPECT_EQ(series.at("mean").at(buckets / 8), 0) << "before the first value";
  EXPECT_EQ(series.at("mean").at(buckets * 3 / 8), 4) << "until it changed";
  EXPECT_EQ(series.at("most").at(buckets * 3 / 4), 2);
  EXPECT_EQ(facts.at("path").size(), 2U);
  std::set<std::string> causes = facts.at("causes");
  EXPECT_EQ(causes.size(), replay::idle_cause_count);
}

TEST_F(PageTest, counts_how_long_kernels_took_in_a_histogram) {
  RunBuilder build(1, 1);
  for (std::int32_t i = 0; i < 50; ++i) {
    const std::int64_t start_us = std::int64_t{100} * i;
    build.task(0, 0, "a", start_us, start_us + 10 + i % 3, {changes(i, 0)});
  }
  build.task(0, 0, "a", 9000, 9500, {changes(50, 0)});
  const replay::RunTrace run = build.run();
  const json facts = json::parse(test::part_of(write({&run}).text, 0, "facts").value());
  const json& one = facts.at("histograms").at(0);
  const std::vector<std::int64_t> counts = one.at("counts");
  EXPECT_EQ(std::reduce(counts.begin(), counts.end()), 51);
  EXPECT_EQ(counts.back(), 1);
  EXPECT_EQ(one.at("least_us"), 10);
  EXPECT_EQ(one.at("most_us"), 500);
}

TEST_F(PageTest, loads_nothing_and_no_name_ends_its_parts) {
  RunBuilder build(1, 1);
  build.task(0, 0, "</script><script>alert(1)</script>", 0, 10, {changes(0, 0)});
  const auto run = replay::make_run("</script><img src=x>", build.nodes());
  const std::string page = write({&run, &run}).text;
  EXPECT_EQ(page.find("alert(1)"), std::string::npos);
  EXPECT_EQ(page.find("<img"), std::string::npos);
  for (const char* const word :
       {"src=", "href=", "@import", "url(", "fetch(", "XMLHttpRequest", "import("}) {
    EXPECT_EQ(page.find(word), std::string::npos) << word;
  }
  // The only address is the name of SVG's elements.
  std::string rest = page;
  const std::string svg = "'http://www.w3.org/2000/svg'";
  const std::size_t at = rest.find(svg);
  ASSERT_NE(at, std::string::npos);
  rest.erase(at, svg.size());
  EXPECT_EQ(rest.find("://"), std::string::npos) << rest.substr(rest.find("://") - 40, 80);
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
  const json facts = json::parse(test::part_of(page, 1, "facts").value());
  EXPECT_EQ(facts.at("figures").at("run"), "</script><img src=x>");
  EXPECT_EQ(facts.at("names").at(0), "</script><script>alert(1)</script>");
}

TEST_F(PageTest, leaves_out_what_finds_no_room_and_says_so) {
  const auto run = replay::make_run("a run", CholeskyRun(60, 2, 2).nodes());
  const std::uint64_t whole = write({&run}).summary.bytes;
  EXPECT_TRUE(write({&run}).summary.left_out.empty());
  const auto parts = [](const Written& written) {
    return test::index_of(written.text).at("runs").at(0).at("parts");
  };
  const Written less = write({&run}, whole - 2000);
  EXPECT_LE(less.summary.bytes, whole - 2000);
  EXPECT_EQ(parts(less), json::parse(R"(["facts","tasks","idle","details","transfers"])"));
  ASSERT_EQ(less.summary.left_out.size(), 1U);
  EXPECT_EQ(test::index_of(less.text).at("runs").at(0).at("left_out").at(0),
            less.summary.left_out[0]);
}

TEST_F(PageTest, draws_tasks_together_that_are_too_many) {
  const auto run = replay::make_run("a run", CholeskyRun(40, 2, 2).nodes());
  const std::uint64_t frame = write({&run}).text.find("<script type=\"text/plain\"") +
                              write({&run}).text.size() -
                              write({&run}).text.find("<script type=\"module\"");
  const Written written = write({&run}, frame + 24'000);
  EXPECT_LE(written.summary.bytes, frame + 24'000);
  const DecodedTasks tasks = tasks_of(written.text, 0, run);
  EXPECT_LT(tasks.thread.size(), run.tasks.size());
  EXPECT_GT(tasks.thread.size(), 100U);
  EXPECT_EQ(std::reduce(tasks.count.begin(), tasks.count.end()),
            static_cast<std::int64_t>(run.tasks.size()));
  std::int64_t busy_ns = 0;
  for (const replay::Task& task : run.tasks) busy_ns += task.time.ns();
  EXPECT_EQ(std::reduce(tasks.busy_ns.begin(), tasks.busy_ns.end()), busy_ns);
  EXPECT_FALSE(test::part_of(written.text, 0, "accesses").has_value());
  EXPECT_FALSE(written.summary.left_out.empty());
}

TEST_F(PageTest, says_why_it_cannot_be_written_before_anything_is_read) {
  try {
    const Page page(file("nowhere/page.html").string());
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    EXPECT_NE(std::string(error.what()).find("nowhere/page.html"), std::string::npos)
        << error.what();
  }
}

TEST_F(PageTest, is_there_whole_or_not_at_all) {
  { const Page page(file("page.html").string()); }
  EXPECT_FALSE(std::filesystem::exists(file("page.html")));
}

}  // namespace heddle::page
