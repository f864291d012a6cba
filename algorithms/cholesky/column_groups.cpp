#include "algorithms/cholesky/column_groups.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "algorithms/walk/job.hpp"
#include "algorithms/walk/own_part.hpp"

namespace heddle {
namespace {

/// The share of a device's memory for the columns of a group; the rest is for the panel.
constexpr double group_share = 0.75;

/// Bytes of this node's remainders in each wide column.
std::vector<double> bytes_of_columns(const TileLayout& l, const OwnPart& own) {
  std::vector<double> bytes(static_cast<std::size_t>(l.wide_columns()), 0.0);
  for (WideColumn j = own.first_wide(WideColumn{0}); j < l.end_wide(); j = j + own.grid_columns) {
    double& column = bytes[static_cast<std::size_t>(j.value())];
    for (TileRow i = own.first_row(TileRow{j.value()}); i < l.end_row(); i = i + own.grid_rows) {
      column += 8.0 * static_cast<double>(l.row_count(i) * (l.wide_width() - l.strip));
    }
  }
  return bytes;
}

}  // namespace

std::int32_t MemoryUse::priority_span() const {
  if (has_room) return std::numeric_limits<std::int32_t>::max();
  const auto columns = static_cast<std::int32_t>(groups.size());
  std::int32_t widest = 1;
  for (TileColumn c{0}; c.value() < columns; ++c) {
    widest = std::max(widest, c - groups[static_cast<std::size_t>(c.value())] + 1);
  }
  // At least the distance between the updates of a group and those of the next one.
  return column_priority(columns, TileColumn{columns - widest}, 3) + 1;
}

MemoryUse use_of_memory(const Matrix<double>& a, NodeId node, std::uint64_t device_memory) {
  const TileLayout& l = a.layout();
  MemoryUse use;
  for (TileColumn c{0}; c < l.end_column(); ++c) use.groups.push_back(c);
  const std::int32_t devices = a.distribution().devices;
  if (devices == 0 || device_memory == 0) return use;

  const std::vector<double> bytes = bytes_of_columns(l, OwnPart(a.distribution(), node));
  double all = 0;
  for (const double column : bytes) all += column;
  const double memory = static_cast<double>(device_memory) * devices;
  use.has_room = all <= group_share * memory;
  if (all <= memory) return use;
  const double most = group_share * memory - *std::max_element(bytes.begin(), bytes.end());
  TileColumn first{0};
  double taken = 0;
  for (WideColumn j{0}; j < l.end_wide(); ++j) {
    const double column = bytes[static_cast<std::size_t>(j.value())];
    taken += column;
    if (taken > most) {
      first = l.wide_begin(j);
      taken = column;
    }
    for (TileColumn c = l.wide_begin(j); c < l.wide_begin(j + 1); ++c) {
      // A piece keeps its distance from the first piece of its wide column.
      use.groups[static_cast<std::size_t>(c.value())] = first + l.piece_of(c);
    }
  }
  return use;
}

}  // namespace heddle
