#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "replay/simulation/simulated_job.hpp"
#include "tests/support/program.hpp"

namespace heddle::replay {

/// A program that every node walks in full; statement `work` says its kind.
class ScriptedJob final : public SimulatedJob {
 public:
  ScriptedJob(simulation::Program program, const std::vector<simulation::SimulatedMatrix>& matrices,
              std::vector<TaskKind> kinds, std::uint64_t tile_bytes)
      : program_(std::move(program)), kinds_(std::move(kinds)), tile_bytes_(tile_bytes) {
    for (simulation::Statement& statement : program_.statements) {
      for (protocol::Access& access : statement.accesses) access.version = protocol::count_here;
    }
    for (const simulation::SimulatedMatrix& matrix : matrices) {
      SimulatedMatrixSpec spec;
      spec.name = "m";
      spec.tile_rows = static_cast<std::int32_t>(matrix.homes.size());
      spec.tile_columns = 1;
      spec.temporary = matrix.temporary;
      spec.spare_count = matrix.spare_count;
      spec.classes = matrix.class_table();
      spec.class_count = matrix.class_count();
      specs_.push_back(std::move(spec));
    }
  }

  [[nodiscard]] std::span<const SimulatedMatrixSpec> matrices() const override { return specs_; }
  [[nodiscard]] std::unique_ptr<NodeWalk> walk(NodeId /*node*/, WalkSink& sink) override {
    return std::make_unique<Walk>(program_, sink);
  }
  [[nodiscard]] std::span<const TaskKind> kinds() const override { return kinds_; }
  [[nodiscard]] std::uint64_t tile_bytes(protocol::TileId /*tile*/) const override {
    return tile_bytes_;
  }
  [[nodiscard]] std::uint64_t message_bytes(protocol::TileId /*tile*/,
                                            Version /*version*/) const override {
    return tile_bytes_;
  }
  [[nodiscard]] std::int32_t priority_span() const override { return priority_span_; }
  void set_priority_span(std::int32_t span) { priority_span_ = span; }
  [[nodiscard]] std::int64_t task_count() const {
    return std::count_if(program_.statements.begin(), program_.statements.end(),
                         [](const simulation::Statement& statement) {
                           return statement.kind == simulation::Statement::Kind::task;
                         });
  }

  /// What the sequential program does: of each task its kernel, and its tiles with the versions
  /// that it finds there and leaves.
  struct Expected {
    std::string kernel;
    using Tile = std::array<std::int32_t, 3>;  ///< matrix, index, version
    std::vector<Tile> reads;
    std::vector<Tile> writes;
    friend auto operator<=>(const Expected&, const Expected&) = default;
  };
  [[nodiscard]] std::multiset<Expected> expected() const {
    std::map<protocol::TileId, std::int32_t> versions;
    std::multiset<Expected> all;
    for (const simulation::Statement& statement : program_.statements) {
      if (statement.kind != simulation::Statement::Kind::task) continue;
      Expected task;
      task.kernel = kinds_[static_cast<std::size_t>(statement.work)].kernel;
      for (const protocol::Access& access : statement.accesses) {
        std::int32_t& version = versions[access.tile];
        if (access.mode != protocol::AccessMode::write) {
          task.reads.push_back({access.tile.matrix.value(), access.tile.index, version});
        }
        if (access.mode != protocol::AccessMode::read) {
          task.writes.push_back({access.tile.matrix.value(), access.tile.index, ++version});
        }
      }
      all.insert(std::move(task));
    }
    return all;
  }

 private:
  class Walk final : public NodeWalk {
   public:
    Walk(const simulation::Program& program, WalkSink& sink) : program_(program), sink_(sink) {}
    bool advance() override {
      while (next_ < program_.statements.size()) {
        const simulation::Statement& statement = program_.statements[next_++];
        if (statement.kind == simulation::Statement::Kind::release) {
          sink_.release(statement.accesses.front());
          continue;
        }
        sink_.append(TaskKindId{static_cast<std::int32_t>(statement.work)}, statement.priority,
                     statement.accesses);
        if (!sink_.has_room()) return true;
      }
      return false;
    }

   private:
    const simulation::Program& program_;
    WalkSink& sink_;
    std::size_t next_ = 0;
  };

  simulation::Program program_;
  std::vector<SimulatedMatrixSpec> specs_;
  std::vector<TaskKind> kinds_;
  std::uint64_t tile_bytes_;
  std::int32_t priority_span_ = std::numeric_limits<std::int32_t>::max();
};

}  // namespace heddle::replay
