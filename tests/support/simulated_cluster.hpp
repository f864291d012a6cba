#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "node-runtime/protocol/pool_plan.hpp"
#include "node-runtime/protocol/protocol.hpp"

/// P nodes of the protocol in one process under a seeded scheduler: appends, firings, copies,
/// grants and messages happen in an order that the seed decides, arbitrarily late and reordered.
/// What each task reads is compared with what the sequential program would have read.
namespace heddle::simulation {

/// A tile matrix of a simulated program; `homes[t]` is where tile t lives.
struct SimulatedMatrix {
  std::vector<Location> homes;
  bool temporary = false;
  std::int32_t spare_count = 0;
};

/// One statement of a sequential program.
struct Statement {
  enum class Kind : std::uint8_t { task, release };
  Kind kind = Kind::task;
  std::vector<protocol::Access> accesses;  ///< versions are filled in by `Program::number_versions`
  std::int32_t priority = 0;
};

struct Program {
  std::vector<Statement> statements;
  /// States each access's version as the sequential program has it, so that nodes may walk it
  /// pruned.
  void number_versions();
};

struct ClusterOptions {
  std::int32_t nodes = 1;
  std::int32_t places = 1;
  std::int32_t window = 1;
  std::int32_t extra_blocks = 0;  ///< capacity of every pool beyond the planned minimum
  bool pruned = false;            ///< nodes walk only what touches them, with stated versions
  std::uint64_t seed = 0;
  /// Probability per step that a running job is cancelled on some node.
  double cancel_probability = 0;
};

struct Outcome {
  bool ok = true;
  std::string failure;  ///< what went wrong first, empty if nothing did
  std::int64_t tasks = 0;
  std::int64_t messages = 0;
  std::int64_t copies = 0;
  std::int64_t renamings = 0;
  std::set<protocol::InstanceKind> kinds_seen;
};

class SimulatedCluster {
 public:
  SimulatedCluster(const ClusterOptions& options, std::vector<SimulatedMatrix> matrices);
  ~SimulatedCluster();

  /// Submits a program to all nodes; programs may be in flight together. Those that share a matrix
  /// are walked one after the other.
  void submit(Program program);
  /// Runs until nothing is left to do, and checks.
  Outcome run();

 private:
  using Content = std::uint64_t;
  static constexpr Content poisoned = ~Content{0};
  struct Node;
  struct JobState;
  struct Event;

  void generate(Node& node, std::size_t job);
  void collect(Node& node);
  void start_task(Node& node, protocol::Task& task);
  void finish_task(Node& node, protocol::Task& task);
  void finish_copy(Node& node, const protocol::CopyAction& copy);
  void deliver(Node& node, Event& event);
  void walk(Node& node, JobState& job, const Statement& statement, protocol::Job& handle);
  [[nodiscard]] bool touches(const Node& node, const Statement& statement) const;
  [[nodiscard]] bool may_generate(const Node& node, std::size_t job) const;
  bool step();
  void check_end();
  void fail(std::string text);
  void run_sequentially(JobState& job);
  Content& content(Node& node, protocol::BlockRef block);

  ClusterOptions options_;
  std::vector<SimulatedMatrix> matrices_;
  std::mt19937_64 random_;
  std::vector<std::unique_ptr<JobState>> jobs_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::map<std::pair<std::int32_t, std::int32_t>, Content> reference_;  ///< (matrix, tile)
  std::set<std::tuple<std::int32_t, std::int32_t, std::int32_t, std::int32_t, std::int32_t>> sent_;
  bool any_cancelled_ = false;
  Outcome outcome_;
};

/// A random program over random tiles: reads, writes, minor outputs on any place, releases.
struct RandomProgramOptions {
  std::int32_t tasks = 40;
  std::int32_t accesses_max = 4;
  double write_only = 0.2;
  double minor_output = 0.4;
  double release = 0.2;
};
Program random_program(const RandomProgramOptions& options,
                       const std::vector<SimulatedMatrix>& matrices, std::mt19937_64& random);

}  // namespace heddle::simulation
