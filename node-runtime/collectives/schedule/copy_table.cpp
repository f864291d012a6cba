#include "node-runtime/collectives/schedule/copy_table.hpp"

#include <cstdlib>
#include <limits>
#include <utility>

namespace heddle::collectives {
namespace {

/// Whether it fits better: for a number of ranks that is nearer, or for a size that is nearer.
bool fits_better(const CopyTable::Row& row, const CopyTable::Row& other, std::int32_t ranks,
                 std::int64_t bytes) {
  const auto away = [ranks](const CopyTable::Row& one) { return std::abs(one.ranks - ranks); };
  if (away(row) != away(other)) return away(row) < away(other);
  if (row.ranks != other.ranks) return row.ranks < other.ranks;
  if ((row.bytes >= bytes) != (other.bytes >= bytes)) return row.bytes >= bytes;
  return row.bytes >= bytes ? row.bytes < other.bytes : row.bytes > other.bytes;
}

}  // namespace

std::optional<std::int32_t> CopyTable::staged(CollectiveKind kind, std::int32_t ranks,
                                              std::int64_t bytes) const {
  const Row* best = nullptr;
  for (const Row& row : rows) {
    if (row.kind != kind) continue;
    if (best == nullptr || fits_better(row, *best, ranks, bytes)) best = &row;
  }
  if (best == nullptr) return std::nullopt;
  const std::int32_t copies = best->ranks - 1;
  return (best->staged * (ranks - 1) + copies / 2) / copies;
}

std::optional<CopyType> CopyTable::faster(std::int64_t bytes) const {
  if (!rates) return std::nullopt;
  const double mapped = (*rates)[0].seconds(static_cast<double>(bytes));
  const double staged = (*rates)[1].seconds(static_cast<double>(bytes));
  if (2 * mapped < staged) return CopyType::mapped;
  if (2 * staged < mapped) return CopyType::staged;
  return std::nullopt;
}

CopyTable published_copy_table() {
  constexpr std::int32_t ranks = 16;
  constexpr std::int64_t any = std::numeric_limits<std::int64_t>::max();
  using Steps = std::vector<std::pair<std::int64_t, std::int32_t>>;
  const Steps of_reductions{{8192, 15}, {65536, 11}, {131072, 2}, {262144, 1}, {any, 0}};
  const Steps of_others{{8192, 15}, {16384, 10}, {131072, 3}, {262144, 1}, {any, 0}};
  CopyTable table;
  const auto add = [&](CollectiveKind kind, const Steps& steps) {
    for (const auto& [bytes, staged] : steps) table.rows.push_back({kind, ranks, bytes, staged});
  };
  add(CollectiveKind::reduce, of_reductions);
  add(CollectiveKind::all_reduce, of_reductions);
  add(CollectiveKind::broadcast, of_others);
  return table;
}

}  // namespace heddle::collectives
