#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/index.hpp"

namespace heddle::protocol {

/// One submitted program (a factorization, a solve). Numbers follow the order of submission, equal
/// on all nodes.
using JobId = Index<struct JobTag, std::int32_t>;

/// A matrix of the node. Numbers follow the order of creation, equal on all nodes.
using MatrixId = Index<struct MatrixTag, std::int32_t>;

/// A tile of a matrix: `index` counts tiles column by column.
struct TileId {
  MatrixId matrix;
  std::int32_t index = 0;
  /// Position in an array that has an element per tile of the matrix.
  [[nodiscard]] constexpr std::size_t position() const { return static_cast<std::size_t>(index); }
  friend constexpr auto operator<=>(const TileId&, const TileId&) = default;
};

/// Places per node at most: the host and the devices that a configuration may have.
inline constexpr std::int32_t places_max = 65;

/// Names a version by counting the writes of the current job.
inline constexpr Version count_here{-1};

enum class AccessMode : std::uint8_t { read, write, read_write };

/// One access of a task to a tile: all that the protocol decides by.
///
/// `version` is the version that is read, or for `write` the one that is replaced, counted in
/// writes since the start of the job. A program that every node walks in full may leave it
/// `count_here`; a pruned program must state it for tiles of other nodes.
struct Access {
  TileId tile;
  Location home;
  AccessMode mode = AccessMode::read;
  Version version = count_here;
};

/// The computation: opaque to the protocol, passed to the thread that runs the task.
struct Work {
  const void* kernel = nullptr;
  std::array<std::uint64_t, 4> parameters{};
  std::int64_t info_base = 0;  ///< added to the index of a failure that the kernel reports
};

/// The eight kinds of task instances (001 section 6.1). Owners, inputs and native minor outputs
/// are entries in the lists of versions; sources are kinds of Operand; sinks are Sink records. See
/// the table in fire.cpp.
enum class InstanceKind : std::uint8_t {
  owner,                          ///< main output, at the task's place
  native_input,                   ///< input that is present at the task's place
  intranode_alien_input,          ///< input to copy from another place of the node
  internode_alien_input,          ///< input of another node's task, kept at the input's home
  native_minor_output,            ///< minor output at the task's place
  sink_minor_output,              ///< minor output written at another place, kept at its home
  intranode_source_minor_output,  ///< writing end of a sink on the same node
  internode_source_minor_output,  ///< writing end of a sink on another node
};

[[nodiscard]] const char* name(InstanceKind kind);

/// Block `index` of pool `pool`; `memory/` knows its address.
struct BlockRef {
  static constexpr std::int32_t none = -1;
  std::int32_t pool = none;
  std::int32_t index = none;
  [[nodiscard]] bool valid() const { return pool != none; }
  friend constexpr auto operator<=>(const BlockRef&, const BlockRef&) = default;
};

/// Accesses per task at most.
inline constexpr std::size_t accesses_max = 8;

/// The class of each tile of a matrix. Shared between nodes that are simulated together.
using ClassTable = std::shared_ptr<const std::vector<std::int32_t>>;

}  // namespace heddle::protocol
