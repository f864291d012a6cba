#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "node-runtime/trace/counter_names.hpp"
#include "node-runtime/trace/node_trace.hpp"
#include "replay/run.hpp"

namespace heddle::replay::test {

/// An access of a task: a tile by its number, and the version that it reads or replaces.
struct Use {
  std::int32_t tile = 0;
  std::int32_t version = 0;
  trace::AccessMode mode = trace::AccessMode::read;
};
[[nodiscard]] inline Use reads(std::int32_t tile, std::int32_t version) {
  return {tile, version, trace::AccessMode::read};
}
/// Makes the version behind this one.
[[nodiscard]] inline Use changes(std::int32_t tile, std::int32_t version) {
  return {tile, version, trace::AccessMode::read_write};
}

/// A run by hand, of nodes with workers. Times in microseconds.
class RunBuilder {
 public:
  RunBuilder(std::int32_t nodes, std::int32_t workers) {
    for (std::int32_t n = 0; n < nodes; ++n) {
      trace::NodeTrace& node = nodes_.emplace_back();
      node.node = NodeId(n);
      node.node_count = nodes;
      node.info.metadata = R"({"run":"a"})";
      for (std::int32_t w = 0; w < workers; ++w) {
        node.threads.push_back({.name = "worker " + std::to_string(w), .sort_order = 10 + w});
      }
      node.threads.push_back({.name = "mpi", .sort_order = 3000});
    }
  }

  /// Tasks come in the order of the sequential program.
  RunBuilder& task(std::int32_t node, std::size_t worker, const std::string& kernel,
                   std::int64_t start_us, std::int64_t end_us, const std::vector<Use>& uses,
                   std::int32_t job = 0) {
    put(thread(node, worker),
        trace::TaskRecord{.access_count = static_cast<std::uint8_t>(uses.size()),
                          .kernel = name(node, kernel),
                          .job = job,
                          .order = order_++,
                          .start_ns = start_us * 1000,
                          .end_ns = end_us * 1000,
                          .tile = {0, uses.empty() ? -1 : uses[0].tile}});
    for (std::size_t first = 0; first < uses.size(); first += trace::accesses_per_record) {
      trace::AccessRecord group;
      group.fill({.kind = trace::RecordKind::none});
      for (std::size_t i = first; i < uses.size() && i < first + group.size(); ++i) {
        group.at(i - first) = {
            .mode = uses[i].mode, .tile = {0, uses[i].tile}, .version = Version(uses[i].version)};
      }
      put(thread(node, worker), group);
    }
    return *this;
  }
  /// The task of before was run by that stream of its device, from 1.
  RunBuilder& by_stream(std::int32_t node, std::size_t worker, std::uint8_t stream) {
    auto& records = thread(node, worker).records;
    auto at = std::prev(records.end());
    while (at->kind() != trace::RecordKind::task) --at;
    auto task = at->as<trace::TaskRecord>();
    task.stream = stream;
    *at = trace::Record::of(task);
    return *this;
  }
  /// The task of before, which a worker has begun at `start_us`, was divided, with these fine
  /// tasks.
  struct Fine {
    std::size_t worker = 0;
    std::int64_t start_us = 0;
    std::int64_t end_us = 0;
    std::uint32_t after = trace::unknown_number;  ///< the last before it, from 1; 0: none
  };
  RunBuilder& divided(std::int32_t node, const std::string& kernel, std::int64_t start_us,
                      std::int64_t end_us, const std::vector<Use>& uses,
                      const std::vector<Fine>& parts) {
    auto& threads = nodes_[static_cast<std::size_t>(node)].threads;
    if (threads.back().name != trace::divided_row) {
      threads.push_back(
          {.name = std::string(trace::divided_row), .sort_order = trace::divided_row_order});
    }
    for (std::size_t k = 0; k < parts.size(); ++k) {
      put(thread(node, parts[k].worker),
          trace::TaskRecord{.kernel = name(node, kernel),
                            .job = 0,
                            .order = order_,
                            .start_ns = parts[k].start_us * 1000,
                            .end_ns = parts[k].end_us * 1000,
                            .tile = {0, uses[0].tile},
                            .after = parts[k].after,
                            .fine = static_cast<std::uint32_t>(k) + 1});
    }
    task(node, threads.size() - 1, kernel, start_us, end_us, uses);
    trace::Record& record =
        threads.back()
            .records[threads.back().records.size() - 1 - trace::access_records(uses.size())];
    auto whole = record.as<trace::TaskRecord>();
    whole.is_divided = 1;
    record = trace::Record::of(whole);
    return *this;
  }

