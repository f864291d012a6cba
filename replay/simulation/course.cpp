#include "replay/simulation/course.hpp"

#include "replay/simulation/mixed.hpp"

namespace heddle::replay {

std::size_t Course::KeyHash::operator()(const Key& key) const {
  const std::uint64_t ends =
      mixed(static_cast<std::uint64_t>(key.version.value()), key.from, key.to.value());
  return mixed(ends, NodeId{key.tile.matrix.value()}, key.tile.index);
}

void Course::add_task(NodeId node, std::int64_t order, float share) {
  std::vector<float>& of_node = shares_[static_cast<std::size_t>(node.value())];
  const auto at = static_cast<std::size_t>(order);
  if (of_node.size() <= at) of_node.resize(at + 1, 0);
  of_node[at] = share;
}

void Course::add_message(NodeId from, NodeId to, protocol::TileId tile, Version version,
                         double seconds) {
  messages_[{from, to, tile, version}] = seconds;
}

void Course::add_waking(NodeId node, std::int64_t order, double seconds) {
  wakings_[static_cast<std::size_t>(node.value())][order] = seconds;
}

void Course::add_refill(NodeId node, std::int64_t order, double seconds) {
  refills_[static_cast<std::size_t>(node.value())][order] = seconds;
}

void Course::add_worker(NodeId node, std::int64_t order, std::int32_t worker) {
  workers_[static_cast<std::size_t>(node.value())][order] = worker;
}

std::optional<std::int32_t> Course::worker_of(NodeId node, std::int64_t order) const {
  const auto& of_node = workers_[static_cast<std::size_t>(node.value())];
  const auto found = of_node.find(order);
  return found == of_node.end() ? std::nullopt : std::optional(found->second);
}

std::optional<double> Course::find(const ByOrder& times, NodeId node, std::int64_t order) {
  const auto& of_node = times[static_cast<std::size_t>(node.value())];
  const auto found = of_node.find(order);
  return found == of_node.end() ? std::nullopt : std::optional(found->second);
}

std::optional<double> Course::waking_seconds(NodeId node, std::int64_t order) const {
  return find(wakings_, node, order);
}

std::optional<double> Course::refill_seconds(NodeId node, std::int64_t order) const {
  return find(refills_, node, order);
}

double Course::share(NodeId node, std::int64_t order) const {
  const std::vector<float>& of_node = shares_[static_cast<std::size_t>(node.value())];
  const auto at = static_cast<std::size_t>(order);
  return at < of_node.size() && of_node[at] > 0 ? of_node[at] : 1;
}

double Course::message_seconds(NodeId from, NodeId to, protocol::TileId tile,
                               Version version) const {
  const auto found = messages_.find({from, to, tile, version});
  return found == messages_.end() ? 0 : found->second;
}

}  // namespace heddle::replay
