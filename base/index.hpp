#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace heddle {

/// A strong integer type: names one kind of thing and converts to no other kind. Only step,
/// distance and order are defined; `value()` and the explicit constructor convert.
template <class Tag, class Rep>
class Index {
 public:
  using rep = Rep;

  constexpr Index() = default;
  constexpr explicit Index(Rep value) : value_(value) {}

  [[nodiscard]] constexpr Rep value() const { return value_; }

  friend constexpr auto operator<=>(Index, Index) = default;

  constexpr Index& operator++() {
    ++value_;
    return *this;
  }
  friend constexpr Index operator+(Index a, Rep b) { return Index(static_cast<Rep>(a.value_ + b)); }
  friend constexpr Index operator-(Index a, Rep b) { return Index(static_cast<Rep>(a.value_ - b)); }
  friend constexpr Rep operator-(Index a, Index b) { return static_cast<Rep>(a.value_ - b.value_); }

 private:
  Rep value_{};
};

/// A node: one runtime process, an MPI rank.
using NodeId = Index<struct NodeTag, std::int32_t>;

/// A place of one node: 0 is the host, 1.. are its devices.
using PlaceId = Index<struct PlaceTag, std::int32_t>;

/// Host memory and CPU workers.
inline constexpr PlaceId host_place{0};

/// A place of the whole cluster.
struct Location {
  NodeId node;
  PlaceId place;
  friend constexpr auto operator<=>(const Location&, const Location&) = default;
};

/// Row of tiles in a whole matrix.
using TileRow = Index<struct TileRowTag, std::int32_t>;

/// Column of tiles (strip piece or remainder) in a whole matrix.
using TileColumn = Index<struct TileColumnTag, std::int32_t>;

/// Wide column of a whole matrix: as many tile columns as it is cut into (TileLayout).
using WideColumn = Index<struct WideColumnTag, std::int32_t>;

/// Row or column of elements in a whole matrix.
using GlobalRow = Index<struct GlobalRowTag, std::int64_t>;
using GlobalColumn = Index<struct GlobalColumnTag, std::int64_t>;

/// Number of the write that made a version of a tile; 0 is the initial content.
using Version = Index<struct VersionTag, std::int32_t>;

}  // namespace heddle

template <class Tag, class Rep>
struct std::hash<heddle::Index<Tag, Rep>> {
  std::size_t operator()(heddle::Index<Tag, Rep> i) const { return std::hash<Rep>{}(i.value()); }
};
