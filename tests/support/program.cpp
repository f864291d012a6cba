#include "tests/support/program.hpp"

#include <algorithm>
#include <set>

namespace heddle::simulation {

using protocol::Access;
using protocol::AccessMode;
using protocol::TileId;

namespace {

Content mix(Content a, Content b) {
  Content h = a * 0x9E3779B97F4A7C15ULL ^ (b + 0x165667B19E3779F9ULL);
  h ^= h >> 29;
  h *= 0xBF58476D1CE4E5B9ULL;
  return h ^ (h >> 32);
}

}  // namespace

void Program::number_versions() {
  std::map<TileId, std::int32_t> writes;
  for (Statement& statement : statements) {
    for (Access& access : statement.accesses) access.version = Version{writes[access.tile]};
    if (statement.kind != Statement::Kind::task) continue;
    for (const Access& access : statement.accesses) {
      if (access.mode != AccessMode::read) ++writes[access.tile];
    }
  }
}

void ProgramWriter::task(std::vector<Access> accesses) {
  program_.statements.push_back({Statement::Kind::task, std::move(accesses), 0});
}

void ProgramWriter::release(TileId tile) {
  program_.statements.push_back({Statement::Kind::release, {read(tile)}, 0});
}

TileId ProgramWriter::add(std::size_t matrix, std::int32_t node, std::int32_t place) {
  auto& homes = matrices_[matrix].homes;
  homes.push_back({NodeId{node}, PlaceId{place}});
  return {protocol::MatrixId{static_cast<std::int32_t>(matrix)},
          static_cast<std::int32_t>(homes.size()) - 1};
}

Access ProgramWriter::access(TileId tile, AccessMode mode) const {
  const auto matrix = static_cast<std::size_t>(tile.matrix.value());
  return {tile, matrices_[matrix].homes[static_cast<std::size_t>(tile.index)], mode};
}

Reference::Reference(const std::vector<SimulatedMatrix>& matrices) {
  for (std::size_t m = 0; m < matrices.size(); ++m) {
    for (std::size_t t = 0; t < matrices[m].homes.size(); ++t) {
      const TileId tile{protocol::MatrixId{static_cast<std::int32_t>(m)},
                        static_cast<std::int32_t>(t)};
      memory_[tile] = matrices[m].temporary ? poisoned : initial(tile);
    }
  }
}

Content Reference::initial(TileId tile) {
  return mix(static_cast<Content>(tile.matrix.value()) + 77, static_cast<Content>(tile.index));
}

void Reference::run(const Program& program) {
  const std::size_t index = jobs_.size();
  JobHistory& job = jobs_.emplace_back();
  job.before = memory_;
  for (std::size_t s = 0; s < program.statements.size(); ++s) {
    const Statement& statement = program.statements[s];
    auto& in = job.in.emplace_back();
    auto& out = job.out.emplace_back();
    if (statement.kind != Statement::Kind::task) continue;
    Content sum = statement.work != 0 ? statement.work : mix(index, s);
    for (const Access& access : statement.accesses) {
      in.push_back(access.mode == AccessMode::write ? 0
                                                    : version(index, access.tile, access.version));
      sum = mix(sum, in.back());
    }
    for (std::size_t i = 0; i < statement.accesses.size(); ++i) {
      const Access& access = statement.accesses[i];
      const Content made = statement.kernel == "copy" ? in.back() : mix(sum, i);
      out.push_back(access.mode == AccessMode::read ? 0 : made);
      if (access.mode == AccessMode::read) continue;
      memory_[access.tile] = out.back();
      job.versions[{access.tile, access.version + 1}] = out.back();
    }
  }
}

Content Reference::read_by(std::size_t job, std::size_t statement, std::size_t access) const {
  return jobs_.at(job).in.at(statement).at(access);
}

Content Reference::left_by(std::size_t job, std::size_t statement, std::size_t access) const {
  return jobs_.at(job).out.at(statement).at(access);
}

Content Reference::version(std::size_t job, TileId tile, Version number) const {
  const JobHistory& history = jobs_.at(job);
  if (number == Version{0}) return history.before.at(tile);
  const auto found = history.versions.find({tile, number});
  return found == history.versions.end() ? poisoned : found->second;
}

namespace {

/// What a random program may still do with its tiles.
class RandomTiles {
 public:
  explicit RandomTiles(const std::vector<SimulatedMatrix>& matrices) : matrices_(matrices) {
    for (std::size_t m = 0; m < matrices.size(); ++m) {
      for (std::size_t t = 0; t < matrices[m].homes.size(); ++t) {
        const protocol::MatrixId matrix{static_cast<std::int32_t>(m)};
        tiles_.push_back({matrix, static_cast<std::int32_t>(t)});
        if (matrices[m].temporary) unreadable_.insert(tiles_.back());
      }
    }
  }

