#include "algorithms/walk/tile_walk.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

#include "algorithms/walk/own_tiles.hpp"
#include "base/assert.hpp"
#include "base/flat_map.hpp"
#include "base/require.hpp"
#include "node-runtime/threads/program.hpp"

namespace heddle {

using protocol::Access;
using protocol::AccessMode;
using protocol::TileId;

namespace {

/// A tile that this node has or reads, and the last range that reads it.
struct Source {
  Access access;
  TileRange last;
};

struct TileHash {
  std::size_t operator()(const TileId& tile) const {
    constexpr std::uint64_t mix = 0x9E3779B97F4A7C15ULL;
    const auto matrix = static_cast<std::uint64_t>(tile.matrix.value());
    return ((matrix << 32U ^ static_cast<std::uint32_t>(tile.index)) * mix) >> 32U;
  }
};

}  // namespace

struct TileWalk::State {
  TaskStream& tasks;
  protocol::MatrixId matrix;
  Distribution distribution;
  OwnTiles tiles;
  bool is_alone;  ///< there is one node: nothing is sent
  WriteCounts writes;
  std::vector<Source> sources;
  FlatMap<TileId, Version, TileHash> versions;  ///< of sources on other nodes

  // The walk over one range.
  TileRange range{};
  OwnTiles::Position own{};

  State(TaskStream& stream, const Matrix<double>& a)
      : tasks(stream),
        matrix(a.id()),
        distribution(a.distribution()),
        tiles(a, stream.node()),
        is_alone(a.distribution().node_count() == 1),
        writes(tiles) {}

