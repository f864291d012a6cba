#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "node-runtime/collectives/schedule/places.hpp"

namespace heddle::collectives {

/// One rank's place in the tree of the btb way (002 section 4.1.2): the bracket over all ranks. At
/// each range of the bracket one rank has the value: the root if it is in there, else the first
/// one. It has the value of its own part, and gets that of the other part from the rank that has
/// it.
///
/// With the root 0 that is the binomial tree: at level 1 odd ranks give to the even ones before
/// them, at the next levels the distance doubles. Half of the ranks get something; with an odd
/// number and a root that is the last one, one more.
struct BufferTree {
  struct Child {
    Rank rank{0};
    std::int32_t level = 1;    ///< ranges of up to 2^level ranks
    bool comes_first = false;  ///< its part is the left one
    friend bool operator==(const Child&, const Child&) = default;
  };
  std::optional<Rank> parent;   ///< none: the root
  std::vector<Child> children;  ///< in the order of levels
};

/// O(log ranks).
[[nodiscard]] BufferTree buffer_tree(std::int32_t ranks, Rank root, Rank own);

}  // namespace heddle::collectives
