#include "algorithms/generated/generated_tiles.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "algorithms/walk/job.hpp"
#include "base/assert.hpp"

namespace heddle {
namespace {

/// `count` numbers each of the rows of a matrix that is cut into tiles of `tile`.
std::optional<MatrixSpec> numbers_spec(const MatrixSpec& a, std::int64_t rows, std::int64_t tile,
                                       std::int64_t count) {
  if (count == 0) return std::nullopt;
  MatrixSpec spec({.rows = rows, .columns = count, .tile = tile, .wide = count}, a.distribution);
  spec.dealing = Dealing::diagonal;
  return spec;
}

/// The values stay with the visits.
void fill_numbers(std::optional<Matrix<double>>& numbers,
                  const std::shared_ptr<const std::vector<double>>& values) {
  if (!numbers) return;
  const std::int64_t rows = numbers->rows();
  HEDDLE_CHECK(values->size() == static_cast<std::size_t>(rows * numbers->columns()),
               "{} numbers for {} x {}", values->size(), rows, numbers->columns());
  numbers->fill([values, rows](std::int64_t i, std::int64_t k) {
    return (*values)[static_cast<std::size_t>(i + k * rows)];
  });
}

std::vector<Broadcast> broadcasts_of(TaskStream& tasks,
                                     const std::optional<Matrix<double>>& numbers) {
  std::vector<Broadcast> rows;
  for (TileRow i{0}; numbers && i < numbers->layout().end_row(); ++i) {
    rows.emplace_back(tasks, read((*numbers)(i, TileColumn{0}), Version{0}));
  }
  return rows;
}

constexpr std::int32_t soon = 1;

Program make_all(TaskStream& tasks, Matrix<double> a, GeneratedTiles from) {
  GeneratedWalk walk(tasks, from);
  const TileLayout& layout = a.layout();
  for (WideColumn j{0}; j < layout.end_wide(); ++j) {
    for (TileRow i{0}; i < layout.end_row(); ++i) {
      if (!a.stores(i, layout.wide_begin(j))) continue;
      const NodeId at = a.distribution().node(i, j);
      walk.columns_to(j, at, soon);
      walk.rows_to(i, at, soon);
      for (TileColumn c = layout.wide_begin(j); at == tasks.node() && c < layout.wide_begin(j + 1);
           ++c) {
        co_await walk.make(a, i, c, soon);
      }
    }
  }
}

}  // namespace

GeneratedTiles::Specs GeneratedTiles::specs_of(const MatrixSpec& a, const GeneratedKind& kind) {
  const kernel::ElementNumbers count = kernel::numbers_of(kind.elements);
  const TileLayout& layout = a.layout;
  return {numbers_spec(a, layout.columns, layout.wide_width(), count.of_column),
          numbers_spec(a, layout.rows, layout.tile, count.of_row)};
}

void GeneratedTiles::fill(const std::shared_ptr<const GeneratedElements>& elements) {
  using Values = std::shared_ptr<const std::vector<double>>;
  fill_numbers(columns_, Values(elements, &elements->of_columns));
  fill_numbers(rows_, Values(elements, &elements->of_rows));
}

std::vector<Matrix<double>> GeneratedTiles::numbers() const {
  std::vector<Matrix<double>> all;
  if (columns_) all.push_back(*columns_);
  if (rows_) all.push_back(*rows_);
  return all;
}

JobSpec GeneratedTiles::job(const Matrix<double>& a) const {
  std::vector<Matrix<double>> matrices{a};
  const std::vector<Matrix<double>> read = numbers();
  matrices.insert(matrices.end(), read.begin(), read.end());
  return job_of("generate", matrices,
                [a, from = *this](TaskStream& tasks) { return make_all(tasks, a, from); });
}

GeneratedWalk::GeneratedWalk(TaskStream& tasks, const GeneratedTiles& from)
    : tasks_(tasks),
      kind_(from.kind_),
      columns_(broadcasts_of(tasks, from.columns_)),
      rows_(broadcasts_of(tasks, from.rows_)) {}

void GeneratedWalk::columns_to(WideColumn j, NodeId at, std::int32_t priority) {
  if (!columns_.empty()) columns_[static_cast<std::size_t>(j.value())].to(at, priority);
}

void GeneratedWalk::rows_to(TileRow i, NodeId at, std::int32_t priority) {
  if (!rows_.empty()) rows_[static_cast<std::size_t>(i.value())].to(at, priority);
}

TaskStream::Room GeneratedWalk::make(const Matrix<double>& a, TileRow i, TileColumn c,
                                     std::int32_t priority) {
  const TileLayout& layout = a.layout();
  kernel::GenerateParameters parameters;
  parameters.seed = kind_.seed;
  parameters.row = layout.row_begin(i);
  parameters.column = layout.column_begin(c);
  parameters.offset = static_cast<std::int32_t>(layout.offset_in_wide(c));
  parameters.kind = kind_.elements;
  parameters.is_lower = a.storage() == Storage::lower ? 1 : 0;
  TaskOptions options;
  options.parameters = KernelParameters(parameters);
  options.priority = priority;
  std::array<protocol::Access, 3> accesses{write(a(i, c)), {}, {}};
  std::size_t count = 1;
  if (!columns_.empty()) {
    const WideColumn j = layout.wide_of(c);
    accesses.at(count++) = columns_[static_cast<std::size_t>(j.value())].tile();
  }
  if (!rows_.empty()) accesses.at(count++) = rows_[static_cast<std::size_t>(i.value())].tile();
  return tasks_.insert(kernel::generate, std::span<const protocol::Access>(accesses).first(count),
                       options);
}

}  // namespace heddle
