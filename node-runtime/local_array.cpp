#include "node-runtime/local_array.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace heddle {
namespace {

/// Whether tile row i, or wide column j, has tiles on the node in some column, or row.
bool has_row(const MatrixSpec& spec, NodeId node, TileRow i) {
  const Distribution& d = spec.distribution;
  const WideColumn mirrored = spec.layout.diagonal_wide(i);
  switch (spec.dealing) {
    case Dealing::cyclic:
      break;
    case Dealing::transposed:
      return mirrored.value() % d.grid_columns == node.value() % d.grid_columns;
    case Dealing::diagonal:
      return d.node(i, mirrored) == node;
  }
  return i.value() / d.row_group % d.grid_rows == node.value() / d.grid_columns;
}

bool has_wide(const MatrixSpec& spec, NodeId node, WideColumn j) {
  const Distribution& d = spec.distribution;
  switch (spec.dealing) {
    case Dealing::cyclic:
      break;
    case Dealing::transposed:
      return j.value() / d.row_group % d.grid_rows == node.value() / d.grid_columns;
    case Dealing::diagonal:
      return true;
  }
  return j.value() % d.grid_columns == node.value() % d.grid_columns;
}

}  // namespace

LocalArray::LocalArray(const MatrixSpec& spec, NodeId node) : layout_(spec.layout) {
  for (TileRow i{0}; i < layout_.end_row(); ++i) {
    const bool is_own = has_row(spec, node, i);
    row_begins_.push_back(is_own ? rows_ : none);
    if (is_own) rows_ += layout_.row_count(i);
  }
  for (WideColumn j{0}; j < layout_.end_wide(); ++j) {
    const bool is_own = has_wide(spec, node, j);
    column_begins_.push_back(is_own ? columns_ : none);
    const std::int64_t begin = j.value() * layout_.wide_width();
    if (is_own) columns_ += std::min(layout_.wide_width(), layout_.columns - begin);
  }
  HEDDLE_EXPENSIVE(is_valid());
}

std::int64_t LocalArray::offset(TileRow i, TileColumn c, std::int64_t leading) const {
  const std::int64_t row = row_begins_.at(static_cast<std::size_t>(i.value()));
  const std::int64_t wide = column_begins_.at(static_cast<std::size_t>(layout_.wide_of(c).value()));
  HEDDLE_CHECK(row != none && wide != none, "tile ({}, {}) is not this node's", i.value(),
               c.value());
  return row + (wide + layout_.offset_in_wide(c)) * leading;
}

bool LocalArray::is_valid() const {
  std::int64_t row = 0;
  for (TileRow i{0}; i < layout_.end_row(); ++i) {
    const std::int64_t begin = row_begins_[static_cast<std::size_t>(i.value())];
    if (begin == none) continue;
    if (begin != row) return false;
    row += layout_.row_count(i);
  }
  std::int64_t column = 0;
  for (WideColumn j{0}; j < layout_.end_wide(); ++j) {
    const std::int64_t begin = column_begins_[static_cast<std::size_t>(j.value())];
    if (begin == none) continue;
    if (begin != column) return false;
    column += std::min(layout_.wide_width(), layout_.columns - j.value() * layout_.wide_width());
  }
  return row == rows_ && column == columns_;
}

}  // namespace heddle