  std::vector<TileId>& shuffled(std::mt19937_64& random) {
    std::shuffle(tiles_.begin(), tiles_.end(), random);
    return tiles_;
  }
  [[nodiscard]] bool readable(TileId tile) const { return !unreadable_.contains(tile); }
  [[nodiscard]] bool temporary(TileId tile) const { return matrix(tile).temporary; }
  [[nodiscard]] Location home(TileId tile) const {
    return matrix(tile).homes[static_cast<std::size_t>(tile.index)];
  }
  void write(TileId tile) { unreadable_.erase(tile); }
  void release(TileId tile) { unreadable_.insert(tile); }

 private:
  [[nodiscard]] const SimulatedMatrix& matrix(TileId tile) const {
    return matrices_[static_cast<std::size_t>(tile.matrix.value())];
  }

  const std::vector<SimulatedMatrix>& matrices_;
  std::vector<TileId> tiles_;
  std::set<TileId> unreadable_;  ///< released, or temporary and not written
};

Statement release_of(TileId tile, Location home) {
  Statement statement;
  statement.kind = Statement::Kind::release;
  statement.accesses = {{tile, home}};
  return statement;
}

}  // namespace

Program random_program(const RandomProgramOptions& options,
                       const std::vector<SimulatedMatrix>& matrices, std::mt19937_64& random) {
  const auto chance = [&](double p) { return std::uniform_real_distribution<>(0, 1)(random) < p; };
  RandomTiles tiles(matrices);
  const auto may_write = [&](TileId tile) {
    return options.writes.empty() || options.writes.contains(tile.matrix);
  };
  Program program;
  for (std::int32_t n = 0; n < options.tasks; ++n) {
    Statement statement;
    const std::size_t count = 1 + random() % static_cast<std::uint64_t>(options.accesses_max);
    for (const TileId tile : tiles.shuffled(random)) {
      if (statement.accesses.size() == count) break;
      Access access{tile, tiles.home(tile), AccessMode::read};
      if (statement.accesses.empty() && !may_write(tile)) continue;
      if (statement.accesses.empty() || (may_write(tile) && chance(options.minor_output))) {
        access.mode = !tiles.readable(tile) || chance(options.write_only) ? AccessMode::write
                                                                          : AccessMode::read_write;
        tiles.write(tile);
      } else if (!tiles.readable(tile)) {
        continue;
      }
      statement.accesses.push_back(access);
    }
    if (statement.accesses.empty()) break;
    statement.priority = static_cast<std::int32_t>(random() % 8);
    program.statements.push_back(statement);
    if (chance(options.release)) {
      const TileId tile = statement.accesses[random() % statement.accesses.size()].tile;
      program.statements.push_back(release_of(tile, tiles.home(tile)));
      tiles.release(tile);
    }
  }
  // Half of the programs leave their last temporaries to the end of the job.
  if (chance(0.5)) return program;
  for (const TileId tile : tiles.shuffled(random)) {
    if (tiles.temporary(tile) && tiles.readable(tile)) {
      program.statements.push_back(release_of(tile, tiles.home(tile)));
    }
  }
  return program;
}

}  // namespace heddle::simulation
