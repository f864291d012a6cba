#include "algorithms/matrix/kept_elements.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"

namespace heddle {

namespace {

bool contains(const std::vector<RowRange>& ranges, std::int64_t row) {
  return std::any_of(ranges.begin(), ranges.end(), [row](const RowRange& range) {
    return range.begin.value() <= row && row < range.end.value();
  });
}

/// Sorts, and joins ranges that overlap or touch.
void unite(std::vector<RowRange>& ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const RowRange& a, const RowRange& b) { return a.begin < b.begin; });
  std::vector<RowRange> joined;
  for (const RowRange& range : ranges) {
    if (range.begin == range.end) continue;
    if (!joined.empty() && range.begin <= joined.back().end) {
      joined.back().end = std::max(joined.back().end, range.end);
    } else {
      joined.push_back(range);
    }
  }
  ranges = std::move(joined);
}

}  // namespace

KeptElements::KeptElements(std::int64_t rows, std::int64_t columns, Stored stored,
                           const WantedRows& wanted)
    : stored_(stored) {
  HEDDLE_CHECK(stored == Stored::all || rows == columns, "{} x {}", rows, columns);
  std::vector<RowRange> ranges;
  for (std::int64_t column = 0; column < columns; ++column) {
    ranges.clear();
    wanted(GlobalColumn{column}, ranges);
    List list = pack(ranges, rows);
    if (lists_.empty() || list != lists_.back()) lists_.push_back(std::move(list));
    column_list_.push_back(static_cast<std::int32_t>(lists_.size()) - 1);
  }
  if (stored == Stored::lower_triangle) add_mirrors(columns);
  place_columns(columns);
}

KeptElements::List KeptElements::pack(const std::vector<RowRange>& ranges, std::int64_t rows) {
  List list;
  std::int64_t last = 0;
  std::int64_t before = 0;
  for (const RowRange& range : ranges) {
    const std::int64_t begin = range.begin.value();
    const std::int64_t end = range.end.value();
    HEDDLE_CHECK(last <= begin && begin <= end && end <= rows, "[{}, {}) after {} of {}", begin,
                 end, last, rows);
    last = end;
    if (begin == end) continue;
    if (!list.empty() && list.back().end == begin) {
      list.back().end = end;
    } else {
      list.push_back({begin, end, before});
    }
    before += end - begin;
  }
  return list;
}

std::int64_t KeptElements::kept_before(const List& list, std::int64_t row) {
  const auto after = std::partition_point(list.begin(), list.end(),
                                          [row](const Range& range) { return range.begin < row; });
  if (after == list.begin()) return 0;
  const Range& range = *std::prev(after);
  return range.before + std::min(row, range.end) - range.begin;
}

/// Adds to each column j the rows i for which (j, i) is wanted.
void KeptElements::add_mirrors(std::int64_t size) {
  struct Group {  // columns [begin, end) want the same rows
    std::int64_t begin;
    std::int64_t end;
    std::vector<RowRange> ranges;
  };
  std::vector<Group> groups;
  // What column j gets changes only where a group or a range begins or ends.
  std::vector<std::int64_t> changes;
  for (std::int64_t j = 0; j < size; ++j) {
    const bool is_new = j == 0 || column_list_[static_cast<std::size_t>(j)] !=
                                      column_list_[static_cast<std::size_t>(j - 1)];
    if (is_new) {
      groups.push_back({j, j, ranges(GlobalColumn{j})});
      changes.push_back(j);
      for (const RowRange& range : groups.back().ranges) {
        changes.push_back(range.begin.value());
        changes.push_back(range.end.value());
      }
    }
    groups.back().end = j + 1;
  }
  std::sort(changes.begin(), changes.end());
  changes.erase(std::unique(changes.begin(), changes.end()), changes.end());

  std::vector<List> lists;
  auto change = changes.begin();
  for (std::int64_t j = 0; j < size; ++j) {
    const auto column = static_cast<std::size_t>(j);
    if (change != changes.end() && *change == j) {
      ++change;
      std::vector<RowRange> united = ranges(GlobalColumn{j});
      for (const Group& group : groups) {
        if (contains(group.ranges, j)) {
          united.push_back({GlobalRow{group.begin}, GlobalRow{group.end}});
        }
      }
      unite(united);
      lists.push_back(pack(united, size));
    }
    column_list_[column] = static_cast<std::int32_t>(lists.size()) - 1;
  }
  lists_ = std::move(lists);
}