  [[nodiscard]] Access with_version(Access access) const;
  void announce(const Access& tile, const TileRange& readers, std::span<const TileRange> earlier);
  void finish();
};

TileWalk::TileWalk(TaskStream& tasks, const Matrix<double>& a)
    : state_(std::make_unique<State>(tasks, a)) {}

TileWalk::~TileWalk() = default;

TileRange TileWalk::column(TileColumn c, TileRow from) const {
  return {from, state_->tiles.end_row(), c, c + 1};
}

TileRange TileWalk::trailing(TileRow from, TileColumn first) const {
  return {from, state_->tiles.end_row(), first, state_->tiles.end_column()};
}

TileRange TileWalk::column_of(const TileRange& range, TileRow i) const {
  const WideColumn j{i.value()};
  return {range.row_begin, range.row_end, std::max(range.column_begin, state_->tiles.wide_begin(j)),
          std::min(range.column_end, state_->tiles.wide_begin(j + 1))};
}

void TileWalk::broadcast(const Access& tile, std::initializer_list<TileRange> readers) {
  State& s = *state_;
  const bool is_mine = tile.home.node == s.tasks.node();
  const TileRange* last = nullptr;
  bool reads = false;
  for (const TileRange& range : readers) {
    if (s.tiles.is_empty(range)) continue;
    last = &range;
    reads = reads || s.tiles.has_any(range);
  }
  if (!is_mine && !reads) return;
  const Access source = s.with_version(tile);
  if (last == nullptr) return s.tasks.release(source);
  s.sources.push_back({source, *last});
  if (s.is_alone) return;
  if (!is_mine) s.versions[source.tile] = source.version;
  if (s.tasks.publish(source) || !is_mine) return;
  for (const TileRange* range = readers.begin(); range != readers.end(); ++range) {
    if (!s.tiles.is_empty(*range)) s.announce(source, *range, {readers.begin(), range});
  }
}

void TileWalk::broadcast_column(const Matrix<double>& l, TileColumn c, TileRow from,
                                const TileRange& readers, Version version) {
  const OwnPart& part = state_->tiles.part();
  // A node has or reads the tiles of its own rows, and those whose row meets the diagonal in one of
  // its own columns.
  TileRow in_row = part.first_row(from);
  TileRow in_column{part.first_wide(WideColumn{from.value()}).value()};
  for (TileRow i = std::min(in_row, in_column); i < state_->tiles.end_row();
       i = std::min(in_row, in_column)) {
    broadcast(read(l(i, c), version), {row_of(readers, i), column_of(readers, i)});
    if (i == in_row) in_row = in_row + part.grid_rows;
    if (i == in_column) in_column = in_column + part.grid_columns;
  }
}

/// Finds the first task of each other node: the grid comes round once in the first wide columns,
/// and in each of these once in the first rows.
void TileWalk::State::announce(const Access& tile, const TileRange& readers,
                               std::span<const TileRange> earlier) {
  const OwnPart& part = tiles.part();
  const WideColumn first = tiles.wide_of(readers.column_begin);
  const WideColumn end =
      std::min(tiles.wide_of(readers.column_end - 1) + 1, first + part.grid_columns);
  for (WideColumn j = first; j < end; ++j) {
    const TileColumn column = std::max(tiles.wide_begin(j), readers.column_begin);
    const TileRow top = tiles.first_row(readers, j);
    const TileRow bottom = std::min(readers.row_end, top + part.grid_rows);
    for (TileRow i = top; i < bottom; ++i) {
      const bool is_announced =
          std::any_of(earlier.begin(), earlier.end(),
                      [&](const TileRange& r) { return r.contains(i, column); });
      if (is_announced || (part.has_row(i) && part.has_wide(j))) continue;
      tasks.announce(tile, distribution.node(i, j), 0);
    }
  }
}

TileWalk::Tasks TileWalk::over(const TileRange& range) {
  require(!is_walking_, "TileWalk::over: the walk over the range before has not ended");
  state_->range = range;
  state_->own = state_->tiles.first(range);
  choose();
  return {this};
}

/// Makes the next task of the range the current one.
void TileWalk::choose() {
  State& s = *state_;
  is_inserted_ = false;
  is_walking_ = s.own.column < s.range.column_end;
  if (!is_walking_) return s.finish();
  row_ = s.own.row;
  column_ = s.own.column;
}

void TileWalk::advance() {
  require(is_inserted_, "TileWalk: no task was inserted for tile ({}, {})", row_.value(),
          column_.value());
  state_->tiles.advance(state_->range, state_->own);
  choose();
}

void TileWalk::State::finish() {
  std::erase_if(sources, [&](const Source& source) {
    if (!range.contains(source.last)) return false;
    tasks.release(source.access);
    versions.erase(source.access.tile);
    return true;
  });
  if (!is_alone) writes.add(tiles, range);
}

/// The access to a tile as it is now.
Access TileWalk::State::with_version(Access access) const {
  if (access.version != protocol::count_here || is_alone) return access;
  require(access.tile.matrix == matrix,
          "TileWalk::broadcast: tile {} of matrix {} needs its version", access.tile.index,
          access.tile.matrix.value());
  const std::int32_t rows = tiles.end_row().value();
  access.version =
      writes.of(TileRow{access.tile.index % rows}, TileColumn{access.tile.index / rows});
  return access;
}

TaskStream::Room TileWalk::insert(const Kernel& kernel, const AccessList& list,
                                  const TaskOptions& options) {
  State& s = *state_;
  const std::span<const Access> accesses = list.all();
  const TileId tile{s.matrix, row_.value() + column_.value() * s.tiles.end_row().value()};
  require(is_walking_ && !is_inserted_ && !accesses.empty() &&
              accesses.front().mode != AccessMode::read && accesses.front().tile == tile,
          "TileWalk: tile ({}, {}) takes one task, whose first access writes it; '{}' is not that",
          row_.value(), column_.value(), kernel.name);
  is_inserted_ = true;
  if (s.is_alone || accesses.size() > protocol::accesses_max) {
    return s.tasks.insert(kernel, list, options);
  }
  std::array<Access, protocol::accesses_max> known;
  std::copy(accesses.begin(), accesses.end(), known.begin());
  const auto versioned = std::span(known).first(accesses.size());
  for (Access& access : versioned) {
    if (access.home.node == s.tasks.node() || access.version != protocol::count_here) continue;
    const Version* const version = s.versions.find(access.tile);
    require(version != nullptr,
            "TileWalk: task '{}' of tile ({}, {}) reads tile {} of matrix {} on node {}, which was "
            "not broadcast",
            kernel.name, row_.value(), column_.value(), access.tile.index,
            access.tile.matrix.value(), access.home.node.value());
    access.version = *version;
  }
  return s.tasks.insert(kernel, std::span<const Access>(versioned), options);
}

}  // namespace heddle
