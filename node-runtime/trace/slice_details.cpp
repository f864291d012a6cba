#include "node-runtime/trace/slice_details.hpp"

#include "node-runtime/trace/visit.hpp"

namespace heddle::trace {

void SliceDetails::tell(const Record& record) {
  visit(record, [&](const auto& r) { tell(r); });
}

void SliceDetails::tell(const TaskRecord& task) {
  text_.clear();
  labels_.put_task(text_, task);
  sink_.begin("task", text_.view());
  sink_.number("job", task.job);
  sink_.number("order", static_cast<std::int64_t>(task.order));
  sink_.number("priority", task.priority);
  if (task.fine > 0) sink_.number("fine", task.fine);
  if (task.fine > 0 && task.after > 0 && task.after != unknown_number) {
    sink_.number("after", task.after);
  }
  place("place", task.place);
}

void SliceDetails::tell(const WaitRecord& wait) {
  text_.clear();
  text_ << "wait: " << name(wait.cause);
  sink_.begin("wait", text_.view());
  if (wait.tile.index >= 0) version(wait.job, wait.tile, wait.version);
}

void SliceDetails::tell(const CopyRecord& copy) {
  begin("copy", name(copy.reason), copy.tile);
  if (copy.reason == CopyReason::access) version(copy.job, copy.tile, copy.version);
  place("from", copy.from);
  place("to", copy.to);
  sink_.number("bytes", static_cast<std::int64_t>(copy.bytes));
  sink_.duration("queued", copy.start_ns - copy.posted_ns);
}

void SliceDetails::tell(const MessageRecord& message) {
  const bool is_received = message.kind == RecordKind::receive;
  begin("message", is_received ? "receive" : "send", message.tile);
  version(message.job, message.tile, message.version);
  node("from", is_received ? message.peer : trace_.node);
  node("to", is_received ? trace_.node : message.peer);
  if (message.place != 0) place("place", PlaceId{message.place - 1});
  sink_.number("tag", message.tag);
  sink_.number("bytes", static_cast<std::int64_t>(message.bytes));
  if (message.path != 0) sink_.text("path", path_name(message.path));
  sink_.duration("queued", message.start_ns - message.posted_ns);
}

void SliceDetails::tell(const FragmentRecord& fragment) {
  begin("fragment", name(fragment.step), fragment.tile);
  version(fragment.job, fragment.tile, fragment.version);
  node("peer", fragment.peer);
  sink_.number("begin", static_cast<std::int64_t>(fragment.begin));
  sink_.number("bytes", static_cast<std::int64_t>(fragment.bytes));
}

void SliceDetails::tell(const CollectiveRecord& collective) {
  sink_.begin("collective", labels_.name(collective.operation));
  sink_.text("algorithm", labels_.name(collective.algorithm));
  sink_.number("group", collective.group);
  sink_.number("number", collective.number);
  sink_.number("ranks", collective.ranks);
  sink_.number("bytes", static_cast<std::int64_t>(collective.bytes));
  sink_.text("calls", collective.is_on_stream != 0 ? "stream" : "host");
}

void SliceDetails::begin(std::string_view category, std::string_view what, const Tile& tile) {
  text_.clear();
  text_ << what << ' ';
  labels_.put_tile(text_, tile);
  sink_.begin(category, text_.view());
}

void SliceDetails::version(std::int32_t job, const Tile& tile, Version version) {
  sink_.number("job", job);
  text_.clear();
  labels_.put_tile(text_, tile);
  sink_.text("tile", text_.view());
  sink_.number("version", version.value());
}

void SliceDetails::place(std::string_view key, PlaceId place) {
  text_.clear();
  Labels::put_place(text_, place);
  sink_.text(key, text_.view());
}

void SliceDetails::node(std::string_view key, NodeId node) {
  text_.clear();
  text_ << "node " << node.value();
  sink_.text(key, text_.view());
}

}  // namespace heddle::trace
