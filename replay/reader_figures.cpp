#include "replay/reader_figures.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace heddle::replay {
namespace {

/// Bytes by sender.
template <class Key>
class Sums {
 public:
  void sent(const Key& sender, double bytes) { sent_[sender] += bytes; }
  void from_home(const Key& home, double bytes) { from_homes_[home] += bytes; }
  [[nodiscard]] LargestSender largest() const { return {most(sent_), most(from_homes_)}; }

 private:
  [[nodiscard]] static double most(const std::map<Key, double>& sums) {
    double most = 0;
    for (const auto& [key, bytes] : sums) most = std::max(most, bytes);
    return most;
  }
  std::map<Key, double> sent_;
  std::map<Key, double> from_homes_;
};

/// The messages of a job, by version and receiver.
class ByReceiver {
 public:
  ByReceiver(const RunTrace& run, std::int32_t job) {
    for (const Message& message : run.messages) {
      if (message.job == job) messages_.push_back(&message);
    }
    std::ranges::sort(messages_, {}, [](const Message* m) { return key(*m, m->to); });
  }

  /// The node that sent the first message of the chain that ends with this one: the version's home,
  /// or the first node whose own message is not in the traces.
  [[nodiscard]] NodeId origin(const Message& last) const {
    const Message* message = &last;
    // A version reaches a node once, so a longer chain goes in a circle: the traces are damaged.
    for (std::size_t steps = 0; message->is_passed_on && steps < messages_.size(); ++steps) {
      const auto before = key(*message, message->from);
      const auto found = std::ranges::lower_bound(messages_, before, {},
                                                  [](const Message* m) { return key(*m, m->to); });
      if (found == messages_.end() || key(**found, (*found)->to) != before) break;
      message = *found;
    }
    return message->from;
  }
  [[nodiscard]] const std::vector<const Message*>& all() const { return messages_; }

 private:
  using Key = std::tuple<std::int32_t, std::int32_t, Version, NodeId>;
  [[nodiscard]] static Key key(const Message& message, NodeId receiver) {
    return {message.tile.matrix, message.tile.index, message.version, receiver};
  }
  std::vector<const Message*> messages_;
};

}  // namespace

ReaderFigures reader_figures(const RunTrace& run, std::int32_t job) {
  ReaderFigures figures;
  for (const Message& message : run.messages) {
    if (message.job != job || !message.is_passed_on) continue;
    ++figures.passed_on;
    figures.bytes += static_cast<double>(message.bytes);
  }
  if (figures.passed_on == 0) return figures;
  const ByReceiver messages(run, job);
  const auto host_of = [&](NodeId node) {
    const auto found = run.hosts.find(node);
    return found == run.hosts.end() ? std::string() : found->second;
  };
  Sums<NodeId> by_node;
  Sums<std::string> by_host;
  for (const Message* message : messages.all()) {
    const NodeId home = messages.origin(*message);
    const auto bytes = static_cast<double>(message->bytes);
    by_node.sent(message->from, bytes);
    by_node.from_home(home, bytes);
    const std::string to = host_of(message->to);
    if (const std::string from = host_of(message->from); from != to) by_host.sent(from, bytes);
    if (const std::string from = host_of(home); from != to) by_host.from_home(from, bytes);
  }
  figures.node = by_node.largest();
  figures.host = by_host.largest();
  return figures;
}

}  // namespace heddle::replay