void KeptElements::place_columns(std::int64_t columns) {
  std::int64_t count = 0;
  for (std::int64_t j = 0; j < columns; ++j) {
    const List& list = lists_[static_cast<std::size_t>(column_list_[static_cast<std::size_t>(j)])];
    const std::int64_t total =
        list.empty() ? 0 : list.back().before + list.back().end - list.back().begin;
    const std::int64_t above = stored_ == Stored::lower_triangle ? kept_before(list, j) : 0;
    column_offset_.push_back(count - above);
    count += total - above;
  }
  values_.assign(static_cast<std::size_t>(count), 0.0);
}

std::vector<RowRange> KeptElements::ranges(GlobalColumn column) const {
  std::vector<RowRange> result;
  const std::int32_t list = column_list_[static_cast<std::size_t>(column.value())];
  for (const Range& range : lists_[static_cast<std::size_t>(list)]) {
    result.push_back({GlobalRow{range.begin}, GlobalRow{range.end}});
  }
  return result;
}

std::optional<std::size_t> KeptElements::find(GlobalRow row, GlobalColumn column) const {
  std::int64_t i = row.value();
  std::int64_t j = column.value();
  if (stored_ == Stored::lower_triangle && i < j) std::swap(i, j);
  const List& list = lists_[static_cast<std::size_t>(column_list_[static_cast<std::size_t>(j)])];
  const auto after = std::partition_point(list.begin(), list.end(),
                                          [i](const Range& range) { return range.begin <= i; });
  if (after == list.begin() || i >= std::prev(after)->end) return std::nullopt;
  const std::int64_t in_column = std::prev(after)->before + i - std::prev(after)->begin;
  return static_cast<std::size_t>(column_offset_[static_cast<std::size_t>(j)] + in_column);
}

void KeptElements::read(GlobalRow row, GlobalColumn column, TileView out) const {
  const std::int64_t row_end = row.value() + out.rows;
  const std::int64_t column_end = column.value() + out.columns;
  const bool lower = stored_ == Stored::lower_triangle;
  for (std::int64_t j = column.value(); j < column_end; ++j) {
    const std::int64_t begin = lower ? std::max(row.value(), j) : row.value();
    if (begin >= row_end) continue;
    copy(j, begin, row_end, &out(begin - row.value(), j - column.value()), 1);
  }
  if (!lower) return;
  // Above the diagonal, row i of the block is a piece of the stored column i.
  for (std::int64_t i = row.value(); i < row_end; ++i) {
    const std::int64_t begin = std::max(column.value(), i + 1);
    if (begin >= column_end) continue;
    copy(i, begin, column_end, &out(i - row.value(), begin - column.value()), out.leading);
  }
}

/// out[k * step] = element (begin + k, column).
void KeptElements::copy(std::int64_t column, std::int64_t begin, std::int64_t end, double* out,
                        std::int64_t step) const {
  while (begin < end) {
    const auto first = find(GlobalRow{begin}, GlobalColumn{column});
    HEDDLE_CHECK(first.has_value(), "element ({}, {}) was not announced to prepare()", begin,
                 column);
    const List& list =
        lists_[static_cast<std::size_t>(column_list_[static_cast<std::size_t>(column)])];
    const auto after = std::partition_point(
        list.begin(), list.end(), [begin](const Range& range) { return range.begin <= begin; });
    const std::int64_t stop = std::min(end, std::prev(after)->end);
    const double* source = values_.data() + *first;
    for (; begin < stop; ++begin, out += step) *out = *source++;
  }
}

}  // namespace heddle
