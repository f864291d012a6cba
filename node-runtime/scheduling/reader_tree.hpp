#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/index.hpp"
#include "node-runtime/protocol/types.hpp"

namespace heddle {

/// From where the nodes that read a version have it.
enum class ReaderWay : std::uint8_t {
  automatic,  ///< as is predicted to be the fastest
  home,       ///< all from its home
  tree,       ///< once to each host, and from reader to reader
};

/// The way of a version to the nodes that read it: once to each host, to its first reader there,
/// which passes it on to the others; between hosts from the home to all of them, or along chains in
/// the order of their first reads, so that whoever needs it first has it first (000 section 5.2,
/// 001 section 5.3).
///
/// Each node finds from whom it has a version and to whom it passes it on by itself, without a
/// message. Who passes it on comes before those who have it from there in the order of first reads:
/// decision 044 says why nothing deadlocks then.
///
/// Pure. Thread: one at a time.
class ReaderTree {
 public:
  struct Shape {
    /// Versions that are read on at most as many other hosts go to all of them from the home.
    std::int32_t flat_max = 0;
    /// With at most as many, along one chain; with more, along two, which take turns.
    std::int32_t one_chain_max = 24;
  };

  /// `hosts`: the host of each node, 0 to the number of hosts - 1.
  ReaderTree(std::vector<std::int32_t> hosts, const Shape& shape);
  /// The tree of all jobs on these nodes.
  [[nodiscard]] static ReaderTree of(ReaderWay way, std::vector<std::int32_t> hosts);

  /// What `node` does with a version that lives on `home` and has these readers. `node` is one of
  /// them, or the home.
  [[nodiscard]] protocol::Route route(std::span<const protocol::Reader> readers, NodeId home,
                                      NodeId node);

 private:
  /// The first reader on a host; of which version, says `turn`.
  struct Leader {
    std::uint64_t turn = 0;
    NodeId node;
  };
  [[nodiscard]] Leader& leader_of(NodeId node) {
    return leaders_[static_cast<std::size_t>(hosts_[static_cast<std::size_t>(node.value())])];
  }
  void find_leaders(std::span<const protocol::Reader> readers, NodeId home);

  std::vector<std::int32_t> hosts_;
  Shape shape_;
  std::vector<Leader> leaders_;  ///< by host
  std::vector<NodeId> order_;    ///< leaders of other hosts than the home's, in that of the readers
  std::uint64_t turn_ = 0;
};

}  // namespace heddle
