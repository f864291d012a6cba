#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/index.hpp"
#include "node-runtime/tasks.hpp"

namespace heddle::protocol {

/// One submitted program (a factorization, a solve). Numbers follow the order of submission, equal
/// on all nodes.
using JobId = Index<struct JobTag, std::int32_t>;

/// Places of a node at most: the host and the most devices a configuration may have.
inline constexpr std::int32_t places_max = 65;

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

/// Names a version among those of all jobs.
struct VersionKey {
  JobId job;
  TileId tile;
  Version number;
  friend bool operator==(const VersionKey&, const VersionKey&) = default;

  struct Hash {
    std::size_t operator()(const VersionKey& k) const;
  };
};

/// Way of a version on one node: whom it has it from, unless it lives there, and whom it passes it
/// on to, in the order of their first reads.
struct Route {
  NodeId from;
  std::vector<Reader> to;
};

/// The class of each tile of a matrix. Shared between nodes that are simulated together.
using ClassTable = std::shared_ptr<const std::vector<std::int32_t>>;

}  // namespace heddle::protocol
