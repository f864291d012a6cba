#include "node-runtime/trace/recorder.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <string>
#include <thread>
#include <vector>

#include "node-runtime/trace/node_trace.hpp"
#include "tests/trace/trace_fixture.hpp"

namespace heddle::trace {
namespace {

RecorderOptions switched_on(std::size_t records_max = 1 << 18) {
  return {
      .node = NodeId(0), .node_count = 1, .enabled = true, .records_per_thread_max = records_max};
}

TaskRecord task_of(NameId kernel, std::uint64_t order, std::int64_t start, std::int64_t end) {
  return {.kernel = kernel,
          .job = 3,
          .order = order,
          .start_ns = start,
          .end_ns = end,
          .tile = {1, 7},
          .priority = -4};
}

const std::array<TileAccess, 5> five_accesses{{
    {.mode = AccessMode::read, .tile = {1, 2}, .version = Version(3)},
    {.mode = AccessMode::read, .tile = {1, 3}, .version = Version(4)},
    {.mode = AccessMode::read_write, .tile = {1, 7}, .version = Version(5)},
    {.mode = AccessMode::write, .tile = {2, 0}, .version = Version(0)},
    {.mode = AccessMode::write, .tile = {2, 1}, .version = Version(1)},
}};

TEST(Recorder, KeepsATaskWithAllItsAccesses) {
  Recorder recorder(switched_on());
  ThreadTrace& thread = recorder.thread("worker 0", 1);
  const NameId gsmm = recorder.intern("gsmm");

  thread.task(task_of(gsmm, 17, 100, 150), five_accesses);

  const NodeTrace trace = collect(recorder, {});
  ASSERT_EQ(trace.threads.size(), 1U);
  ASSERT_EQ(trace.threads[0].records.size(), 3U);
  const auto task = trace.threads[0].records[0].as<TaskRecord>();
  EXPECT_EQ(trace.names.at(task.kernel.value()), "gsmm");
  EXPECT_EQ(task.order, 17U);
  EXPECT_EQ(task.tile, (Tile{1, 7}));
  EXPECT_EQ(task.priority, -4);
  EXPECT_EQ(task.end_ns - task.start_ns, 50);
  ASSERT_EQ(task.access_count, 5);
  for (std::size_t i = 0; i < 5; ++i) {
    const TileAccess access = trace.threads[0].records[1 + i / 4].as<AccessRecord>()[i % 4];
    EXPECT_EQ(access.kind, RecordKind::access);
    EXPECT_EQ(access.tile, five_accesses[i].tile);
    EXPECT_EQ(access.version, five_accesses[i].version);
    EXPECT_EQ(access.mode, five_accesses[i].mode);
  }
  EXPECT_EQ(trace.threads[0].records[2].as<AccessRecord>()[1].kind, RecordKind::none);
}

TEST(Recorder, KeepsTheOrderOfRecordsAcrossChunks) {
  constexpr std::size_t tasks = ThreadTrace::chunk_records;  // with accesses more than two chunks
  Recorder recorder(switched_on());
  ThreadTrace& thread = recorder.thread("worker 0", 0);
  for (std::size_t i = 0; i < tasks; ++i) {
    thread.task(task_of(NameId{}, i, 0, 1), five_accesses);
  }

  const NodeTrace trace = collect(recorder, {});

  EXPECT_EQ(thread.recorded(), 3 * tasks);
  EXPECT_EQ(thread.dropped(), 0U);
  ASSERT_EQ(trace.threads[0].records.size(), 3 * tasks);
  for (std::size_t i = 0; i < tasks; ++i) {
    ASSERT_EQ(trace.threads[0].records[3 * i].as<TaskRecord>().order, i);
  }
}

TEST(Recorder, CountsWhatFindsNoRoomAndKeepsWhatCameBefore) {
  Recorder recorder(switched_on(10));
  ThreadTrace& thread = recorder.thread("worker 0", 0);
  for (std::uint64_t i = 0; i < 5; ++i) {
    thread.task(task_of(NameId{}, i, 10, 20), five_accesses);  // three records each
  }

  EXPECT_EQ(thread.recorded(), 9U);
  EXPECT_EQ(thread.dropped(), 6U);
  EXPECT_EQ(recorder.dropped(), 6U);
  EXPECT_EQ(thread.totals(), (ThreadTotals{.busy_ns = 50, .waiting_ns = 0, .tasks = 5}));
  EXPECT_EQ(collect(recorder, {}).threads[0].dropped, 6U);
}

TEST(Recorder, NeverKeepsMoreThanItsCapacity) {
  constexpr std::size_t capacity = ThreadTrace::chunk_records + 100;
  Recorder recorder(switched_on(capacity));
  ThreadTrace& thread = recorder.thread("worker 0", 0);
  for (std::size_t i = 0; i < 2 * capacity; ++i) thread.wait(WaitCause::other, 0, 1);
  EXPECT_EQ(thread.recorded(), capacity);
  EXPECT_EQ(thread.dropped(), capacity);
}

TEST(Recorder, SwitchedOffKeepsOnlyTheTotals) {
  Recorder recorder(RecorderOptions{});
  ThreadTrace& thread = recorder.thread("worker 0", 0);
  thread.warm_up();
  bool asked = false;

  thread.task(task_of(thread.kernel_name(&recorder, "gsmm"), 0, 10, 30), 1, [&](std::size_t) {
    asked = true;
    return TileAccess{};
  });
  thread.wait(WaitCause::message, 30, 35);
  thread.copy({.start_ns = 1, .end_ns = 2});
  thread.message({.start_ns = 1, .end_ns = 2});
  thread.counter(NameId{}, host_place, 5, 5);
  thread.add_busy(100);

  EXPECT_FALSE(asked);
  EXPECT_EQ(thread.totals(), (ThreadTotals{.busy_ns = 120, .waiting_ns = 5, .tasks = 1}));
  EXPECT_EQ(thread.recorded(), 0U);
  EXPECT_EQ(thread.dropped(), 0U);
  EXPECT_TRUE(recorder.names().empty());
}

TEST(Recorder, GivesTheSameNameTheSameId) {
  Recorder recorder(switched_on());
  ThreadTrace& a = recorder.thread("worker 0", 0);
  ThreadTrace& b = recorder.thread("worker 1", 0);
  // More kernels than a thread remembers.
  const std::vector<std::array<char, 64>> kernels(200);
  for (int round = 0; round < 2; ++round) {
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      const std::string text = fmt::format("kernel {}", i);
      const NameId id = a.kernel_name(kernels.data() + i, text);
      EXPECT_EQ(b.kernel_name(kernels.data() + i, text), id);
      EXPECT_EQ(recorder.intern(text), id);
      EXPECT_EQ(recorder.names().at(id.value()), text);
    }
  }
  EXPECT_EQ(recorder.names().size(), kernels.size());
}

TEST(Recorder, LetsSeveralThreadsRecordWhileAnotherReads) {
  constexpr std::uint64_t tasks = 20'000;
  constexpr int thread_count = 4;
  Recorder recorder(switched_on());
  std::atomic<int> running{thread_count};
  std::vector<std::jthread> threads;
  threads.reserve(thread_count);
  for (int t = 0; t < thread_count; ++t) {
    threads.emplace_back([&recorder, &running, t] {
      ThreadTrace& mine = recorder.thread(fmt::format("worker {}", t), t);
      mine.warm_up();
      static const char kernel = 0;
      for (std::uint64_t i = 0; i < tasks; ++i) {
        mine.task(task_of(mine.kernel_name(&kernel, "potrf"), i, 0, 1), five_accesses);
      }
      running.fetch_sub(1, std::memory_order_release);
    });
  }

  int readings = 0;
  // Acquire: pairs with the release above, so that the last reading is complete.
  for (bool last = false; !last; ++readings) {
    last = running.load(std::memory_order_acquire) == 0;
    const NodeTrace trace = collect(recorder, {});
    EXPECT_NO_THROW(check(trace, "trace"));
    for (const ThreadRecords& thread : trace.threads) {
      ASSERT_EQ(thread.records.size() % 3, 0U);
      for (std::size_t i = 0; i < thread.records.size(); i += 3) {
        ASSERT_EQ(thread.records[i].as<TaskRecord>().order, i / 3);
      }
    }
    if (last) {
      ASSERT_EQ(trace.threads.size(), std::size_t{thread_count});
      for (const ThreadRecords& thread : trace.threads) {
        EXPECT_EQ(thread.records.size(), 3 * tasks);
        EXPECT_EQ(thread.totals.tasks, tasks);
      }
    }
  }
  EXPECT_GE(readings, 1);
}

/// Prints, and does not judge: other processes use the same cores.
TEST(Recorder, GivesTheRoomOfReleasedRecordsBack) {
  Recorder recorder(switched_on(3 * ThreadTrace::chunk_records));
  ThreadTrace& thread = recorder.thread("worker 0", 0);
  std::uint64_t next = 0;
  std::uint64_t expected = 0;
  for (int round = 0; round < 50; ++round) {
    for (std::size_t i = 0; i < ThreadTrace::chunk_records + 100; ++i) {
      thread.task({.order = next++}, {});
    }
    std::size_t there = 0;
    thread.for_each_run([&](std::span<const Record> run) {
      for (const Record& record : run) ASSERT_EQ(record.as<TaskRecord>().order, expected++);
      there += run.size();
    });
    ASSERT_EQ(expected, next);
    thread.release(there);
    ASSERT_EQ(thread.recorded(), 0U);
  }
  EXPECT_EQ(thread.dropped(), 0U);
}

TEST(Recorder, ReleasesAsMuchAsItIsToldTo) {
  Recorder recorder(switched_on());
  ThreadTrace& thread = recorder.thread("worker 0", 0);
  for (std::uint64_t i = 0; i < 3 * ThreadTrace::chunk_records; ++i) thread.task({.order = i}, {});
  std::uint64_t released = 0;
  for (const std::size_t count : {std::size_t{1}, ThreadTrace::chunk_records - 1, std::size_t{7},
                                  ThreadTrace::chunk_records, std::size_t{0}}) {
    thread.release(count);
    released += count;
    std::uint64_t first = released;
    thread.for_each_run([&](std::span<const Record> run) {
      for (const Record& record : run) ASSERT_EQ(record.as<TaskRecord>().order, first++);
    });
    EXPECT_EQ(first, 3 * ThreadTrace::chunk_records);
  }
}

TEST(Recorder, LetsAReaderReleaseWhileItsOwnerRecords) {
  Recorder recorder(switched_on(2 * ThreadTrace::chunk_records));
  ThreadTrace& thread = recorder.thread("worker 0", 0);
  constexpr std::uint64_t tasks = 400'000;
  std::atomic<bool> has_released{false};
  std::thread owner([&] {
    for (std::uint64_t i = 0; i < tasks; ++i) {
      // Once full it waits for the reader, so that there is something to see after that.
      if (i == 2 * ThreadTrace::chunk_records) has_released.wait(false);
      thread.task({.order = i}, {});
    }
  });
  std::uint64_t seen = 0;
  std::uint64_t last = 0;
  bool is_in_order = true;
  while (seen + thread.dropped() < tasks) {
    std::size_t there = 0;
    thread.for_each_run([&](std::span<const Record> run) {
      for (const Record& record : run) {
        const std::uint64_t order = record.as<TaskRecord>().order + 1;
        is_in_order = is_in_order && order > last;
        last = order;
      }
      there += run.size();
    });
    thread.release(there);
    seen += there;
    const bool has_room = seen > ThreadTrace::chunk_records;  // of a whole chunk
    if (has_room && !has_released.exchange(true)) has_released.notify_one();
  }
  owner.join();
  EXPECT_TRUE(is_in_order);
  EXPECT_EQ(seen + thread.dropped(), tasks);
  EXPECT_GT(seen, 2 * ThreadTrace::chunk_records);
}

TEST(Recorder, SaysWhatARecordCosts) {
  const auto measure = [](bool enabled, bool read_clock) {
    constexpr std::size_t tasks = 100'000;
    double best = 1e9;
    for (int repeat = 0; repeat < 5; ++repeat) {
      Recorder recorder({.enabled = enabled, .records_per_thread_max = 2 * tasks + 64});
      ThreadTrace& thread = recorder.thread("worker 0", 0);
      const std::int64_t before = now_ns();
      for (std::size_t i = 0; i < tasks; ++i) {
        const std::int64_t start = read_clock ? now_ns() : 1;
        const std::int64_t end = read_clock ? now_ns() : 2;
        thread.task(task_of(NameId{}, i, start, end), 3,
                    [](std::size_t k) { return five_accesses[k]; });
      }
      best = std::min(best, static_cast<double>(now_ns() - before) / tasks);
      EXPECT_EQ(thread.dropped(), 0U);
    }
    return best;
  };
  fmt::print(
      "task of 3 accesses (2 records): {:.1f} ns with two clock reads, {:.1f} ns without; "
      "off: {:.1f} ns with two clock reads, {:.1f} ns without\n",
      measure(true, true), measure(true, false), measure(false, true), measure(false, false));

  constexpr std::size_t warm = ThreadTrace::chunk_records;
  Recorder recorder(switched_on(warm));
  ThreadTrace& thread = recorder.thread("worker 0", 0);
  thread.warm_up();
  const std::int64_t before = now_ns();
  for (std::size_t i = 0; i < warm; ++i) thread.wait(WaitCause::other, 1, 2);
  fmt::print("one record into memory that is present: {:.1f} ns\n",
             static_cast<double>(now_ns() - before) / warm);
  EXPECT_EQ(thread.recorded(), warm);
}

}  // namespace
}  // namespace heddle::trace
