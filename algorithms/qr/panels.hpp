#pragma once

#include <algorithm>
#include <cstdint>

#include "algorithms/qr/program.hpp"
#include "algorithms/qr/qr_matrix.hpp"

/// Which tall tiles a panel of QR has, and how many panels write them.
namespace heddle::qr_tree {

[[nodiscard]] inline bool goes_up(Work work) {
  return work == Work::apply || work == Work::generate;
}

/// The tall tile that the diagonal passes through in column c.
[[nodiscard]] inline TileRow top_of(const QrMatrix& q, TileColumn c) {
  return TileRow{q.a.layout().wide_of(c).value() / q.virtual_tiles};
}

/// Tile columns of A whose diagonal lies above tall tile i.
[[nodiscard]] inline std::int32_t panels_above(const QrMatrix& q, TileRow i) {
  const TileLayout& l = q.a.layout();
  return l.wide_begin(std::min(WideColumn{i.value() * q.virtual_tiles}, l.end_wide())).value();
}

/// Panels that pass on the rows of tall tile i beside tile column d when Q is applied.
[[nodiscard]] inline std::int32_t panels_on(const QrMatrix& q, Work work, TileRow i, TileColumn d) {
  const std::int32_t all = panels_above(q, i);
  return work == Work::generate ? std::min(all, d.value() + 1) : all;
}

/// True for a last tall tile with too few rows for an R of its own: in a binomial tree it goes with
/// the tile before it.
[[nodiscard]] inline bool is_last_and_short(const QrMatrix& q, TileRow i) {
  const TileLayout& l = q.a.layout();
  return i + 1 == l.end_row() && l.row_count(i) < l.wide_width();
}

/// True where the tiles below `top` end with a short one (make_steps).
[[nodiscard]] inline bool has_short_below(const QrMatrix& q, TileRow top) {
  const TileRow end = q.a.layout().end_row();
  return top + 1 < end && is_last_and_short(q, end - 1);
}

/// True where tall tile i, below the top one, ends a pair.
[[nodiscard]] inline bool has_pair(const QrMatrix& q, TileRow i) {
  return q.tree == QrTree::binomial && !is_last_and_short(q, i);
}

}  // namespace heddle::qr_tree
