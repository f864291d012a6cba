#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/index.hpp"

namespace heddle::protocol {

/// A job: one submitted program (a factorization, a solve). Numbered alike on all nodes, in the
/// order of submission.
using JobId = Index<struct JobTag, std::int32_t>;

/// A matrix known to the node; numbered alike on all nodes, in the order of creation.
using MatrixId = Index<struct MatrixTag, std::int32_t>;

/// A tile of a matrix: `index` counts tiles column by column.
struct TileId {
  MatrixId matrix;
  std::int32_t index = 0;
  friend constexpr auto operator<=>(const TileId&, const TileId&) = default;
};

/// Most places of a node: the host, and as many devices as a configuration may ask for.
inline constexpr std::int32_t places_max = 65;

/// Version of a tile that is named by the number of writes to it within the current job.
inline constexpr Version count_here{-1};

enum class AccessMode : std::uint8_t { read, write, read_write };

/// One access of a task to a tile, with all that the protocol decides by: the tile, its home, how
/// it is accessed.
///
/// `version` is the version that is read, or for `write` the one that is replaced, counted in
/// writes since the beginning of the job. A program that every node walks in full may leave it to
/// be counted (`count_here`); a pruned program must state it for tiles that live on other nodes.
struct Access {
  TileId tile;
  Location home;
  AccessMode mode = AccessMode::read;
  Version version = count_here;
};

/// What is done with the tiles: opaque to the protocol, handed to whoever runs the task.
struct Work {
  const void* kernel = nullptr;
  std::array<std::uint64_t, 4> parameters{};
  std::int64_t info_base = 0;  ///< added to the index at which the kernel reports a failure
};

/// The eight kinds of delegates that a task leaves in the lists of tiles (001 section 6.1).
enum class InstanceKind : std::uint8_t {
  owner,                          ///< main output, at the place where the task runs
  native_input,                   ///< input that is at hand at the task's place
  intranode_alien_input,          ///< input that must be copied from another place of the node
  internode_alien_input,          ///< input of a task of another node, kept where the input lives
  native_minor_output,            ///< minor output that lives at the task's place
  sink_minor_output,              ///< minor output, kept where it lives, written elsewhere
  intranode_source_minor_output,  ///< the writing end of a sink on the same node
  internode_source_minor_output,  ///< the writing end of a sink on another node
};

[[nodiscard]] const char* name(InstanceKind kind);

/// A block of memory as the protocol sees it: block `index` of pool `pool`. `memory/` knows the
/// address.
struct BlockRef {
  static constexpr std::int32_t none = -1;
  std::int32_t pool = none;
  std::int32_t index = none;
  [[nodiscard]] bool valid() const { return pool != none; }
  friend constexpr auto operator<=>(const BlockRef&, const BlockRef&) = default;
};

/// Most accesses of one task.
inline constexpr std::size_t accesses_max = 8;

/// The class of each tile of a matrix. Shared: nodes that are simulated together have one.
using ClassTable = std::shared_ptr<const std::vector<std::int32_t>>;

}  // namespace heddle::protocol