  /// Both ends of a message; the receive was posted at `posted_us`.
  RunBuilder& message(std::int32_t from, std::int32_t to, std::int32_t tile, std::int32_t version,
                      std::int64_t start_us, std::int64_t end_us, std::int64_t posted_us = 0) {
    trace::MessageRecord record{.job = 0,
                                .tile = {0, tile},
                                .version = Version(version),
                                .peer = NodeId(to),
                                .bytes = 4096,
                                .posted_ns = start_us * 1000,
                                .start_ns = start_us * 1000,
                                .end_ns = end_us * 1000};
    put(nodes_[index(from)].threads.back(), record);
    record.kind = trace::RecordKind::receive;
    record.peer = NodeId(from);
    record.posted_ns = record.start_ns = posted_us * 1000;
    put(nodes_[index(to)].threads.back(), record);
    return *this;
  }
  /// The message of before was sent by a reader of that version, not by its home.
  RunBuilder& passed_on(std::int32_t from) {
    trace::Record& last = nodes_[index(from)].threads.back().records.back();
    auto send = last.as<trace::MessageRecord>();
    send.is_passed_on = 1;
    last = trace::Record::of(send);
    return *this;
  }
  /// The message of before left that place of its sender, and came to that one of its receiver.
  RunBuilder& between(std::int32_t from, PlaceId from_place, std::int32_t to, PlaceId to_place) {
    const auto set = [&](std::int32_t node, PlaceId place) {
      trace::Record& last = nodes_[index(node)].threads.back().records.back();
      auto message = last.as<trace::MessageRecord>();
      message.place = trace::number_of(place);
      last = trace::Record::of(message);
    };
    set(from, from_place);
    set(to, to_place);
    return *this;
  }
  RunBuilder& on_host(std::int32_t node, const std::string& name) {
    nodes_[index(node)].info.metadata = R"({"run":"a","node":{"host":")" + name + R"("}})";
    return *this;
  }
  RunBuilder& copy(std::int32_t node, std::int32_t tile, std::int32_t version, PlaceId to,
                   std::int64_t start_us, std::int64_t end_us) {
    put(nodes_[index(node)].threads.back(), trace::CopyRecord{.job = 0,
                                                              .tile = {0, tile},
                                                              .version = Version(version),
                                                              .to = to,
                                                              .bytes = 4096,
                                                              .start_ns = start_us * 1000,
                                                              .end_ns = end_us * 1000});
    return *this;
  }

  /// Of a tile that a device had no room for, or that the host works on.
  RunBuilder& transfer(std::int32_t node, std::int32_t tile, PlaceId from, PlaceId to,
                       std::int64_t start_us, std::int64_t end_us) {
    const bool is_fetch = from == host_place;
    put(nodes_[index(node)].threads.back(),
        trace::CopyRecord{
            .reason = is_fetch ? trace::CopyReason::fetch : trace::CopyReason::write_back,
            .tile = {0, tile},
            .from = from,
            .to = to,
            .bytes = 4096,
            .start_ns = start_us * 1000,
            .end_ns = end_us * 1000});
    return *this;
  }

  /// Generation was with job 0 at the task of that order: the first task is 0.
  RunBuilder& generated(std::int32_t node, std::int64_t order, std::int64_t time_us) {
    put(generation(node), trace::CounterRecord{.name = name(node, trace::generated_name(0)),
                                               .time_ns = time_us * 1000,
                                               .value = order});
    return *this;
  }
  RunBuilder& generation_waits(std::int32_t node, trace::WaitCause cause, std::int64_t start_us,
                               std::int64_t end_us) {
    put(generation(node),
        trace::WaitRecord{.cause = cause, .start_ns = start_us * 1000, .end_ns = end_us * 1000});
    return *this;
  }
  /// Of the thread that brings messages.
  RunBuilder& waits(std::int32_t node, trace::WaitCause cause, std::int64_t start_us,
                    std::int64_t end_us) {
    put(nodes_[index(node)].threads.back(),
        trace::WaitRecord{.cause = cause, .start_ns = start_us * 1000, .end_ns = end_us * 1000});
    return *this;
  }
  /// A member's part of an operation of a group.
  struct Part {
    std::string operation;
    std::string algorithm;
    std::int32_t group = 0;
    std::int64_t number = 1;
    std::uint64_t bytes = 0;
  };
  RunBuilder& collective(std::int32_t node, const Part& part, std::int64_t start_us,
                         std::int64_t end_us) {
    auto& threads = nodes_[index(node)].threads;
    if (threads.back().name != trace::collectives_row) {
      threads.push_back({.name = std::string(trace::collectives_row), .sort_order = 3100});
    }
    put(threads.back(), trace::CollectiveRecord{.operation = name(node, part.operation),
                                                .algorithm = name(node, part.algorithm),
                                                .group = part.group,
                                                .number = part.number,
                                                .bytes = part.bytes,
                                                .ranks = 2,
                                                .start_ns = start_us * 1000,
                                                .end_ns = end_us * 1000});
    return *this;
  }
  RunBuilder& counter(std::int32_t node, const std::string& what, std::int64_t time_us,
                      std::int64_t value) {
    put(thread(node, 0), trace::CounterRecord{.name = name(node, what),
                                              .place = host_place,
                                              .time_ns = time_us * 1000,
                                              .value = value});
    return *this;
  }

  [[nodiscard]] std::vector<trace::NodeTrace>& nodes() { return nodes_; }
  [[nodiscard]] RunTrace run() const { return make_run("by hand", nodes_); }

 private:
  static std::size_t index(std::int32_t node) { return static_cast<std::size_t>(node); }
  trace::ThreadRecords& thread(std::int32_t node, std::size_t worker) {
    return nodes_[index(node)].threads[worker];
  }
  /// Made when it is needed, before the one that brings messages.
  trace::ThreadRecords& generation(std::int32_t node) {
    auto& threads = nodes_[index(node)].threads;
    for (trace::ThreadRecords& thread : threads) {
      if (thread.name == "generation") return thread;
    }
    return *threads.insert(threads.end() - 1, {.name = "generation", .sort_order = 0});
  }
  /// The nodes number their names differently.
  trace::NameId name(std::int32_t node, const std::string& text) {
    auto& names = nodes_[index(node)].names;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i] == text) return trace::NameId(static_cast<std::uint32_t>(i));
    }
    names.push_back(text);
    return trace::NameId(static_cast<std::uint32_t>(names.size() - 1));
  }
  template <class T>
  static void put(trace::ThreadRecords& thread, const T& record) {
    thread.records.push_back(trace::Record::of(record));
  }

  std::vector<trace::NodeTrace> nodes_;
  std::uint64_t order_ = 0;
};

}  // namespace heddle::replay::test
