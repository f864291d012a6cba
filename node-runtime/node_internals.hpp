#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "node-runtime/node.hpp"
#include "node-runtime/trace/clock.hpp"

namespace heddle {

class Engine;
class TileStore;
class UserMessages;

namespace collectives {
class GroupCore;
}
namespace protocol {
struct JobCounters;
}
namespace trace {
class Recorder;
}

/// What a runtime thread did with its time, for the report.
struct ThreadReport {
  std::string role;
  double busy_seconds = 0;
  double waiting_seconds = 0;
  std::int64_t tasks = 0;
};

/// What heddle's own programs, algorithms and tests see of a node beyond its public interface. A
/// reference: as valid as the node.
class NodeInternals {
 public:
  explicit NodeInternals(const Node& node) : parts_(*node.parts_) {}

  [[nodiscard]] Engine& engine() const;
  [[nodiscard]] TileStore& store() const;
  [[nodiscard]] trace::Recorder& recorder() const;
  /// What this node's threads have done so far.
  [[nodiscard]] std::vector<ThreadReport> threads() const;
  /// Binds the calling thread to the cores that this node's workers leave, where they leave enough
  /// for the node's other threads; otherwise to the node's share of the host, or not at all. For
  /// threads that a program has beside the node's: where the system refuses they stay where they
  /// were, and may disturb a worker. Any thread.
  void bind_beside_workers() const noexcept;
  /// How this node's clock compared with node 0's at start-up.
  [[nodiscard]] trace::ClockOffset clock_offset() const;
  /// How it compares now, so that clocks that drift apart can be followed. Collective.
  [[nodiscard]] trace::ClockOffset compare_clocks() const;
  /// What moves messages beside those of tiles.
  [[nodiscard]] std::shared_ptr<UserMessages> user_messages() const;
  /// What handles of Node::group() share.
  [[nodiscard]] std::shared_ptr<collectives::GroupCore> group_of_all() const;
  /// With runtime.messages.explain: how the messages came that this node has received, a text for
  /// each kind.
  [[nodiscard]] std::vector<std::string> explained_messages() const;

 private:
  Node::Parts& parts_;
};

/// The same of a job. As valid as the handle.
class JobInternals {
 public:
  explicit JobInternals(const Job& job) : record_(job.record()) {}

  /// What the job did on this node; complete once it is done.
  [[nodiscard]] const protocol::JobCounters& counters() const;
  /// Blocks that the job needs at each place of this node at least; its number of tasks here.
  [[nodiscard]] const std::vector<std::int32_t>& blocks_minimum() const;
  /// By place: the matrices whose tiles take these blocks.
  [[nodiscard]] const std::vector<std::vector<protocol::MatrixId>>& takers() const;
  [[nodiscard]] std::int64_t tasks_planned() const;
  /// As the trace numbers it; once it is done.
  [[nodiscard]] std::int32_t number() const;

 private:
  const JobRecord& record_;
};

}  // namespace heddle
