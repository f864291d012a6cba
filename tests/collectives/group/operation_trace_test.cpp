#include "node-runtime/collectives/operation_trace.hpp"

#include <gtest/gtest.h>
#include <string>
#include <thread>
#include <vector>

#include "node-runtime/trace/node_trace.hpp"

namespace heddle::collectives {
namespace {

TracedOperation operation(std::int64_t number) {
  return {.operation = "all_reduce",
          .algorithm = "host chain",
          .group = 3,
          .number = number,
          .bytes = 80,
          .ranks = 2,
          .is_on_stream = true,
          .start_ns = trace::now_ns()};
}

}  // namespace

TEST(OperationTrace, records_operations_until_the_node_ends) {
  trace::Recorder recorder({.node = NodeId{1}, .node_count = 2, .enabled = true});
  OperationTrace shown(recorder);
  const std::int64_t before = trace::now_ns();
  shown.add(operation(7));
  shown.close();
  shown.add(operation(8));
  const trace::NodeTrace collected = trace::collect(recorder, {});
  ASSERT_EQ(collected.threads.size(), 1U);
  EXPECT_EQ(collected.threads[0].name, trace::collectives_row);
  ASSERT_EQ(collected.threads[0].records.size(), 1U) << "nothing behind close()";
  const auto record = collected.threads[0].records[0].as<trace::CollectiveRecord>();
  EXPECT_EQ(record.kind, trace::RecordKind::collective);
  EXPECT_EQ(collected.names.at(record.operation.value()), "all_reduce");
  EXPECT_EQ(collected.names.at(record.algorithm.value()), "host chain");
  EXPECT_EQ(record.group, 3);
  EXPECT_EQ(record.number, 7);
  EXPECT_EQ(record.bytes, 80U);
  EXPECT_EQ(record.ranks, 2);
  EXPECT_EQ(record.is_on_stream, 1);
  EXPECT_LE(before, record.start_ns);
  EXPECT_LE(record.start_ns, record.end_ns);
  EXPECT_LE(record.end_ns, trace::now_ns());
}

TEST(OperationTrace, is_used_by_any_thread) {
  trace::Recorder recorder({.enabled = true});
  OperationTrace shown(recorder);
  constexpr int each = 1000;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < each; ++i) shown.add(operation(i));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(trace::collect(recorder, {}).threads[0].records.size(), 3U * each);
}

TEST(OperationTrace, counts_the_bytes_of_a_ranks_own_elements) {
  double memory[8] = {};
  Call call;
  call.kind = CollectiveKind::barrier;
  EXPECT_EQ(bytes_of(call), 0);
  call.kind = CollectiveKind::all_gather;
  call.inputs = {Outgoing{memory, 2, Scalar::float64}};
  call.outputs = {Incoming{memory + 2, 2, Scalar::float64}};
  EXPECT_EQ(bytes_of(call), 16) << "of the block that it gives";
  call.kind = CollectiveKind::scatter;
  call.outputs = {Incoming{memory, 3, Scalar::float64}};
  EXPECT_EQ(bytes_of(call), 24) << "of the block that it gets";
  call.kind = CollectiveKind::broadcast;
  call.inputs.clear();
  EXPECT_EQ(bytes_of(call), 24);
  call.kind = CollectiveKind::all_to_all;
  call.inputs = {Outgoing{memory, 1, Scalar::float64}, Outgoing{memory, 4, Scalar::float64}};
  EXPECT_EQ(bytes_of(call), 40) << "of all buffers";
}

}  // namespace heddle::collectives
