#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

/// Trees of messages within a group of one level, by positions: 0 is the root, and neighbours in
/// number are neighbours in place (LevelGroup::position). 000 sections 5.1 and 5.2.2. A rank asks
/// for its own neighbours only: O(their number + log size).
namespace heddle::collectives {

enum class Tree : std::uint8_t {
  flat,          ///< the root sends to all
  chain,         ///< each to the next one
  binary,        ///< each to two
  binomial,      ///< each to as many as the logarithm of those behind it
  split_binary,  ///< binary; each subtree of the root gets half of the message, then pairs exchange
};
inline constexpr Tree all_trees[] = {Tree::flat, Tree::chain, Tree::binary, Tree::binomial,
                                     Tree::split_binary};
[[nodiscard]] std::string_view name_of(Tree tree);

struct TreeNeighbours {
  std::optional<std::int32_t> parent;  ///< none: the root
  std::vector<std::int32_t> children;  ///< in the order of sends: the longest way first
  /// Split binary: with whom the other half is exchanged, at the other side of the tree.
  std::optional<std::int32_t> partner;
  /// Where the other side lacks the partner: who gives the other half, the parent's partner or the
  /// root, and to whom a position gives it besides. So nobody gives it to more than three.
  std::optional<std::int32_t> giver;
  std::vector<std::int32_t> takers;
};
/// The neighbours of `position` in a group of `size`.
[[nodiscard]] TreeNeighbours tree_neighbours(Tree tree, std::int32_t position, std::int32_t size);

/// Split binary: the half that a position other than 0 gets from its parent.
enum class Half : std::uint8_t { first, second };
[[nodiscard]] Half half_of(std::int32_t position);

/// A message takes alpha + beta times its bytes (Hockney).
struct HockneyRates {
  double alpha_s = 0;  ///< start of a message
  double beta_s_per_byte = 0;
};
/// Seconds until all have a message of `bytes` that the root sends in fragments of at most
/// `fragment_bytes`, each of which is forwarded when it has come: Table 5.1. 0 for a group of one.
[[nodiscard]] double tree_seconds(Tree tree, std::int32_t size, double bytes, double fragment_bytes,
                                  const HockneyRates& rates);

}  // namespace heddle::collectives
