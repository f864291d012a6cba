#pragma once

#include <cstdint>
#include <string_view>

#include "node-runtime/trace/labels.hpp"
#include "node-runtime/trace/node_trace.hpp"
#include "node-runtime/trace/text.hpp"

namespace heddle::trace {

/// Receives a slice: its category and name, then its arguments. Texts are escaped by the labels and
/// valid during the call.
class SliceSink {
 public:
  SliceSink() = default;
  SliceSink(const SliceSink&) = delete;
  SliceSink& operator=(const SliceSink&) = delete;
  virtual ~SliceSink() = default;

  virtual void begin(std::string_view category, std::string_view name) = 0;
  virtual void number(std::string_view key, std::int64_t value) = 0;
  virtual void text(std::string_view key, std::string_view value) = 0;
  virtual void duration(std::string_view key, std::int64_t ns) = 0;
};

/// Passes the slices of one node to a sink: names like "gsmm (5, 3)", "wait: no task", "send A (4,
/// 0)", "all_reduce", and, where they apply, job, order, priority, place, tile, version, from, to,
/// bytes.
class SliceDetails {
 public:
  /// All arguments must outlive this object.
  SliceDetails(const NodeTrace& trace, const Labels& labels, SliceSink& sink)
      : trace_(trace), labels_(labels), sink_(sink) {}

  /// Passes any record that is a slice (rows.hpp).
  void tell(const Record& record);

 private:
  void tell(const TaskRecord& task);
  void tell(const WaitRecord& wait);
  void tell(const CopyRecord& copy);
  void tell(const MessageRecord& message);
  void tell(const FragmentRecord& fragment);
  void tell(const CollectiveRecord& collective);
  /// Counters are not slices.
  void tell(const CounterRecord& /*counter*/) {}

  void begin(std::string_view category, std::string_view what, const Tile& tile);
  void version(std::int32_t job, const Tile& tile, Version version);
  void place(std::string_view key, PlaceId place);
  void node(std::string_view key, NodeId node);

  const NodeTrace& trace_;
  const Labels& labels_;
  SliceSink& sink_;
  Text text_;
};

}  // namespace heddle::trace
