#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "base/index.hpp"
#include "node-runtime/protocol/types.hpp"

namespace heddle {
class FineGraph;
}  // namespace heddle

/// Sequential programs for the simulated cluster, and what they leave in memory.
namespace heddle::simulation {

/// Pools of jobs, apart from those of matrices.
inline constexpr std::int32_t job_pool_base = 1000;

/// The pool of matrices at the same place.
[[nodiscard]] inline std::int32_t own_pool(protocol::BlockRef block) {
  return block.pool < job_pool_base ? block.pool : block.pool - job_pool_base;
}

/// A tile matrix of a simulated program; `homes[t]` is where tile t lives.
struct SimulatedMatrix {
  std::vector<Location> homes;
  bool temporary = false;
  std::int32_t spare_count = 0;
  /// Of each tile, by the size of its blocks; empty: all are alike.
  std::vector<std::int32_t> classes;

  [[nodiscard]] std::int32_t class_count() const {
    return classes.empty() ? 1 : 1 + *std::max_element(classes.begin(), classes.end());
  }
  [[nodiscard]] std::int32_t class_of_tile(std::int32_t tile) const {
    return classes.empty() ? 0 : classes[static_cast<std::size_t>(tile)];
  }
  [[nodiscard]] protocol::ClassTable class_table() const {
    if (classes.empty()) return nullptr;
    return std::make_shared<const std::vector<std::int32_t>>(classes);
  }
  /// The class that a block of the matrix is large enough for.
  [[nodiscard]] std::int32_t class_of_block(std::int32_t block) const {
    const auto tiles = static_cast<std::int32_t>(homes.size());
    return block < tiles ? class_of_tile(block) : (block - tiles) / std::max(1, spare_count);
  }
};

/// One statement of a sequential program.
struct Statement {
  enum class Kind : std::uint8_t { task, release };
  Kind kind = Kind::task;
  std::vector<protocol::Access> accesses;  ///< versions are filled in by `Program::number_versions`
  std::int32_t priority = 0;
  /// What the task computes: equal work on equal contents leaves equal contents, wherever and
  /// whenever it is done. 0: something that only this statement does.
  std::uint64_t work = 0;
  /// How CPU workers divide it: null, not at all; none, as a kernel of whichever kind.
  std::optional<const FineGraph*> fine = std::nullopt;
  std::string_view kernel = {};  ///< its name; "copy" leaves the content that it reads
};

struct Program {
  std::vector<Statement> statements;
  /// States each access's version as the sequential program has it, so that nodes may walk it
  /// pruned.
  void number_versions();
};

/// What a node does next as it walks a program: one call of the protocol.
struct Step {
  enum class Kind : std::uint8_t { append, announce, publish, release };
  Kind kind = Kind::append;
  std::size_t statement = 0;               ///< that is appended
  std::vector<protocol::Access> accesses;  ///< of the statement, or the one that the call names
  NodeId reader;                           ///< to whom it is announced
  std::int32_t priority = 0;
};
using NodeWalk = std::vector<Step>;

/// As JobSpec::readers has them, by tile and version.
using KnownReaders = std::map<std::pair<protocol::TileId, Version>, std::vector<protocol::Reader>>;

/// A program and how each node walks it. The statements are tasks with stated versions; each stands
/// somewhere behind those that write what it reads, and the writes of a tile stand in their order.
struct WalkedProgram {
  Program program;
  std::vector<NodeWalk> walks;
  KnownReaders readers{};
};

/// Writes small programs by hand, over tiles of a matrix (number 0) and of a temporary one (1).
class ProgramWriter {
 public:
  protocol::TileId tile(std::int32_t node, std::int32_t place) { return add(0, node, place); }
  protocol::TileId temporary(std::int32_t node, std::int32_t place) { return add(1, node, place); }

  [[nodiscard]] protocol::Access read(protocol::TileId tile) const {
    return access(tile, protocol::AccessMode::read);
  }
  [[nodiscard]] protocol::Access write(protocol::TileId tile) const {
    return access(tile, protocol::AccessMode::write);
  }
  [[nodiscard]] protocol::Access read_write(protocol::TileId tile) const {
    return access(tile, protocol::AccessMode::read_write);
  }

  void task(std::vector<protocol::Access> accesses);
  void release(protocol::TileId tile);

  void set_spare_count(std::int32_t count) { matrices_[0].spare_count = count; }
  [[nodiscard]] const std::vector<SimulatedMatrix>& matrices() const { return matrices_; }
  [[nodiscard]] const Program& program() const { return program_; }

 private:
  protocol::TileId add(std::size_t matrix, std::int32_t node, std::int32_t place);
  [[nodiscard]] protocol::Access access(protocol::TileId tile, protocol::AccessMode mode) const;

  std::vector<SimulatedMatrix> matrices_{{{}, false, 0, {}}, {{}, true, 0, {}}};
  Program program_;
};

/// A random program over random tiles: reads, writes, minor outputs on any place, releases.
struct RandomProgramOptions {
  std::int32_t tasks = 40;
  std::int32_t accesses_max = 4;
  double write_only = 0.2;
  double minor_output = 0.4;
  double release = 0.2;
  std::set<protocol::MatrixId> writes;  ///< matrices that it may write to; none named: all
};
[[nodiscard]] Program random_program(const RandomProgramOptions& options,
                                     const std::vector<SimulatedMatrix>& matrices,
                                     std::mt19937_64& random);

/// What a simulated block holds: a hash of the whole history that made it, so that two versions
/// never look alike.
using Content = std::uint64_t;

/// What a block holds that nobody wrote, or whose content was given up.
inline constexpr Content poisoned = ~Content{0};

/// The statements of jobs one after the other on one memory: the reference for what every task
/// reads and every version holds.
class Reference {
 public:
  explicit Reference(const std::vector<SimulatedMatrix>& matrices);

  /// Runs a job's statements after all those of the jobs before it; its versions are numbered.
  /// Versions that were replaced can still be read, so that the order need not be the program's.
  void run(const Program& program);

  /// What `statement` of the job reads through its access; 0 where it only writes.
  [[nodiscard]] Content read_by(std::size_t job, std::size_t statement, std::size_t access) const;
  /// What it leaves there; 0 where it only reads.
  [[nodiscard]] Content left_by(std::size_t job, std::size_t statement, std::size_t access) const;
  /// What a version holds, counted in writes since the beginning of the job.
  [[nodiscard]] Content version(std::size_t job, protocol::TileId tile, Version number) const;
  /// What a tile holds after all jobs, and before any.
  [[nodiscard]] Content last(protocol::TileId tile) const { return memory_.at(tile); }
  [[nodiscard]] static Content initial(protocol::TileId tile);

 private:
  struct JobHistory {
    std::map<protocol::TileId, Content> before;
    std::map<std::pair<protocol::TileId, Version>, Content> versions;
    std::vector<std::vector<Content>> in;
    std::vector<std::vector<Content>> out;
  };
  std::map<protocol::TileId, Content> memory_;
  std::vector<JobHistory> jobs_;
};

}  // namespace heddle::simulation
