#include "node-runtime/collectives/schedule/trees.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/assert.hpp"

namespace heddle::collectives {
namespace {

/// Steps from the root of a binary tree to a position.
std::int32_t binary_depth(std::int32_t position) {
  return static_cast<std::int32_t>(std::bit_width(static_cast<std::uint32_t>(position) + 1)) - 1;
}

/// The position as far to the right in the other half of the tree, of which the last row may be
/// too short for it.
std::int32_t mirror_of(std::int32_t position) {
  const std::int32_t half = std::int32_t{1} << (binary_depth(position) - 1);
  return half_of(position) == Half::second ? position - half : position + half;
}

/// From whom a position gets the half of the message that its own side of the tree lacks, and to
/// whom it gives its own.
void pair_halves(std::int32_t position, std::int32_t size, TreeNeighbours& found) {
  const auto lacks_mirror = [size](std::int32_t p) { return p < size && mirror_of(p) >= size; };
  const auto add_takers = [&](std::int32_t of) {
    for (const std::int32_t child : {2 * of + 1, 2 * of + 2}) {
      if (lacks_mirror(child)) found.takers.push_back(child);
    }
  };
  if (position == 0) return add_takers(0);
  if (!lacks_mirror(position)) {
    found.partner = mirror_of(position);
    return add_takers(mirror_of(position));
  }
  found.giver = *found.parent == 0 ? 0 : mirror_of(*found.parent);
}

TreeNeighbours binary_neighbours(std::int32_t position, std::int32_t size) {
  TreeNeighbours found;
  if (position > 0) found.parent = (position - 1) / 2;
  for (const std::int64_t child :
       {std::int64_t{2} * position + 1, std::int64_t{2} * position + 2}) {
    if (child < size) found.children.push_back(static_cast<std::int32_t>(child));
  }
  return found;
}

/// The parent lacks the position's lowest bit; children add a lower one.
TreeNeighbours binomial_neighbours(std::int32_t position, std::int32_t size) {
  TreeNeighbours found;
  const auto bits = static_cast<std::uint32_t>(position);
  if (position > 0) found.parent = static_cast<std::int32_t>(bits & (bits - 1));
  const std::uint32_t lowest =
      position > 0 ? bits & (~bits + 1) : std::bit_ceil(static_cast<std::uint32_t>(size));
  for (std::uint32_t step = lowest / 2; step > 0; step /= 2) {
    const std::int64_t child = std::int64_t{position} + step;
    if (child < size) found.children.push_back(static_cast<std::int32_t>(child));
  }
  return found;
}

}  // namespace

std::string_view name_of(Tree tree) {
  constexpr std::string_view names[] = {"flat", "chain", "binary", "binomial", "split_binary"};
  return names[static_cast<std::size_t>(tree)];
}

Half half_of(std::int32_t position) {
  HEDDLE_CHECK(position > 0, "position {} has both halves", position);
  const std::int32_t half = std::int32_t{1} << (binary_depth(position) - 1);
  return position - (2 * half - 1) < half ? Half::first : Half::second;
}

TreeNeighbours tree_neighbours(Tree tree, std::int32_t position, std::int32_t size) {
  HEDDLE_CHECK(0 <= position && position < size, "position {} of {}", position, size);
  TreeNeighbours found;
  switch (tree) {
    case Tree::flat:
      if (position > 0) {
        found.parent = 0;
      } else {
        for (std::int32_t child = 1; child < size; ++child) found.children.push_back(child);
      }
      return found;
    case Tree::chain:
      if (position > 0) found.parent = position - 1;
      if (position + 1 < size) found.children.push_back(position + 1);
      return found;
    case Tree::binary:
      return binary_neighbours(position, size);
    case Tree::binomial:
      return binomial_neighbours(position, size);
    case Tree::split_binary:
      found = binary_neighbours(position, size);
      pair_halves(position, size, found);
      return found;
  }
  HEDDLE_CHECK(false, "a tree of number {}", static_cast<int>(tree));
  return found;
}

double tree_seconds(Tree tree, std::int32_t size, double bytes, double fragment_bytes,
                    const HockneyRates& rates) {
  HEDDLE_CHECK(size >= 1 && bytes >= 0 && fragment_bytes > 0,
               "{} members, {} bytes in fragments of {}", size, bytes, fragment_bytes);
  if (size == 1) return 0;
  const double fragments = std::max(1.0, std::ceil(bytes / fragment_bytes));
  const double each = rates.alpha_s + rates.beta_s_per_byte * bytes / fragments;
  const double others = size - 1;
  const auto levels = static_cast<double>(std::bit_width(static_cast<std::uint32_t>(size)));
  switch (tree) {
    case Tree::flat:
      return fragments * others * each;
    case Tree::chain:
      return (others + fragments - 1) * each;
    case Tree::binomial:
      return fragments * static_cast<double>(std::bit_width(static_cast<std::uint32_t>(size - 1))) *
             each;
    case Tree::binary:
      // Two sends of each fragment; with one child (two members) one.
      if (size == 2) return fragments * each;
      return 2 * (levels + fragments - 2) * each;
    case Tree::split_binary:
      if (size == 2) return fragments * each;
      return 2 * (levels + std::ceil(fragments / 2) - 2) * each + rates.alpha_s +
             rates.beta_s_per_byte * bytes / 2;
  }
  HEDDLE_CHECK(false, "a tree of number {}", static_cast<int>(tree));
  return 0;
}

}  // namespace heddle::collectives
