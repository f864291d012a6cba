#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "node-runtime/protocol/types.hpp"
#include "node-runtime/scheduling/reader_tree.hpp"
#include "tests/support/program.hpp"

namespace heddle::simulation {

/// From where nodes have the versions that they read.
enum class Ways : std::uint8_t {
  announced,  ///< readers are not known: from homes, to those that are announced
  home,       ///< known readers, all from homes
  random,     ///< each from the home or any reader before it
  chain,      ///< each from the reader before it
  hosts,      ///< by the runtime's own tree, with hosts and a shape that the seed draws
  backwards,  ///< against the rule: from readers behind it
};

/// The readers of a program's versions, as its statements have them. Some versions' readers are not
/// known, and some lists lack a reader, unless `all_known`. The program's versions are numbered.
[[nodiscard]] KnownReaders readers_of(const Program& program, std::uint64_t seed, bool all_known);

/// The readers of a job's versions and the ways to them, the same on all nodes.
class ReaderWays {
 public:
  ReaderWays(KnownReaders readers, Ways ways, std::int32_t nodes, std::uint64_t seed);

  [[nodiscard]] std::vector<protocol::Reader> readers(protocol::TileId tile, Version number) const;
  [[nodiscard]] protocol::Route route(std::span<const protocol::Reader> readers, NodeId home,
                                      NodeId node);

 private:
  [[nodiscard]] std::size_t parent_of(std::size_t reader,
                                      std::span<const protocol::Reader> readers) const;

  Ways ways_;
  std::uint64_t seed_;
  KnownReaders readers_;
  ReaderTree tree_;
};

}  // namespace heddle::simulation
