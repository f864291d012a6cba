#include "algorithms/matrix/generated_source.hpp"

#include <cstddef>
#include <utility>

#include "base/assert.hpp"
#include "kernels/cpu/generate.hpp"

namespace heddle {

GeneratedSource::GeneratedSource(std::int64_t rows, std::int64_t columns,
                                 GeneratedElements elements, std::string description,
                                 bool is_symmetric, Finite finite)
    : MatrixSource(rows, columns),
      elements_(std::make_shared<const GeneratedElements>(std::move(elements))),
      description_(std::move(description)),
      is_symmetric_(is_symmetric),
      finite_(finite) {
  const kernel::ElementNumbers numbers = kernel::numbers_of(elements_->kind.elements);
  HEDDLE_CHECK(
      elements_->of_columns.size() == static_cast<std::size_t>(numbers.of_column * columns) &&
          elements_->of_rows.size() == static_cast<std::size_t>(numbers.of_row * rows),
      "{}: {} numbers of columns and {} of rows", description_, elements_->of_columns.size(),
      elements_->of_rows.size());
}

void GeneratedSource::read_block(GlobalRow row, GlobalColumn column, TileView out) const {
  const kernel::GenerateParameters parameters{.seed = elements_->kind.seed,
                                              .row = row.value(),
                                              .column = column.value(),
                                              .kind = elements_->kind.elements};
  // A kind without numbers has no memory for them.
  const auto from = [](const std::vector<double>& numbers, std::int64_t first) {
    return numbers.empty() ? nullptr : numbers.data() + first;
  };
  host::generate(parameters, {from(elements_->of_columns, column.value()), columns()},
                 {from(elements_->of_rows, row.value()), rows()}, out);
}

}  // namespace heddle
